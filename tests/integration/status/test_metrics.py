"""The figures of a real source: with its server, with its store alone, and while the server is away."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from cdc_airflow.hooks import CdcHook
from cdc_airflow.operators import AckDrainOperator, AckLakeOperator, DrainOperator, PlanOperator
from cdc_lib.config import Credentials
from cdc_lib.merge.cut import make_cut
from cdc_lib.merge.plan import StoredBatch
from cdc_lib.model.cursor import LAKE
from cdc_lib.model.merge_plan import TableCut
from cdc_lib.model.table_name import TableName
from cdc_lib.pipeline import Pipeline
from cdc_lib.status.overview import gauges_of
from cdc_lib.status.prometheus import Exposition, figures_of
from cdc_lib.store.cuts import last_cut, publish
from tests.harness.binlog.capture import SOURCE, Capture
from tests.harness.lake.merging import drain_all
from tests.harness.servers.process import free_port

ODD = 'a"b`\n}'
"""A name that servers allow."""


@pytest.fixture
def capture(any_server, database, tmp_path):
    capture = Capture(any_server, database, tmp_path)
    capture.execute("CREATE TABLE t (id INT PRIMARY KEY, n INT)")
    capture.execute('CREATE TABLE `a"b``\n}` (id INT PRIMARY KEY)')
    capture.execute("INSERT INTO t VALUES (1, 0), (2, 0)")
    return capture


SOURCE_FILE = """
server: {{host: {server.host}, port: {server.port}, user: {server.cdc_user}, password_env: METRICS_TEST_PASSWORD}}
tables: ["{database}.*"]
store: {{url: "file://{folder}/store"}}
lake: {{type: jdbc, uri: "jdbc:sqlite:{folder}/cat.db", warehouse: "file://{folder}/lake"}}
"""


@dataclass
class Ti:
    """What the tasks ask of a task instance; no other task has left anything."""

    task_id: str
    dag_id: str = "cdc_shop"
    run_id: str = "manual"
    try_number: int = 1

    def xcom_pull(self, task_ids):  # noqa: ARG002 - Airflow's signature
        return None


def merge_all(capture, *, ack=True):
    """Publish a cut over all that waits, as a merge does, with both tables in it."""
    plan = capture.pipeline.plan_merge(by="test")
    batches = [StoredBatch(key, capture.manifest(key)) for key in plan.batches]
    names = (TableName(capture.database, "t"), TableName(capture.database, ODD))
    tables = [TableCut(name, f"lake.{name}", 1, 1) for name in names]
    publish(capture.store, make_cut(plan, batches, tables, last_cut(capture.store, SOURCE), datetime.now(UTC), 2.5))
    if ack:
        capture.pipeline.ack_lake(by="test")


def figures(pipeline, *, ask):
    """Values by name and the labels beside the source."""
    found = {}
    for family in text_string_to_metric_families(Exposition([figures_of(pipeline, ask=ask)]).text()):
        for one in family.samples:
            labels = dict(one.labels)
            assert labels.pop("source") == SOURCE
            found[one.name, *sorted(labels.values())] = one.value
    return found


def test_the_figures_follow_a_source_from_nothing_to_a_cut(capture):
    """Before the first plan nothing is known; after a merge rows are counted by kind, as the statements were."""
    name = str(TableName(capture.database, "t"))
    fresh = figures(capture.pipeline, ask=True)
    assert fresh.keys() == {("cdc_source_up",), ("cdc_server_seen_age_seconds",)}

    drain_all(capture)
    drained = figures(capture.pipeline, ask=True)
    assert ("cdc_lag_seconds",) not in drained
    assert drained["cdc_snapshots_pending",] == 2
    assert drained["cdc_last_drain_seconds",] > 0
    merge_all(capture)
    first = figures(capture.pipeline, ask=True)
    assert (first["cdc_lag_seconds",], first["cdc_lag_bytes",]) == (0, 0)
    assert first["cdc_rows_merged_total", f"lake.{name}", "r", name] == 2
    odd = str(TableName(capture.database, ODD))
    assert first["cdc_rows_merged_total", *sorted((f"lake.{odd}", "c", odd))] == 0

    capture.execute("INSERT INTO t VALUES (3, 0), (4, 0), (5, 0)")
    capture.execute("UPDATE t SET n = 1 WHERE id < 3")
    capture.execute("DELETE FROM t WHERE id = 5")
    waiting = figures(capture.pipeline, ask=True)
    assert waiting["cdc_lag_seconds",] > 0
    assert waiting["cdc_lag_bytes",] > 0
    drain_all(capture)
    assert figures(capture.pipeline, ask=True)["cdc_windows_pending",] >= 1
    merge_all(capture)
    second = figures(capture.pipeline, ask=True)
    rows = {op: second["cdc_rows_merged_total", *sorted((f"lake.{name}", op, name))] for op in "cudr"}
    assert rows == {"c": 3, "u": 2, "d": 1, "r": 2}
    assert second["cdc_merges_total",] == 2
    assert second["cdc_merge_seconds_total",] == 5.0
    assert second["cdc_windows_pending",] == 0
    assert second["cdc_bytes_merged_total", *sorted((f"lake.{name}", name))] > 0


def test_the_store_alone_says_what_the_last_plan_saw(capture):
    """The endpoint has no password of the server: retention and bytes come from the observation, the lag only grows."""
    drain_all(capture)
    merge_all(capture)
    before = figures(capture.pipeline, ask=False)
    assert ("cdc_server_seen_age_seconds",) not in before
    assert ("cdc_lag_bytes",) not in before
    gauges_of(capture.pipeline)  # as the plan task does
    alone = Pipeline(capture.config, Credentials("", ""), capture.store, capture.pipeline.cursors)
    seen = figures(alone, ask=False)
    live = figures(capture.pipeline, ask=True)
    assert seen["cdc_lag_bytes",] == live["cdc_lag_bytes",] == 0
    retention = ("cdc_binlog_retention_left_seconds",)
    assert (retention in seen) is (retention in live)
    if retention in live:
        assert seen[retention] == pytest.approx(live[retention], abs=300)
    assert figures(alone, ask=False)["cdc_lag_seconds",] >= seen["cdc_lag_seconds",]

    unreachable = Pipeline(
        capture.config.at("127.0.0.1", free_port()), Credentials("cdc", ""), capture.store, capture.pipeline.cursors
    )
    assert figures(unreachable, ask=True)["cdc_lag_bytes",] == 0


def test_the_lag_of_a_quarantined_table_is_its_own(capture):
    """Its own lag grows from the change that is missing; the other table has the source's."""
    capture.config = capture.config.model_copy(update={"on_error": "quarantine", "zero_dates": "error"})
    capture.pipeline = Pipeline(capture.config, capture.credentials, capture.store, capture.pipeline.cursors)
    capture.execute("CREATE TABLE days (id INT PRIMARY KEY, day DATE)")
    drain_all(capture)
    merge_all(capture)
    capture.execute("INSERT IGNORE INTO days VALUES (1, '0000-00-00')")
    drain_all(capture)
    merge_all(capture)
    found = figures(capture.pipeline, ask=True)
    days, other = str(TableName(capture.database, "days")), str(TableName(capture.database, "t"))
    assert found["cdc_quarantined_tables",] == 1
    assert found["cdc_table_quarantined", days] == 1
    assert found["cdc_table_quarantined", other] == 0
    assert found["cdc_table_lag_seconds", days] > found["cdc_table_lag_seconds", other]


