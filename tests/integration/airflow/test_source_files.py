"""DAGs when source files are added, changed and removed; and the DAG that collects old batches of all sources."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from cdc_airflow.dag_ids import MAINTENANCE
from cdc_lib.model.cursor import DRAIN, LAKE
from cdc_lib.store.objects.local import LocalStore
from cdc_lib.store.windows import stored_windows
from tests.harness.airflow.source import AirflowSource
from tests.harness.airflow.standalone import AirflowStandalone

Make = Callable[..., AirflowSource]


def run(air: AirflowStandalone, dag: str) -> str:
    run_id = air.trigger(dag)
    assert air.wait_for_run(dag, run_id)["state"] == "success"
    return run_id


def is_listed(air: AirflowStandalone, dag: str) -> bool:
    return any(listed["dag_id"] == dag for listed in air.get("/dags?limit=200")["dags"])


def test_removing_a_source_file_removes_its_dag_and_keeps_its_cursors(station: AirflowStandalone, make_source: Make):
    """Another source still runs; when the file is back, the source continues at its cursor."""
    removed, kept = make_source(start="latest"), make_source(start="latest")
    for source in (removed, kept):
        source.sql("CREATE TABLE a (id INT PRIMARY KEY)")
        run(station, source.dag)
    before, config = removed.cursor(DRAIN), removed.config
    store = LocalStore(config.store.folder)
    removed.file.unlink()
    station.wait("the DAG is removed", lambda: not is_listed(station, removed.dag))
    run(station, kept.dag)
    assert store.get(f"{removed.name}/cursors/drain.json") is not None
    removed.write(drain={"parallelism": 5})
    station.wait("the DAG is back", lambda: is_listed(station, removed.dag))
    run(station, removed.dag)
    after = removed.cursor(DRAIN)
    assert before is not None
    assert after is not None
    assert after.moves[: len(before.moves)] == before.moves
    assert after.snapshots == before.snapshots


def test_the_maintenance_collects_each_source_in_its_own_task(
    station: AirflowStandalone, make_source: Make, monkeypatch: pytest.MonkeyPatch
):
    """Old batches that the lake has are removed; only the source with the unreadable store fails."""
    source, broken = make_source(start="latest"), make_source(start="latest")
    source.sql("CREATE TABLE a (id INT PRIMARY KEY)")
    run(station, source.dag)
    source.sql("CREATE TABLE b (id INT PRIMARY KEY)")  # no rows: a window without work for Spark
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
    station.wait("both tasks are listed", lambda: tasks <= task_ids(station))
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
