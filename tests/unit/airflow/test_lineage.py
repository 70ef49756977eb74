"""What a merge tells OpenLineage."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from cdc_airflow.lineage.datasets import VerifiedTo, verified_to
from cdc_airflow.lineage.merge import read_tables, written_tables
from cdc_airflow.lineage.openlineage import cover_lineage
from cdc_airflow.operators.merge import MergeOperator, parent_properties
from cdc_lib.config import load_source
from cdc_lib.errors import ConfigError
from cdc_lib.merge.cut import make_cut
from cdc_lib.merge.plan import StoredBatch
from cdc_lib.model.coverage import Coverage, CoveredRange
from cdc_lib.model.merge_plan import TableCut
from cdc_lib.model.position import Position
from cdc_lib.model.row_counts import RowCounts
from cdc_lib.model.table_name import TableName
from cdc_lib.model.verify import Verified
from cdc_lib.store import documents, layout
from cdc_lib.store.cuts import publish
from cdc_lib.store.manifests import load_manifest
from cdc_lib.store.objects.local import LocalStore
from spark_jobs.job import with_spark_conf
from tests.harness.lake.batches import BIGINT, TEXT, BatchWriter, Row, table

ORDERS = table("shop.orders", {"id": BIGINT, "item": TEXT})
SHARD = TableName("shop", "orders_2")
IDLE = table("shop.idle", {"id": BIGINT})
LAKE_TABLE = "lake.shop.orders"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)

SOURCE = """
server: {{host: db.example, user: cdc, password_env: CDC_TEST_PASSWORD}}
tables: ["shop.*"]
store: {{url: "file://{folder}/store"}}
lake: {{catalog: lake, type: jdbc, uri: "jdbc:sqlite:/x/cat.db?password=lion-9", warehouse: "s3://bucket/lake"}}
"""


@pytest.fixture
def merged(tmp_path: Path) -> SimpleNamespace:
    """A source with a merge of one window, whose cut is published."""
    file = tmp_path / "shop.yaml"
    file.write_text(SOURCE.format(folder=tmp_path))
    store = LocalStore(tmp_path / "store")
    writer = BatchWriter(store)
    rows = {ORDERS: [Row("c", 10, {"id": 1, "item": "bell"}), Row("u", 20, {"id": 1, "item": "lamp"})]}
    plan = writer.plan(100, writer.window(4, 100, rows))
    (batch,) = (StoredBatch(key, load_manifest(store, key)) for key in plan.batches)
    counted = tuple(replace(one, counts=RowCounts(inserts=1, updates=1)) for one in batch.manifest.files)
    batches = [replace(batch, manifest=replace(batch.manifest, files=counted))]  # as a drain counts them
    orders = TableCut(ORDERS.name, LAKE_TABLE, 77, 2, mode="mirror")
    cut = publish(
        store, make_cut(plan, batches, [orders, TableCut(IDLE.name, "lake.shop.idle", 5, 0)], None, NOON, 1.0)
    )
    return SimpleNamespace(
        store=tmp_path / "store", file=file, config=load_source(file), plan=plan, batches=batches, cut=cut
    )


def test_only_tables_with_changes_are_read_and_written(merged: SimpleNamespace):
    """With their columns: at the source those of the batches, in the lake with the order key."""
    (read,) = read_tables(merged.config, merged.cut, merged.batches)
    assert (read.dataset.namespace, read.dataset.name) == ("mysql://db.example:3306", "shop.orders")
    assert read.fields == (("id", "bigint"), ("item", "string"))
    (written,) = written_tables(merged.config, merged.cut, merged.batches)
    assert (written.lake.dataset.namespace, written.lake.dataset.name) == ("s3://bucket", "lake/shop/orders")
    assert (written.lake.table, written.snapshot) == ("lake.shop.orders", 77)
    assert written.fields[:2] == read.fields
    assert ("_binlog", "int") in written.fields
    assert written.bytes > 0
    assert written.sources == ("shop.orders",)


def compared(table: TableName, hours: int, *, drift: int = 0, clean_hours: int | None = None) -> Verified:
    """Return a comparison some hours after noon, and when the last one without drift was; of another lake table if none."""
    clean = hours if not drift else clean_hours
    at = Position("binlog.000007", 1000 + hours)
    known = {
        "clean_position": at if clean == hours else Position("binlog.000007", 1000 + clean),
        "clean_epoch": 2,
        "clean_at": NOON + timedelta(hours=clean),
    } if clean is not None else {}  # fmt: skip
    return Verified("shop", table, LAKE_TABLE, 2, at, "", NOON + timedelta(hours=hours), 9, drift, 0, 0, 0, 0, **known)


def known_of(*comparisons: Verified) -> VerifiedTo | None:
    return verified_to(LAKE_TABLE, [ORDERS.name, SHARD], comparisons)


def test_a_lake_table_is_verified_as_far_as_the_weakest_of_its_source_tables():
    """Two shards in one lake table: equal as far as both were; unknown if one was never compared."""
    assert known_of(compared(ORDERS.name, 1)) is None
    known = known_of(compared(ORDERS.name, 5), compared(SHARD, 3))
    assert known is not None
    assert (known.clean, known.clean_at, known.clean_position) == (
        True,
        NOON + timedelta(hours=3),
        "2/binlog.000007:1003",
    )
    drifts = known_of(compared(ORDERS.name, 5, drift=2, clean_hours=1), compared(SHARD, 3))
    assert drifts is not None
    assert (drifts.clean, drifts.clean_position) == (False, "2/binlog.000007:1001")
    never = known_of(compared(ORDERS.name, 5, drift=2), compared(SHARD, 3))
    assert never is not None
    assert (never.clean_at, never.clean_position, never.compared_at) == (None, None, NOON + timedelta(hours=3))
    assert known_of(replace(compared(ORDERS.name, 5), lake_table="lake.copy"), compared(SHARD, 3)) is None


def test_the_operator_answers_the_provider(merged: SimpleNamespace):
    """With the provider's own classes: datasets, schemas, row counts, snapshot and cut, and no secret of the source file."""
    from openlineage.client.serde import Serde

    store = LocalStore(merged.store)
    one = compared(ORDERS.name, 2)
    store.put(layout.verified_key("shop", ORDERS.name, LAKE_TABLE), documents.dump(one))
    position = Position("binlog.000007", 1001)
    ranges = (
        CoveredRange(("5",), ("5",), 5, NOON, 2, position),
        CoveredRange(None, None, 5, datetime.now(UTC), 2, position),
    )
    covered = Coverage("shop", ORDERS.name, LAKE_TABLE, NOON, NOON, ranges=ranges)
    store.put(layout.coverage_key("shop", ORDERS.name, LAKE_TABLE), documents.dump(covered))
    merged.file.write_text(f"{merged.file.read_text()}\nverify: {{cover_every: 7d}}\n")
    operator = MergeOperator(task_id="merge", source_file=str(merged.file))
    assert operator.get_openlineage_facets_on_complete(None) is None  # skipped: it merged nothing
    operator._plan = merged.plan
    lineage = operator.get_openlineage_facets_on_complete(None)
    inputs, outputs = (Serde.to_dict(one) for one in (lineage.inputs[0], lineage.outputs[0]))
    assert inputs["name"] == "shop.orders"
    assert [field["name"] for field in inputs["facets"]["schema"]["fields"]] == ["id", "item"]
    assert outputs["facets"]["version"]["datasetVersion"] == "77"
    assert outputs["facets"]["symlinks"]["identifiers"][0]["name"] == "lake.shop.orders"
    assert outputs["outputFacets"]["outputStatistics"]["size"] > 0
    assert outputs["outputFacets"]["outputStatistics"]["rowCount"] == 2
    rows = outputs["outputFacets"]["cdc_rows"]
    assert [rows[op] for op in ("inserts", "updates", "deletes", "reads")] == [1, 1, 0, 0]
    verified = outputs["facets"]["cdc_verified"]
    assert (verified["clean"], verified["verifiedToPosition"]) == (True, "2/binlog.000007:1002")
    assert verified["verifiedToTime"] == verified["comparedAt"] == "2026-01-01T14:00:00+00:00"
    ranges = outputs["facets"]["cdc_covered"]
    assert [ranges[name] for name in ("ratio", "oldestTime", "oldestPosition", "wrongRows")] == [
        0.5, NOON.isoformat(), "2/binlog.000007:1001", 0,
    ]  # fmt: skip
    lineage_of_cover = cover_lineage(load_source(merged.file), [covered])
    assert [one.name for one in lineage_of_cover.inputs] == ["shop.orders", outputs["name"]]
    assert lineage_of_cover.inputs[1].facets["cdc_covered"].oldestPosition == "2/binlog.000007:1001"
    cut = Serde.to_dict(lineage.run_facets["cdc_cut"])
    assert (cut["mergeId"], cut["position"]) == (merged.cut.merge_id, str(merged.cut.position))
    assert "lion-9" not in Serde.to_json(lineage.inputs[0]) + Serde.to_json(lineage.outputs[0])


