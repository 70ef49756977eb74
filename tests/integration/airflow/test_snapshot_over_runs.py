"""A run ends although a snapshot is not complete, the cut of the other tables moves, and the next run goes on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from cdc_airflow.hooks import CdcHook
from cdc_airflow.operators.ack import AckDrainOperator
from cdc_airflow.operators.drain import DrainOperator
from cdc_airflow.operators.merge import PlanMergeOperator
from cdc_airflow.operators.plan import PlanOperator
from cdc_lib.config.load import load_source
from cdc_lib.model.cursor import DRAIN, LAKE
from cdc_lib.store.cuts import last_cut
from tests.harness.binlog.capture import SOURCE, Capture
from tests.harness.lake.merging import Lake, merge_all

SOURCE_FILE = """
server: {{host: {server.host}, port: {server.port}, user: {server.cdc_user}, password_env: RUNS_TEST_PASSWORD}}
tables: ["{database}.*"]
store: {{url: "file://{folder}/store"}}
lake: {{type: jdbc, uri: "jdbc:sqlite:{folder}/cat.db", warehouse: "file://{folder}/lake"}}
snapshot: {{chunk_rows: 2, run_for: 15m, range_bytes: {range_bytes}, max_ranges: 3}}
"""


@pytest.fixture
def capture(mysql_server, mysql_database, tmp_path, monkeypatch):
    monkeypatch.setenv("RUNS_TEST_PASSWORD", mysql_server.cdc_password)
    capture = Capture(mysql_server, mysql_database, tmp_path)
    for table in ("big", "small"):
        capture.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY, v INT)")
        capture.execute(f"INSERT INTO {table} VALUES (1, 0)")
    capture.execute("INSERT INTO big VALUES (2, 0), (3, 0), (4, 0), (5, 0)")
    return capture


@pytest.fixture
def work(request, capture, tmp_path):
    """Run one task of the source's DAG in a run of an age, without Airflow's processes."""
    file = tmp_path / f"{SOURCE}.yaml"
    size = getattr(request, "param", "1GiB")
    plain = SOURCE_FILE.format(server=capture.server, database=capture.database, folder=tmp_path, range_bytes=size)
    file.write_text(plain)
    ti = SimpleNamespace(dag_id="cdc_shop", run_id="manual", task_id="x", try_number=1)

    def _work(kind, age=timedelta(0), **arguments):
        run = SimpleNamespace(start_date=datetime.now(UTC) - age)
        task = kind(task_id="x", source_file=str(file), **arguments)
        return task.work(CdcHook(str(file)), {"ti": ti, "dag_run": run})

    return _work


def run_of(work, age):
    """Do the tasks of a run up to plan_merge, drains when it has an age; returns what the drains and plan_merge returned."""
    drained = [work(DrainOperator, age, unit=unit) for unit in work(PlanOperator)]
    work(AckDrainOperator)
    return drained, work(PlanMergeOperator)


def test_a_run_ends_while_a_snapshot_is_read_and_the_others_are_merged(capture, work):
    """A task that is done again reads on; a run that is young reads to the end."""
    old = timedelta(minutes=16)
    big, small = Lake("big"), Lake("small")
    drained, _ = run_of(work, old)
    assert [(one["batches"], one["rows"]) for one in drained] == [(1, 2), (1, 1)]
    merge_all(capture, big, small)
    (reading,) = capture.pipeline.cursors.load(SOURCE, DRAIN).open_snapshots
    assert (reading.table, reading.chunks) == ("big", 1)
    before = last_cut(capture.store, SOURCE).position
    capture.execute("UPDATE small SET v = 1")
    capture.execute("DELETE FROM big WHERE id IN (1, 5)")
    drained, plan = run_of(work, old)
    assert [one["rows"] for one in drained] == [2, 3]
    assert plan is not None
    merge_all(capture, big, small)
    assert small.rows == {1: {"id": 1, "v": 1}}
    assert big.rows == {}
    cut = last_cut(capture.store, SOURCE)
    assert before < cut.position
    assert [(one.table, one.position) for one in cut.held] == [(f"{capture.database}.big", before)]
    drained, plan = run_of(work, timedelta(minutes=1))
    assert [one["rows"] for one in drained] == [0]
    merge_all(capture, big, small)
    assert sorted(big.rows) == [2, 3, 4]
    assert capture.pipeline.cursors.load(SOURCE, LAKE).held == ()


@pytest.mark.parametrize("work", ["1B"], indirect=True)
def test_each_range_of_a_large_table_has_a_mapped_task_until_it_is_read(capture, work):
    """The tasks of a run that is over read a chunk each; one that is cleared reads nothing again, and no other range."""
    capture.execute(f"INSERT INTO big VALUES {', '.join(f'({key}, 0)' for key in range(6, 17))}")
    capture.execute("ANALYZE TABLE big")
    old, big = timedelta(minutes=16), Lake("big")
    units = [unit for unit in work(PlanOperator) if unit["table"] == "big"]
    assert [unit["range_number"] for unit in units] == [0, 1, 2]
    drained = [work(DrainOperator, old, unit=unit) for unit in (units[2], units[0])]
    assert [one["rows"] for one in drained] == [2, 2]
    work(AckDrainOperator)
    left = [unit for unit in work(PlanOperator) if unit.get("table") == "big"]
    assert [unit["range_number"] for unit in left] == [0, 1, 2]
    for unit in (*left[:2], left[0]):
        work(DrainOperator, unit=unit)
    work(AckDrainOperator)
    (last,) = (unit for unit in work(PlanOperator) if unit.get("table") == "big")
    assert last["range_number"] == 2
    assert work(DrainOperator, unit=units[0])["batches"] == 0
    merge_all(capture, big)
    assert big.rows == {}
    work(DrainOperator, unit=last)
    work(AckDrainOperator)
    merge_all(capture, big)
    assert sorted(big.rows) == list(range(1, 17))


def test_the_source_file_says_how_long_a_run_reads_snapshots(capture, work, tmp_path):
    """Without end with 0s."""
    work(PlanOperator)
    began = datetime(2026, 11, 21, tzinfo=UTC)
    assert load_source(tmp_path / f"{SOURCE}.yaml").snapshot.until(began) == began + timedelta(minutes=15)
    assert capture.config.snapshot.model_copy(update={"run_for": timedelta(0)}).until(began) is None
