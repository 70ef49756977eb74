"""What becomes of DAGs when source files come, change and go; and the DAG that collects old batches of all of them."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from cdc_airflow.factory import MAINTENANCE
from cdc_lib.model.cursor import DRAIN, LAKE
from cdc_lib.store.objects.local import LocalStore
from cdc_lib.store.windows import stored_windows
from tests.harness.airflow import AirflowStandalone
from tests.harness.airflow_source import AirflowSource

pytestmark = pytest.mark.timeout(600)

Make = Callable[..., AirflowSource]


def run(air: AirflowStandalone, dag: str) -> str:
    run_id = air.trigger(dag)
    assert air.wait_for_run(dag, run_id)["state"] == "success"
    return run_id


def is_listed(air: AirflowStandalone, dag: str) -> bool:
    return any(found["dag_id"] == dag for found in air.get("/dags?limit=200")["dags"])


def test_a_source_file_that_goes_takes_its_dag_along_and_leaves_its_cursors(
    station: AirflowStandalone, make_source: Make
):
    """Another source continues to run; the file comes back, and the source continues where it was."""
    going, staying = make_source(start="latest"), make_source(start="latest")
    for source in (going, staying):
        source.sql("CREATE TABLE a (id INT PRIMARY KEY)")
        run(station, source.dag)
    before, config = going.cursor(DRAIN), going.config
    store = LocalStore(config.store.folder)
    going.file.unlink()
    station.wait("the DAG is gone", lambda: not is_listed(station, going.dag))
    run(station, staying.dag)
    assert store.get(f"{going.name}/cursors/drain.json") is not None
    going.write(drain={"parallelism": 5})
    station.wait("the DAG is back", lambda: is_listed(station, going.dag))
    run(station, going.dag)
    after = going.cursor(DRAIN)
    assert before is not None
    assert after is not None
    assert after.moves[: len(before.moves)] == before.moves
    assert after.snapshots == before.snapshots


def test_the_maintenance_collects_each_source_by_itself(
    station: AirflowStandalone, make_source: Make, monkeypatch: pytest.MonkeyPatch
):
    """Old batches that the lake has go; a source whose store cannot be read fails alone."""
    source, broken = make_source(start="latest"), make_source(start="latest")
    source.sql("CREATE TABLE a (id INT PRIMARY KEY)")
    run(station, source.dag)
    source.sql("CREATE TABLE b (id INT PRIMARY KEY)")  # no rows: nothing for Spark to do, and a window all the same
    run(station, source.dag)
    store = LocalStore(source.config.store.folder)
    for info in store.list(f"{source.name}/batches/"):
        os.utime(store.root / info.key, (0, 0))
    assert stored_windows(store, source.name)
    lake, drain = source.cursor(LAKE), source.cursor(DRAIN)
    assert lake is not None
    assert drain is not None
    assert lake.position == drain.position
    run(station, broken.dag)
    wrong = LocalStore(broken.config.store.folder)
    wrong.put(f"{broken.name}/cursors/lake.json", b"{}")
    station.wait_for_dag(MAINTENANCE)
    station.unpause(MAINTENANCE)
    tasks = {f"collect_{source.name}", f"collect_{broken.name}"}
    station.wait("both tasks are there", lambda: tasks <= task_ids(station))
    run_id = station.trigger(MAINTENANCE)
    state_of = lambda: {t["task_id"]: t["state"] for t in station.tasks(MAINTENANCE, run_id)}  # noqa: E731
    station.wait("both have ended", lambda: {state_of()[task] for task in tasks} <= {"success", "failed"})
    assert (state_of()[f"collect_{source.name}"], state_of()[f"collect_{broken.name}"]) == ("success", "failed")
    assert "lake.json" in station.task_log(MAINTENANCE, run_id, f"collect_{broken.name}")
    assert stored_windows(store, source.name) == []
    station.pause(MAINTENANCE)
    run(station, source.dag)


def task_ids(air: AirflowStandalone) -> set[str]:
    return {task["task_id"] for task in air.get(f"/dags/{MAINTENANCE}/tasks")["tasks"]}
