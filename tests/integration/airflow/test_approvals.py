"""Runs by hand that wait for a person, over Airflow's API."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cdc_lib import requests
from cdc_lib.config import credentials_from_environment
from cdc_lib.config.start import StartAt
from cdc_lib.model.cursor import DRAIN, Cursor
from cdc_lib.model.table_name import TableName
from cdc_lib.pipeline import Pipeline
from cdc_lib.store.erasures import erasures_of
from cdc_lib.store.objects.open import open_store
from tests.harness.airflow.source import AirflowSource
from tests.harness.airflow.standalone import AirflowStandalone
from tests.harness.airflow.versions import WAITS

RUN_SECONDS = 900


def details(run_id: str, dag: str) -> str:
    return f"/api/v2/dags/{dag}/dagRuns/{run_id}/taskInstances/{task_of(dag)}/-1/hitlDetails"


def task_of(dag: str) -> str:
    return dag.rpartition(".")[2]


def asked(air: AirflowStandalone, dag: str, **form: Any) -> tuple[str, dict[str, Any]]:
    """Fill in a form, and return the run and the question that Airflow shows."""
    run_id = air.trigger(dag, **form)
    settled = {WAITS, "failed", "success"}
    air.wait("the task waits", lambda: air.tasks(dag, run_id)[0]["state"] in settled, RUN_SECONDS)
    assert air.tasks(dag, run_id)[0]["state"] == WAITS, air.task_log(dag, run_id, task_of(dag))
    air.wait_until_process_ended(run_id)
    return run_id, air.get(details(run_id, dag))


def answered(air: AirflowStandalone, dag: str, run_id: str, option: str, words: str) -> str:
    """Answer, wait until the log says some words, and return the state of the run."""
    air.request("PATCH", details(run_id, dag), {"chosen_options": [option]})
    state = air.wait_for_run(dag, run_id, RUN_SECONDS)["state"]
    # A task may have ended before its log is written.
    try:
        air.wait(f"the log says {words!r}", lambda: words in air.task_log(dag, run_id, task_of(dag)))
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
    form = {"position": place, "move": True, "why": "a test of approvals"}
    station.wait_for_dag(dag)
    station.unpause(dag)

    run_id, question = asked(station, dag, **form)
    assert question["options"] == ["Approve", "Reject"]
    assert question["subject"] == f"Move the drain cursor of {source.name} to {place}?"
    assert "a test of approvals" in question["body"]
    assert cursor() == before
    assert answered(station, dag, run_id, "Reject", "admin rejected it; nothing was changed") == "failed"
    assert cursor() == before

    run_id, _ = asked(station, dag, **form)
    assert answered(station, dag, run_id, "Approve", "approved by admin") == "success"
    assert cursor().epoch == before.epoch + 1
    assert cursor().moves[-1].by.endswith("approved by admin")

    run_id, _ = asked(station, dag, **form)
    moved = requests.rewind(pipeline, StartAt(position=place), by="somebody else", why="a test")
    assert answered(station, dag, run_id, "Approve", "no longer what was approved") == "failed"
    assert cursor() == moved


def test_an_erasure_waits_until_a_person_approves_it(
    station: AirflowStandalone, make_source: Callable[..., AirflowSource]
):
    """Nothing is erased before, or after a rejection, or while the source has the row; then no byte of it is left."""
    source = make_source(store={"url": f"file://{station.home}/erased", "keep_batches_for": "365d"})
    mail = "ann.lee@example.com"
    source.sql(
        "CREATE TABLE people (id INT PRIMARY KEY, mail VARCHAR(40))",
        f"INSERT INTO people VALUES (1, 'bob@example.com'), (2, '{mail}')",
    )
    dag, form = f"{source.dag}.erase", {"table": f"{source.name}.people", "keys": ["2"], "columns": ["mail"]}
    assert station.wait_for_run(source.dag, station.trigger(source.dag), RUN_SECONDS)["state"] == "success"
    folders = [Path(station.home) / "erased", source.folder / "lake"]

    def found() -> list[Path]:
        return [
            file for one in folders for file in one.rglob("*") if file.is_file() and mail.encode() in file.read_bytes()
        ]

    before = found()
    assert before

    run_id, question = asked(station, dag, **form)
    assert question["subject"].startswith(f"Erase 1 row of {source.name}.people?")
    assert mail not in json.dumps(question)
    assert answered(station, dag, run_id, "Reject", "admin rejected it; nothing was changed") == "failed"
    run_id, _ = asked(station, dag, **form)
    assert answered(station, dag, run_id, "Approve", "the source still has 1 row of these") == "failed"
    assert found() == before

    source.sql("DELETE FROM people WHERE id = 2")
    assert station.wait_for_run(source.dag, station.trigger(source.dag), RUN_SECONDS)["state"] == "success"
    run_id, _ = asked(station, dag, **form)
    assert answered(station, dag, run_id, "Approve", "approved by admin") == "success"
    assert found() == []
    assert mail not in station.task_log(dag, run_id, "erase")
    assert source.differences() == []
    (erasure,) = erasures_of(open_store(source.config.store), source.name, TableName(source.name, "people"))
    assert erasure.ended_at is not None
    assert erasure.asked_by.endswith("approved by admin")
