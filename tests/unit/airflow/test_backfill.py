from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
from airflow.timetables.base import TimeRestriction

from cdc_airflow.factory import make_dags
from cdc_airflow.on_request import DaysOnRequest
from cdc_airflow.operators.backfill import PARAMS, BackfillOperator
from cdc_airflow.operators.spark_job import SparkJobOperator
from cdc_lib.model.backfill import BackfillReport
from cdc_lib.model.merge_plan import TableCut
from cdc_lib.model.table_name import TableName
from cdc_lib.store import documents

DAY, NEXT = datetime(2026, 11, 20, tzinfo=UTC), datetime(2026, 11, 21, tzinfo=UTC)


def test_each_source_has_a_dag_for_backfills(sources: Path):
    """Beside that of its changes, which refuses them."""
    dag = make_dags(sources)["cdc_shop.backfill"]
    assert dag.task_ids == ["backfill"]
    assert dag.catchup is False
    assert getattr(dag, "allowed_run_types", None) is None  # Airflow 3.1 refuses no kind of run
    assert set(dag.params) == set(PARAMS)


def test_the_scheduler_creates_no_run_and_a_backfill_creates_one_for_each_day():
    """The first asks without catchup, as the DAG has it."""
    days = DaysOnRequest.deserialize(DaysOnRequest().serialize())
    asked = TimeRestriction(DAY, datetime(2026, 11, 30, tzinfo=UTC), catchup=False)
    assert days.next_dagrun_info(last_automated_data_interval=None, restriction=asked) is None
    found = days.next_dagrun_info(last_automated_data_interval=None, restriction=asked._replace(catchup=True))
    assert found is not None
    assert (found.data_interval.start, found.data_interval.end) == (DAY, NEXT)
    assert days.can_be_scheduled
    assert days.periodic


@pytest.mark.parametrize(
    ("given", "start", "times"),
    [
        ({}, DAY, ["--since", "2026-11-20T00:00:00+00:00", "--until", "2026-11-21T00:00:00+00:00"]),
        ({}, NEXT, []),
        ({"since": "2026-11-01T06:00:00Z"}, DAY, ["--since", "2026-11-01T06:00:00Z"]),
    ],
)
def test_a_run_merges_its_logical_date_or_the_given_period(
    sources: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, str], start: datetime, times: list[str]
):
    """A run by hand has no date, and takes all that is stored."""
    called: list[tuple[str, ...]] = []
    monkeypatch.setattr(SparkJobOperator, "run_job", lambda _self, _context, *given, **_more: called.append(given))
    run = SimpleNamespace(data_interval_start=start, data_interval_end=NEXT)
    task = BackfillOperator(
        task_id="backfill",
        source_file=str(sources / "shop.yaml"),
        tables='["shop.*"]',
        into="copy",
        copy_suffix="_b",
        **given,
    )
    task.execute({"dag_run": run})
    assert called == [("backfill", *times, "--into", "copy", "--copy-suffix", "_b", "--", "shop.*")]


@pytest.mark.parametrize(("into", "lake_table"), [("live", "lake.shop.orders"), ("copy", "lake.shop.orders_b")])
def test_openlineage_gets_the_batches_and_the_tables_that_were_merged(
    sources: Path, monkeypatch: pytest.MonkeyPatch, into: str, lake_table: str
):
    """From the job's report, by the provider's own classes; a table without changes is not among them."""
    from openlineage.client.serde import Serde

    orders, idle = TableName("shop", "orders"), TableName("shop", "idle")
    cuts = (TableCut(orders, lake_table, 77, 5), TableCut(idle, "lake.shop.idle", 78, 0))
    report = BackfillReport("shop", "a to b", 4, 1, 9, "_b" if into == "copy" else "", cuts)
    left: list[str | None] = [None, documents.dump(report).decode()]
    monkeypatch.setattr(SparkJobOperator, "run_job", lambda *_, **given: left.pop(0) if given["report"] else None)
    run = SimpleNamespace(data_interval_start=DAY, data_interval_end=NEXT)
    task = BackfillOperator(task_id="backfill", source_file=str(sources / "shop.yaml"), into=into)
    task.execute({"dag_run": run})
    assert task.get_openlineage_facets_on_complete(None) is None  # nothing of the day was ever merged
    task.execute({"dag_run": run})
    lineage = task.get_openlineage_facets_on_complete(None)
    assert [one.name.rpartition("/batches/")[2] for one in lineage.inputs] == ["shop.orders"]
    (written,) = map(Serde.to_dict, lineage.outputs)
    assert written["facets"]["symlinks"]["identifiers"][0]["name"] == lake_table
    assert written["facets"]["version"]["datasetVersion"] == "77"
    assert written["outputFacets"]["outputStatistics"]["rowCount"] == 5
    facet = Serde.to_dict(lineage.run_facets["cdc_backfill"])
    assert (facet["period"], facet["windows"], facet["snapshots"], facet["batches"]) == ("a to b", 4, 1, 9)