class Taken:
    """Takes what Airflow's ``outlet_events[alias]`` would."""

    def __init__(self):
        self.extras = {}

    def add(self, asset, extra):
        self.extras[asset.extra["table"]] = extra


def test_the_ack_of_a_merge_announces_what_is_known_of_each_table(capture, tmp_path, monkeypatch):
    """From the tasks themselves: rows by kind, exact GTIDs, lag; nothing when the ack has nothing to move."""
    monkeypatch.setenv("METRICS_TEST_PASSWORD", capture.server.cdc_password)
    file = tmp_path / f"{SOURCE}.yaml"
    file.write_text(SOURCE_FILE.format(server=capture.server, database=capture.database, folder=tmp_path))
    drain_all(capture)
    merge_all(capture)
    capture.execute("INSERT INTO t VALUES (7, 0), (8, 0)")
    capture.execute("DELETE FROM t WHERE id = 1")
    events = defaultdict(Taken)
    context = {"ti": Ti("x"), "outlet_events": events}
    for unit in PlanOperator(task_id="plan", source_file=str(file)).work(CdcHook(file), context):
        DrainOperator(task_id="drain", source_file=str(file), unit=unit).work(CdcHook(file), context)
    AckDrainOperator(task_id="ack_drain", source_file=str(file)).work(CdcHook(file), context)
    merge_all(capture, ack=False)
    ack = AckLakeOperator(task_id="ack_lake", source_file=str(file))
    ack.work(CdcHook(file), context)
    lake = capture.pipeline.cursors.load(SOURCE, LAKE)
    (taken,) = events.values()
    extra = taken.extras["t"]
    assert extra["rows"] == {"c": 2, "u": 0, "d": 1, "r": 0}
    assert extra["position"] == str(lake.position)
    assert extra.get("gtid_set", "") == (lake.gtid_set if lake.gtids_known else "")
    assert 0 <= extra["lag_seconds"] < 600
    assert "verified_to" not in extra
    taken.extras.clear()
    ack.work(CdcHook(file), context)
    assert taken.extras == {}
