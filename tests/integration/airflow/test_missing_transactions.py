"""A plan at a server that never had transactions that were read, where the source file says to ask a person."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cdc_airflow.airflow_versions import AirflowFailException
from cdc_airflow.operators import PlanOperator
from cdc_lib.errors import TransactionsMissing
from cdc_lib.model.cursor import DRAIN
from tests.harness.airflow.source import PASSWORD_VARIABLE, AirflowSource
from tests.harness.airflow.standalone import AirflowStandalone
from tests.harness.airflow.versions import WAITING, WAITS
from tests.harness.network.former_server import FORMER, LOST, read_from_a_former_server
from tests.harness.servers import MySqlServer

CONTEXT: Any = {"ti": SimpleNamespace(id=1, dag_id="d", run_id="r", task_id="plan", try_number=1)}
ASK = {"fallback_interval": "1s", "on_missing_transactions": "ask"}


@pytest.fixture
def source(
    mysql_server: MySqlServer, mysql_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AirflowSource:
    """A source whose file says to ask; no Airflow runs."""
    monkeypatch.setenv(PASSWORD_VARIABLE, mysql_server.cdc_password)
    source = AirflowSource(mysql_database, mysql_server, tmp_path, tmp_path / "kept")
    return source.write(failover=ASK, start="latest")


def plan(source: AirflowSource) -> PlanOperator:
    return PlanOperator(task_id="plan", source_file=str(source.file), skip_when_idle=False)


def test_a_plan_continues_without_transactions_when_a_person_approved_it(
    source: AirflowSource, monkeypatch: pytest.MonkeyPatch
):
    """Nothing moves before, or after a rejection, or if more is missing by then; the cursor says who approved."""
    asked: list[dict[str, Any]] = []
    monkeypatch.setattr("cdc_airflow.approvals.upsert_hitl_detail", lambda **given: asked.append(given))
    before = read_from_a_former_server(source)
    with pytest.raises(WAITING) as waiting:
        plan(source).execute(CONTEXT)
    assert asked[0]["subject"] == f"Continue {source.name} at a server that lacks transactions?"
    assert LOST in asked[0]["body"]
    kept = waiting.value.kwargs
    assert kept is not None
    assert kept["missing"] == LOST
    person = {"responded_by_user": {"id": "7", "name": "Ada"}}
    with pytest.raises(AirflowFailException, match="Ada rejected it"):
        plan(source).approved(CONTEXT, {**person, "chosen_options": ["Reject"]}, **kept)
    with pytest.raises(TransactionsMissing):
        plan(source).approved(
            CONTEXT, {**person, "chosen_options": ["Approve"]}, server=kept["server"], missing=f"{FORMER}:1-2"
        )
    assert source.cursor(DRAIN) == before
    plan(source).approved(CONTEXT, {**person, "chosen_options": ["Approve"]}, **kept)
    after = source.cursor(DRAIN)
    assert after is not None
    assert after.epoch == before.epoch + 1
    assert after.epoch_changes[-1].by == "airflow d r plan try 1, approved by Ada"
    assert f"accepted that it never had {LOST}" in after.epoch_changes[-1].why


def test_nobody_is_asked_unless_the_source_file_says_so(source: AirflowSource, monkeypatch: pytest.MonkeyPatch):
    """The plan fails, as it does on the command line."""
    monkeypatch.setattr("cdc_airflow.approvals.upsert_hitl_detail", lambda **given: pytest.fail(f"asked {given}"))
    read_from_a_former_server(source)
    source.write(failover=None)
    with pytest.raises(TransactionsMissing, match="on_missing_transactions: ignore"):
        plan(source).execute(CONTEXT)


@pytest.mark.slow
def test_a_run_waits_for_the_answer_and_goes_on(station: AirflowStandalone, make_source: Callable[..., AirflowSource]):
    """The whole run follows in the same run: the windows are drained, merged and acknowledged."""
    source = make_source(failover=ASK, start="latest")
    source.sql("CREATE TABLE orders (id INT PRIMARY KEY)")
    read_from_a_former_server(source)
    source.sql("INSERT INTO orders VALUES (1), (2)")
    run_id = station.trigger(source.dag)
    where = f"/api/v2/dags/{source.dag}/dagRuns/{run_id}/taskInstances/plan/-1/hitlDetails"
    states = lambda: {one["task_id"]: one["state"] for one in station.tasks(source.dag, run_id)}  # noqa: E731
    station.wait("the plan waits", lambda: states().get("plan") in {WAITS, "failed", "success"}, 900)
    assert states()["plan"] == WAITS, station.task_log(source.dag, run_id, "plan")
    station.wait_until_process_ended(run_id)
    assert LOST in station.get(where)["body"]
    station.request("PATCH", where, {"chosen_options": ["Approve"]})
    assert station.wait_for_run(source.dag, run_id, 900)["state"] == "success"
    assert states()["merge"] == "success"
    assert source.differences() == []
