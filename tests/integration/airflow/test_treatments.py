"""What else people do to runs in Airflow: whole runs are cleared, ended tasks are marked, a DAG is deleted, a merge is ended.

:mod:`tests.integration.airflow.test_tasks` has single tasks that are cleared, or marked while they fail.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from cdc_lib.model.cursor import DRAIN, LAKE
from tests.harness.airflow.source import AirflowSource
from tests.harness.airflow.standalone import AirflowStandalone
from tests.harness.spark.server import RunningSparkServer

Make = Callable[..., AirflowSource]

TASKS = ["plan", "drain", "ack_drain", "plan_merge", "merge", "ack_lake"]
ENDED = {"success", "failed", "skipped", "upstream_failed", "removed"}


@pytest.fixture(scope="module")
def shop(station: AirflowStandalone, make_shared_source: Make) -> AirflowSource:
    """A source that was merged once. Of its table without a key, every change stays: one that is lost or repeated would show."""
    source = make_shared_source()
    source.sql(
        "CREATE TABLE orders (id INT PRIMARY KEY, item VARCHAR(40))",
        "CREATE TABLE journal (entry INT)",
        "INSERT INTO orders VALUES (1, 'bicycle'), (2, 'bell')",
        "INSERT INTO journal VALUES (1)",
    )
    succeeds(station, source.dag, station.trigger(source.dag))
    return source


def succeeds(air: AirflowStandalone, dag: str, run_id: str) -> None:
    """Wait for the end of a run."""
    state = air.wait_for_run(dag, run_id)["state"]
    failed = [task for task in air.tasks(dag, run_id) if task["state"] == "failed"]
    logs = [air.task_log(dag, run_id, t["task_id"], t["try_number"], t["map_index"]) for t in failed]
    assert state == "success", "\n\n".join(logs)


def changed(source: AirflowSource, number: int) -> None:
    """Write to both tables."""
    source.sql(f"INSERT INTO journal VALUES ({number})", f"REPLACE INTO orders VALUES (1, 'change {number}')")


def clear_run(air: AirflowStandalone, dag: str, run_id: str) -> None:
    """Clear all tasks of a run, as the button of the run does."""
    body = {"dry_run": False, "only_failed": False}
    air.request("POST", f"/api/v2/dags/{dag}/dagRuns/{run_id}/clear", body)


def settled(air: AirflowStandalone, dag: str, run_id: str) -> None:
    """Wait until no task of a run is open."""
    air.wait("no task is open", lambda: {task["state"] for task in air.tasks(dag, run_id)} <= ENDED)


def test_whole_old_runs_are_cleared_beside_new_ones(station: AirflowStandalone, shop: AirflowSource):
    """An old run that is done again finds its work done, and what is new: two runs, and the two before them, at once."""
    changed(shop, 2)
    old = [station.trigger(shop.dag)]
    succeeds(station, shop.dag, old[0])
    before = shop.state_hashes()
    clear_run(station, shop.dag, old[0])
    succeeds(station, shop.dag, old[0])
    assert shop.state_hashes() == before

    changed(shop, 3)
    old.append(station.trigger(shop.dag))
    succeeds(station, shop.dag, old[1])
    changed(shop, 4)
    new = [station.trigger(shop.dag), station.trigger(shop.dag)]
    for run_id in old:
        clear_run(station, shop.dag, run_id)
    changed(shop, 5)
    for run_id in (*old, *new):
        succeeds(station, shop.dag, run_id)
    succeeds(station, shop.dag, station.trigger(shop.dag))
    assert shop.differences() == []


def test_marks_of_tasks_that_have_ended_change_nothing(station: AirflowStandalone, shop: AirflowSource):
    """Each task of a run is marked failed and success again; then the run is marked, and the next run goes on from the cursors."""
    changed(shop, 6)
    run_id = station.trigger(shop.dag)
    succeeds(station, shop.dag, run_id)
    before = shop.state_hashes()
    for task_id in TASKS:
        path = f"/api/v2/dags/{shop.dag}/dagRuns/{run_id}/taskInstances/{task_id}"
        path += "/0" if task_id == "drain" else ""
        for state in ("failed", "success"):
            station.request("PATCH", path, {"new_state": state})
            settled(station, shop.dag, run_id)
            assert shop.state_hashes() == before, (task_id, state)
    for state in ("failed", "success"):
        station.request("PATCH", f"/api/v2/dags/{shop.dag}/dagRuns/{run_id}", {"state": state})
        settled(station, shop.dag, run_id)
    assert shop.state_hashes() == before
    changed(shop, 7)
    succeeds(station, shop.dag, station.trigger(shop.dag))
    assert shop.differences() == []


def test_a_merge_that_is_marked_before_it_starts_moves_nothing(station: AirflowStandalone, make_source: Make):
    """It waits for its pool. Marked success it has no cut, so that the ack fails; marked failed it fails its run."""
    source = make_source()
    pool = {"name": f"pool_of_{source.name}", "slots": 0}
    station.request("POST", "/api/v2/pools", pool)
    source.write(merge={**source.merge, "pool": pool["name"]})
    source.sql("CREATE TABLE orders (id INT PRIMARY KEY, item VARCHAR(40))", "INSERT INTO orders VALUES (1, 'bell')")
    task = f"/dags/{source.dag}/tasks/merge"
    station.wait("the file is read again", lambda: station.get(task)["pool"] == pool["name"])
    for state, of_ack in (("success", "failed"), ("failed", "upstream_failed")):
        run_id = station.trigger(source.dag)
        station.wait("the merge waits", lambda run_id=run_id: _state(station, source, run_id, "merge") == "scheduled")
        before = source.cursor(LAKE)
        station.mark(source.dag, run_id, "merge", state)
        assert station.wait_for_run(source.dag, run_id)["state"] == "failed"
        assert _state(station, source, run_id, "ack_lake") == of_ack
        assert source.cursor(LAKE) == before
    open_pool = {"pool": pool["name"], "slots": 1, "include_deferred": False}
    station.request("PATCH", f"/api/v2/pools/{pool['name']}", open_pool)
    succeeds(station, source.dag, station.trigger(source.dag))
    assert source.differences() == []


def _state(air: AirflowStandalone, source: AirflowSource, run_id: str, task_id: str) -> str:
    return next(str(task["state"]) for task in air.tasks(source.dag, run_id) if task["task_id"] == task_id)


def test_a_deleted_dag_comes_back_paused_and_goes_on(station: AirflowStandalone, shop: AirflowSource):
    """Airflow forgets its runs; the cursors are in the store. What runs on request alone is not paused."""
    before = shop.cursor(DRAIN)
    station.request("DELETE", f"/api/v2/dags/{shop.dag}")
    station.request("DELETE", f"/api/v2/dags/{shop.dag}.snapshot")
    changed(shop, 8)
    shop.write()  # its file is read again at once, and not when its interval is over
    assert station.wait_for_dag(shop.dag)["is_paused"]
    assert not station.wait_for_dag(f"{shop.dag}.snapshot")["is_paused"]
    succeeds(station, f"{shop.dag}.snapshot", station.trigger(f"{shop.dag}.snapshot", tables=[f"{shop.name}.orders"]))
    assert station.dag_runs(shop.dag) == []
    station.unpause(shop.dag)
    succeeds(station, shop.dag, station.trigger(shop.dag))
    after = shop.cursor(DRAIN)
    assert before is not None
    assert after is not None
    assert after.moves[: len(before.moves)] == before.moves
    assert shop.differences() == []


def test_marking_a_merge_that_waits_as_failed_ends_its_spark_job(
    station: AirflowStandalone, make_source: Make, spark_server: RunningSparkServer
):
    """The task is deferred, because another writer holds the lock of the catalog. Cleared, it merges the same batches."""
    source = make_source()
    catalog = source.folder / "catalog.db"
    lake: dict[str, Any] = {"type": "jdbc", "uri": f"jdbc:sqlite:{catalog}?busy_timeout=900000"}
    source.write(lake={**lake, "warehouse": f"file://{source.folder}/lake"})
    source.sql("CREATE TABLE orders (id INT PRIMARY KEY, item VARCHAR(40))", "INSERT INTO orders VALUES (1, 'bell')")
    succeeds(station, source.dag, station.trigger(source.dag))
    source.sql("INSERT INTO orders VALUES (2, 'lamp')", "UPDATE orders SET item = 'horn' WHERE id = 1")
    before = source.cursor(LAKE)

    def job() -> Any:
        """Return the last merge of the source."""
        return [one for one in spark_server.client.jobs() if (one.source, one.job) == (source.name, "merge")][-1]

    with closing(sqlite3.connect(catalog, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        run_id = station.trigger(source.dag)
        # A trigger that the triggerer has not started yet is removed without a call: its job would go on to its end.
        station.wait(
            "the triggerer waits for the job",
            lambda: "The triggerer waits" in str(station.log_lines(source.dag, run_id, "merge")),
        )
        assert _state(station, source, run_id, "merge") == "deferred"
        assert job().state == "running"
        station.mark(source.dag, run_id, "merge", "failed")
        station.wait("the job is ended", lambda: job().state == "cancelled", 120)
    assert station.wait_for_run(source.dag, run_id)["state"] == "failed"
    assert source.cursor(LAKE) is not None
    assert before is not None
    assert source.cursor(LAKE).position == before.position  # type: ignore[union-attr]
    station.clear(source.dag, run_id, "merge", downstream=True)
    succeeds(station, source.dag, run_id)
    assert source.differences() == []
