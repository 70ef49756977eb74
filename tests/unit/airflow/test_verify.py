from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from cdc_airflow.airflow_versions import AirflowFailException
from cdc_airflow.factory import make_dags
from cdc_airflow.hooks import CdcHook
from cdc_airflow.operators.spark_job import SparkJobOperator
from cdc_airflow.operators.verify import VerifyOperator
from cdc_lib.model.position import Position
from cdc_lib.model.table_name import TableName
from cdc_lib.model.verify import Report, TableReport
from cdc_lib.store import documents
from cdc_lib.store.verified import keep
from tests.harness.airflow.versions import WAITING, timeout_of

AT = datetime(2026, 1, 1, tzinfo=UTC)


def scheduled(sources: Path) -> Path:
    path = sources / "shop.yaml"
    path.write_text(f'{path.read_text()}verify: {{schedule: "0 4 * * *", tables: ["shop.orders"]}}\n')
    return path


def test_a_dag_of_its_own_compares_by_a_schedule_or_by_hand(sources: Path):
    """Beside that of the source; without a schedule it runs when somebody asks."""
    scheduled(sources)
    dags = make_dags(sources)
    assert dags["cdc_shop.verify"].schedule == "0 4 * * *"
    assert dags["cdc_stock.verify"].schedule is None
    assert dags["cdc_shop.verify"].task_ids == ["verify"]
    assert dags["cdc_shop.verify"].catchup is False


def test_a_worker_builds_the_dag_of_its_task_alone(sources: Path, monkeypatch: pytest.MonkeyPatch):
    """The one that compares is not built for the one that merges."""
    scheduled(sources)
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", "cdc_shop.verify")
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_TASK_ID", "verify")
    assert list(make_dags(sources)) == ["cdc_shop.verify"]


@pytest.mark.parametrize("missing", [0, 2])
def test_drift_fails_the_task_and_names_the_table(sources: Path, monkeypatch: pytest.MonkeyPatch, missing: int):
    """With counts alone: no row is in Airflow's log or results. The job itself runs in the integration tests."""
    position = Position("binlog.000001", 4)
    one = TableReport("shop.orders", "lake.shop.orders", source_rows=9, missing=missing, in_flight=1, position=position)
    other = TableReport("shop.empty", "lake.shop.empty", skipped="it is quarantined")

    def run_job(_self, _context, _job, *_arguments, **_more):
        return documents.dump(Report("shop", 1, position, "", AT, AT, (one, other))).decode()

    monkeypatch.setattr(SparkJobOperator, "run_job", run_job)
    monkeypatch.setenv("CDC_TEST_PASSWORD", "secret")
    task = VerifyOperator(task_id="verify", source_file=str(scheduled(sources)))
    if missing:
        with pytest.raises(
            AirflowFailException, match=r"shop\.orders: 9 rows, 2 missing, 1 in flight\. See cdc verify shop"
        ):
            task.execute({})
    else:
        found = task.execute({})
        assert found["shop.orders"]["rows"] == 9
        assert found["shop.empty"] == {"not compared": "it is quarantined"}


@pytest.mark.parametrize("tables", [(), (TableReport("shop.empty", "lake.shop.empty", skipped="it is quarantined"),)])
def test_a_comparison_of_no_table_fails_the_task(
    sources: Path, monkeypatch: pytest.MonkeyPatch, tables: tuple[TableReport, ...]
):
    """As the command exits with 1: a success would say that the lake equals the source."""
    report = Report("shop", 1, Position("binlog.000001", 4), "", AT, AT, tables)
    monkeypatch.setattr(SparkJobOperator, "run_job", lambda *_, **__: documents.dump(report).decode())
    monkeypatch.setenv("CDC_TEST_PASSWORD", "secret")
    task = VerifyOperator(task_id="verify", source_file=str(scheduled(sources)))
    with pytest.raises(AirflowFailException, match="no table was compared") as failed:
        task.execute({})
    assert all(f"{one.table}: {one.skipped}" in str(failed.value) for one in tables)


