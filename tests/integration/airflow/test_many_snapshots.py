"""The first run of a source of many tables has few mapped tasks, and reads every table through them."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from openlineage.client.serde import Serde

from cdc_airflow.hooks import CdcHook
from cdc_airflow.operators import AckDrainOperator, DrainOperator, PlanOperator
from cdc_airflow.units import FEWEST_SHARES, SHARE
from cdc_lib.errors import TableUnreadable
from cdc_lib.model.cursor import DRAIN
from cdc_lib.store.documents import unit_from_plain
from cdc_lib.store.layout import manifest_key
from cdc_lib.store.manifests import find_manifest
from tests.harness.binlog.capture import SOURCE, Capture

TABLES = 3 * FEWEST_SHARES
PARALLELISM = 9
"""Four shares for each are more than the fewest."""

SOURCE_FILE = """
server: {{host: {server.host}, port: {server.port}, user: {server.cdc_user}, password_env: SHARES_TEST_PASSWORD}}
tables: ["{database}.*"]
store: {{url: "file://{folder}/store"}}
lake: {{type: jdbc, uri: "jdbc:sqlite:{folder}/cat.db", warehouse: "file://{folder}/lake"}}
drain: {{parallelism: {parallelism}}}
"""


@pytest.fixture
def capture(mysql_server, mysql_database, tmp_path, monkeypatch):
    monkeypatch.setenv("SHARES_TEST_PASSWORD", mysql_server.cdc_password)
    capture = Capture(mysql_server, mysql_database, tmp_path)
    for number in range(TABLES):
        capture.execute(f"CREATE TABLE t{number:03d} (id INT PRIMARY KEY, v INT)")
        capture.execute(f"INSERT INTO t{number:03d} VALUES (1, {number})")
    return capture


@pytest.fixture
def work(capture, tmp_path):
    """Run one task of the source's DAG, without Airflow's processes."""
    file = tmp_path / f"{SOURCE}.yaml"
    file.write_text(
        SOURCE_FILE.format(server=capture.server, database=capture.database, folder=tmp_path, parallelism=PARALLELISM)
    )
    ti = SimpleNamespace(dag_id="cdc_shop", run_id="manual", task_id="x", try_number=1)

    def _work(kind, **arguments):
        context = {"ti": ti}
        task = kind(task_id="x", source_file=str(file), **arguments)
        result = task.work(CdcHook(str(file)), context)
        if kind is DrainOperator:
            context["lineage"] = task.get_openlineage_facets_on_complete(None)
        return result, context

    return _work


def complete(capture):
    cursor = capture.pipeline.cursors.load(SOURCE, DRAIN)
    return {task.table for task in cursor.snapshots if task.complete}


def test_many_snapshots_are_shared_out_and_every_table_is_read(capture, work):
    """A task that is done again after the ack writes nothing, and what it is mapped over is small."""
    mapped, _ = work(PlanOperator)
    assert len(mapped) == 4 * PARALLELISM
    assert {one["kind"] for one in mapped} == {SHARE}
    assert len(json.dumps(mapped)) < 100 * TABLES
    rows = 0
    returned = []
    for unit in mapped:
        result, context = work(DrainOperator, unit=unit)
        rows += result["rows"]
        returned.append(result)
        assert context["unit_title"].startswith(f"snapshots of {len(unit['ids'])} tables, {capture.database}.t0")
        snapshots = Serde.to_dict(context["lineage"].run_facets["cdc_snapshots"])["snapshots"]
        assert [(one["chunks"], one["complete"]) for one in snapshots] == [(1, True)] * len(unit["ids"])
        assert {one.name for one in context["lineage"].inputs} == {one["table"] for one in snapshots}
    assert rows == TABLES
    again, _ = work(DrainOperator, unit=mapped[0])
    assert again["batches"] == 0
    returned.append(work(AckDrainOperator)[0])
    assert len(json.dumps(returned)) < 300 * len(returned)  # by task, not by table
    assert len(complete(capture)) == TABLES
    done, context = work(DrainOperator, unit=mapped[0])
    assert done["snapshots"] == 0
    assert context["unit_title"] == "snapshots that are complete"
    assert context["lineage"] is None
    capture.execute("INSERT INTO t000 VALUES (2, 2)")
    (window,), _ = work(PlanOperator)
    assert window["kind"] == "window"
    _, context = work(DrainOperator, unit=window)
    read = Serde.to_dict(context["lineage"].run_facets["cdc_window"])
    manifest = find_manifest(capture.store, manifest_key(unit_from_plain(window)))
    assert (read["windowId"], read["start"], read["stop"]) == (
        manifest.id,
        *map(str, (manifest.window.start, manifest.window.stop)),
    )
    assert (read["gtidSet"], read["transactions"]) == (manifest.gtid_set, 1)
    assert read["firstTime"] == manifest.first_time.isoformat()
    (written,) = map(Serde.to_dict, context["lineage"].outputs)
    assert written["name"].endswith(f"/store/{SOURCE}/batches/{capture.database}.t000")
    assert written["facets"]["version"]["datasetVersion"] == manifest.id
    assert [field["name"] for field in written["facets"]["schema"]["fields"]][-2:] == ["id", "v"]
    assert written["outputFacets"]["outputStatistics"]["rowCount"] == 1
    rows = written["outputFacets"]["cdc_rows"]
    assert (rows["inserts"], rows["reads"]) == (1, 0)


def test_a_table_that_cannot_be_read_keeps_no_other_of_its_share_from_being_read(capture, work):
    """The task fails with the table's own error, after the others; all of them are durable."""
    bad = "t000"  # the first of its share
    capture.execute(f"ALTER TABLE {bad} DISCARD TABLESPACE")
    mapped, _ = work(PlanOperator)
    for unit in mapped:
        if any(one.endswith(bad) for one in unit["ids"]):
            with pytest.raises(TableUnreadable) as caught:
                work(DrainOperator, unit=unit)
            assert caught.value.context["table"] == f"{capture.database}.{bad}"
        else:
            work(DrainOperator, unit=unit)
    work(AckDrainOperator)
    assert len(complete(capture)) == TABLES - 1
