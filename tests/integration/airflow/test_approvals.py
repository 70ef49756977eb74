"""Runs by hand that wait for a person, over Airflow's API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cdc_lib import requests
from cdc_lib.config import credentials_from_environment
from cdc_lib.config.start import StartAt
from cdc_lib.model.cursor import DRAIN, Cursor
from cdc_lib.pipeline import Pipeline
from tests.harness.airflow.source import AirflowSource
from tests.harness.airflow.standalone import AirflowStandalone
from tests.harness.airflow.versions import WAITS

RUN_SECONDS = 900


def details(run_id: str, dag: str) -> str:
    return f"/api/v2/dags/{dag}/dagRuns/{run_id}/taskInstances/rewind/-1/hitlDetails"


def asked(air: AirflowStandalone, dag: str, position: str) -> tuple[str, dict[str, Any]]:
    """Ask for a move, and return the run and the question that Airflow shows."""
    run_id = air.trigger(dag, position=position, move=True, why="a test of approvals")
    settled = {WAITS, "failed", "success"}
    air.wait("the task waits", lambda: air.tasks(dag, run_id)[0]["state"] in settled, RUN_SECONDS)
    assert air.tasks(dag, run_id)[0]["state"] == WAITS, air.task_log(dag, run_id, "rewind")
    air.wait_until_process_ended(run_id)
    return run_id, air.get(details(run_id, dag))


def answered(air: AirflowStandalone, dag: str, run_id: str, option: str, words: str) -> str:
    """Answer, wait until the log says some words, and return the state of the run."""
    air.request("PATCH", details(run_id, dag), {"chosen_options": [option]})
    state = air.wait_for_run(dag, run_id, RUN_SECONDS)["state"]
    # A task may have ended before its log is written.
    try:
        air.wait(f"the log says {words!r}", lambda: words in air.task_log(dag, run_id, "rewind"))
    except TimeoutError as error:
        error.add_note(f"the run ended as {state}; the log of its task is: {air.task_log(dag, run_id, 'rewind')}")
        raise
    return str(state)


def test_a_rewind_waits_until_a_person_approves_it(
    station: AirflowStandalone, make_source: Callable[..., AirflowSource]
):
    """Nothing moves before, or after a rejection, or if the cursor has moved since the question; who approved is in the cursor."""
    source = make_source(approvals={"rewind": True})
    source.sql("CREATE TABLE orders (id INT PRIMARY KEY)")
    pipeline = Pipeline.open(source.config, credentials_from_environment(source.config.server))
    pipeline.plan(by="a test")

    def cursor() -> Cursor:
        found = source.cursor(DRAIN)
        assert found is not None
        return found

    before, dag = cursor(), f"{source.dag}.rewind"
    place = str(before.position)
    station.wait_for_dag(dag)
    station.unpause(dag)

    run_id, question = asked(station, dag, place)
    assert question["options"] == ["Approve", "Reject"]
    assert question["subject"] == f"Move the drain cursor of {source.name} to {place}?"
    assert "a test of approvals" in question["body"]
    assert cursor() == before
    assert answered(station, dag, run_id, "Reject", "admin rejected it; nothing was changed") == "failed"
    assert cursor() == before

    run_id, _ = asked(station, dag, place)
    assert answered(station, dag, run_id, "Approve", "approved by admin") == "success"
    assert cursor().epoch == before.epoch + 1
    assert cursor().moves[-1].by.endswith("approved by admin")

    run_id, _ = asked(station, dag, place)
    moved = requests.rewind(pipeline, StartAt(position=place), by="somebody else", why="a test")
    assert answered(station, dag, run_id, "Approve", "no longer what was approved") == "failed"
    assert cursor() == moved