def test_the_job_names_the_task_as_its_parent_where_airflow_is_configured_to(
    merged: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
):
    """By settings of Spark, over those of the source file; none unless it is asked for."""
    context = {"ti": SimpleNamespace(dag_id="cdc_shop", task_id="merge", run_id="r", try_number=1, map_index=-1)}
    assert parent_properties(context) == {}
    settings = ["spark.openlineage.parentRunId=uuid-1", "spark.app.name=a=b"]
    conf = with_spark_conf(merged.config, settings).merge.conf
    assert conf == {"spark.openlineage.parentRunId": "uuid-1", "spark.app.name": "a=b"}
    assert merged.config.merge.conf == {}
    assert with_spark_conf(merged.config, []) == merged.config
    with pytest.raises(ConfigError, match="not a Spark setting"):
        with_spark_conf(merged.config, ["--conf"])


def test_the_parent_is_the_run_of_the_task(monkeypatch: pytest.MonkeyPatch):
    """As the provider names it."""
    monkeypatch.setenv("AIRFLOW__OPENLINEAGE__SPARK_INJECT_PARENT_JOB_INFO", "True")
    monkeypatch.setenv("AIRFLOW__OPENLINEAGE__NAMESPACE", "here")
    run = SimpleNamespace(logical_date=NOON, run_after=NOON, clear_number=0, conf={})
    task = SimpleNamespace(dag_id="cdc_shop", task_id="merge")
    ti = SimpleNamespace(
        dag_id="cdc_shop", task_id="merge", run_id="r", try_number=1, map_index=-1, task=task, dag_run=run,
        get_template_context=lambda: {"dag_run": run},
    )  # fmt: skip
    found = parent_properties({"ti": ti})
    assert found["spark.openlineage.parentJobNamespace"] == "here"
    assert found["spark.openlineage.parentJobName"] == "cdc_shop.merge"
    assert found["spark.openlineage.parentRunId"]