def test_openlineage_gets_what_was_compared_and_repaired(sources: Path, monkeypatch: pytest.MonkeyPatch):
    """Also of a task that drift fails, by the provider's own classes; a table that was skipped is not among them."""
    from openlineage.client.serde import Serde

    position = Position("binlog.000001", 4)
    wrong = TableReport(
        TableName("shop", "orders"), "lake.shop.orders", source_rows=9, missing=2, repaired=3, position=position
    )
    equal = TableReport(TableName("shop", "items"), "lake.shop.items", source_rows=5, position=position)
    skipped = TableReport(TableName("shop", "empty"), "lake.shop.empty", skipped="it is quarantined")
    report = Report("shop", 2, position, "", AT, AT + timedelta(minutes=1), (wrong, equal, skipped))
    monkeypatch.setattr(SparkJobOperator, "run_job", lambda *_, **__: documents.dump(report).decode())
    monkeypatch.setenv("CDC_TEST_PASSWORD", "secret")
    task = VerifyOperator(task_id="verify", source_file=str(scheduled(sources)))
    assert task.get_openlineage_facets_on_complete(None) is None  # it has compared nothing
    with pytest.raises(AirflowFailException):
        task.execute({})
    keep(CdcHook(task.source_file).lake_pipeline().store, report)  # as the job does
    lineage = task.get_openlineage_facets_on_complete(None)
    inputs = {one.name: Serde.to_dict(one) for one in lineage.inputs}
    names = [name.removeprefix(str(sources.parent)).lstrip("/") for name in inputs]
    assert names[:2] == ["shop.items", "shop.orders"]
    items, orders = (Serde.to_dict(one) for one in lineage.inputs[2:])
    assert items["facets"]["symlinks"]["identifiers"][0]["name"] == "lake.shop.items"
    assert items["facets"]["cdc_verified"]["verifiedToPosition"] == "2/binlog.000001:4"
    assert orders["facets"]["cdc_verified"]["clean"] is False
    found = orders["inputFacets"]["cdc_comparison"]
    assert (found["sourceRows"], found["missing"], found["repaired"]) == (9, 2, 3)
    (repaired,) = map(Serde.to_dict, lineage.outputs)
    assert repaired["name"] == orders["name"]
    assert repaired["outputFacets"]["outputStatistics"]["rowCount"] == 3
    run = Serde.to_dict(lineage.run_facets["cdc_comparison"])
    assert (run["clean"], run["epoch"], run["position"]) == (False, 2, "binlog.000001:4")


@pytest.mark.parametrize(("wrong", "asks"), [(0, False), (5, False), (6, True)])
def test_a_repair_of_many_rows_waits_for_a_person(
    sources: Path, monkeypatch: pytest.MonkeyPatch, wrong: int, asks: bool
):
    """The first comparison counts; only after the answer is anything repaired."""
    position = Position("binlog.000001", 4)
    jobs: list[bool] = []
    questions: list[str] = []

    def run_job(_self, _context, _job, *arguments, **_more):
        jobs.append("--repair" in arguments)
        missing = 0 if jobs[-1] else wrong
        one = TableReport(
            "shop.orders", "lake.shop.orders", missing=missing, repaired=wrong - missing, position=position
        )
        return documents.dump(Report("shop", 1, position, "", AT, AT, (one,))).decode()

    monkeypatch.setattr(SparkJobOperator, "run_job", run_job)
    monkeypatch.setattr("cdc_airflow.approvals.upsert_hitl_detail", lambda **given: questions.append(given["subject"]))
    monkeypatch.setenv("CDC_TEST_PASSWORD", "secret")
    file = sources / "shop.yaml"
    file.write_text(f"{file.read_text()}approvals: {{repair_rows: 5, timeout: 2h}}\n")
    context = {"ti": SimpleNamespace(id=1, try_number=1)}

    def task() -> VerifyOperator:
        return VerifyOperator(task_id="verify", source_file=str(file), repair=True)

    if not asks:
        assert task().execute(context)["shop.orders"]["missing"] == 0
        assert (jobs, questions) == ([False, True] if wrong else [False], [])
        return
    with pytest.raises(WAITING) as waiting:
        task().execute(context)
    assert (jobs, questions) == ([False], ["Repair 6 rows of shop?"])
    assert (waiting.value.method_name, timeout_of(waiting.value)) == ("approved", timedelta(hours=2))
    answer = {"chosen_options": ["Reject"], "responded_by_user": {"id": "7", "name": "Ada"}}
    with pytest.raises(AirflowFailException, match="Ada rejected it"):
        task().approved(context, answer)
    with pytest.raises(AirflowFailException, match="nobody approved in time"):
        task().approved(context, {"error": "no response", "error_type": "timeout"})
    assert jobs == [False]
    assert task().approved(context, {**answer, "chosen_options": ["Approve"]})["shop.orders"]["missing"] == 0
    assert jobs == [False, True]
