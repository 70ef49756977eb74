"""What a merge tells OpenLineage."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from cdc_airflow.lineage import read_tables, written_tables
from cdc_airflow.merge import MergeOperator, parent_properties
from cdc_lib.config import load_source
from cdc_lib.errors import ConfigError
from cdc_lib.merge.cut import make_cut
from cdc_lib.merge.plan import Batch
from cdc_lib.model.merge_plan import TableCut
from cdc_lib.store.cuts import publish
from cdc_lib.store.manifests import load_manifest
from cdc_lib.store.objects.local import LocalStore
from spark_jobs.job import with_spark_conf
from tests.harness.batches import BIGINT, TEXT, BatchWriter, Row, table

ORDERS = table("shop.orders", {"id": BIGINT, "item": TEXT})
IDLE = table("shop.idle", {"id": BIGINT})
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
    batches = [Batch(key, load_manifest(store, key)) for key in plan.batches]
    orders = TableCut(ORDERS.name, "lake.shop.orders", 77, 2, mode="mirror")
    cut = publish(
        store, make_cut(plan, batches, [orders, TableCut(IDLE.name, "lake.shop.idle", 5, 0)], None, NOON, 1.0)
    )
    return SimpleNamespace(file=file, config=load_source(file), plan=plan, batches=batches, cut=cut)


def test_only_tables_with_changes_are_read_and_written(merged: SimpleNamespace):
    """With their columns: at the source those of the batches, in the lake with the order key."""
    (read,) = read_tables(merged.config, merged.cut, merged.batches)
    assert (read.namespace, read.name) == ("mysql://db.example:3306", "shop.orders")
    assert read.fields == (("id", "bigint"), ("item", "string"))
    (written,) = written_tables(merged.config, merged.cut, merged.batches)
    assert (written.namespace, written.name) == ("s3://bucket", "lake/shop/orders")
    assert (written.table, written.snapshot) == ("lake.shop.orders", 77)
    assert written.fields[:2] == read.fields
    assert ("_binlog", "int") in written.fields
    assert written.bytes > 0


def test_the_operator_answers_the_provider(merged: SimpleNamespace):
    """With the provider's own classes: datasets, schemas, row counts, snapshot and cut, and no secret of the source file."""
    pytest.importorskip("airflow.providers.openlineage", reason="the OpenLineage provider is not installed")
    from openlineage.client.serde import Serde

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
    cut = Serde.to_dict(lineage.run_facets["cdc_cut"])
    assert (cut["mergeId"], cut["position"]) == (merged.cut.merge_id, str(merged.cut.position))
    assert "lion-9" not in Serde.to_json(lineage.inputs[0]) + Serde.to_json(lineage.outputs[0])


def test_the_job_names_the_task_as_its_parent_where_airflow_is_told_to(
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
    with pytest.raises(ConfigError, match="no setting of Spark"):
        with_spark_conf(merged.config, ["--conf"])


def test_the_parent_is_the_run_of_the_task(monkeypatch: pytest.MonkeyPatch):
    """As the provider names it."""
    pytest.importorskip("airflow.providers.openlineage", reason="the OpenLineage provider is not installed")
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
