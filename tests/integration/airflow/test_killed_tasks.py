"""Processes of Airflow are killed during a task: its retry finishes, and no change is lost or duplicated."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing

import psutil
import pytest

from cdc_lib.jobs.request import JobStatus
from cdc_lib.store.objects.open import open_store
from cdc_lib.store.observations import task_retries
from tests.harness.airflow.source import OWN_JAVA, PASSWORD_VARIABLE, AirflowSource
from tests.harness.airflow.standalone import AirflowStandalone
from tests.harness.network.tcp_proxy import TcpProxy
from tests.harness.servers import MySqlServer
from tests.harness.spark.server import RunningSparkServer

RETRY_SECONDS = 900
"""Timeout of a run on a busy machine: Airflow must detect the kill, wait, and retry."""

STALL_AFTER = 100_000
"""Bytes of a dump: more than the head of a file, less than the rows that are drained."""


@pytest.fixture
def proxy(mysql_server: MySqlServer) -> Iterator[TcpProxy]:
    """A proxy between Airflow and the server, which can stall."""
    with TcpProxy(mysql_server.host, mysql_server.port, stays=True) as proxy:
        yield proxy


@pytest.fixture
def proxied(proxy: TcpProxy, source: AirflowSource, station: AirflowStandalone) -> AirflowSource:
    """A source proxied the proxy; its tables are in the lake, but a megabyte of changes is not."""
    user = {"user": source.server.cdc_user, "password_env": PASSWORD_VARIABLE}
    source.write(server={"host": proxy.host, "port": proxy.own_port, **user})
    source.sql("CREATE TABLE notes (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(3000))")
    run_id = station.trigger(source.dag)
    assert station.wait_for_run(source.dag, run_id)["state"] == "success"
    source.sql(
        "INSERT INTO notes (v) VALUES " + ", ".join("(REPEAT('n', 2500))" for _ in range(400)),
        "UPDATE orders SET price = price + 1",
        "DELETE FROM orders WHERE id = 2",
    )
    return source


def attempts(air: AirflowStandalone, source: AirflowSource, run_id: str, task_id: str) -> list[int]:
    return sorted(t["try_number"] for t in air.tasks(source.dag, run_id) if t["task_id"] == task_id)


def drain_in_progress(air: AirflowStandalone, source: AirflowSource, run_id: str, proxy: TcpProxy) -> psutil.Process:
    """Return the process of a drain that waits for the rest of its window."""

    def process() -> psutil.Process | None:
        running = {t["task_id"] for t in air.tasks(source.dag, run_id) if t["state"] == "running"}
        here = [
            connection.pid
            for connection in psutil.net_connections("tcp")
            if connection.raddr
            and connection.raddr.port == proxy.own_port
            and connection.status == "ESTABLISHED"
            and connection.pid
        ]
        mine = [psutil.Process(pid) for pid in here if psutil.Process().pid != pid]
        return mine[0] if mine and "drain" in running and proxy.stalled.is_set() else None

    return air.wait("a drain waits for its window", process)


def finished(air: AirflowStandalone, source: AirflowSource, run_id: str, task_id: str, before: dict[str, str]) -> None:
    """The run succeeds at the second attempt, and earlier objects are unchanged."""
    assert air.wait_for_run(source.dag, run_id, RETRY_SECONDS)["state"] == "success"
    assert attempts(air, source, run_id, task_id)[-1] == 2
    retries = task_retries(open_store(source.config.store), source.name)
    assert retries is not None
    assert retries.by_task[task_id] == 1
    assert source.differences() == []
    after = source.state_hashes()
    assert {key: after[key] for key in before if "/" in key} == {key: before[key] for key in before if "/" in key}


@pytest.mark.parametrize("who", ["the task's process", "its worker too"])
def test_a_drain_whose_process_is_killed_is_finished_by_its_retry(
    station: AirflowStandalone, proxied: AirflowSource, proxy: TcpProxy, who: str
):
    """In the middle of a window: the retry drains the same window, and each change is in the lake once."""
    before = proxied.state_hashes()
    proxy.stall_after = STALL_AFTER
    run_id = station.trigger(proxied.dag)
    process = drain_in_progress(station, proxied, run_id, proxy)
    proxy.stall_after = None
    worker = process.parent()
    assert worker is not None
    if who == "its worker too":
        worker.kill()
    process.kill()
    finished(station, proxied, run_id, "drain", before)


@pytest.mark.slow
def test_marking_a_drain_that_runs_ends_it_and_the_next_run_reads_the_same_window(
    station: AirflowStandalone, proxied: AirflowSource, proxy: TcpProxy
):
    """Marked success it has no batch, so that the ack fails and moves nothing; marked failed it fails its run."""
    before = proxied.state_hashes()
    for state in ("success", "failed"):
        proxy.stalled.clear()
        proxy.stall_after = STALL_AFTER
        run_id = station.trigger(proxied.dag)
        process = drain_in_progress(station, proxied, run_id, proxy)
        (drain,) = (
            t for t in station.tasks(proxied.dag, run_id) if t["task_id"] == "drain" and t["state"] == "running"
        )
        path = f"/api/v2/dags/{proxied.dag}/dagRuns/{run_id}/taskInstances/drain/{drain['map_index']}"
        station.request("PATCH", path, {"new_state": state})
        process.wait(180)
        assert station.wait_for_run(proxied.dag, run_id)["state"] == "failed"
        ack = next(task for task in station.tasks(proxied.dag, run_id) if task["task_id"] == "ack_drain")
        assert ack["state"] == {"success": "failed", "failed": "upstream_failed"}[state]
        assert proxied.state_hashes() == before
    proxy.stall_after = None
    run_id = station.trigger(proxied.dag)
    assert station.wait_for_run(proxied.dag, run_id)["state"] == "success"
    assert proxied.differences() == []


def test_killing_the_task_of_a_merge_ends_its_spark_and_the_retry_finishes(
    station: AirflowStandalone, proxied: AirflowSource
):
    """Spark must end with its task, so that no two merges run at once."""
    before = proxied.state_hashes()
    proxied.write(merge={**OWN_JAVA, "application_url": "http://spark.example/{id}/"})
    run_id = station.trigger(proxied.dag)

    def job() -> psutil.Process | None:
        for process in psutil.process_iter(["cmdline"]):
            words = process.info["cmdline"] or []
            if (
                "spark_jobs.merge" in words
                and "python" in words[0]
                and any(proxied.file.name in word for word in words)
            ):
                return process
        return None

    merge = station.wait("the merge runs", job)
    task = merge.parents()[1]  # the parent is the shell that watches over the job
    task.kill()
    merge.wait(180)
    finished(station, proxied, run_id, "merge", before)
    buttons = station.get(f"/dags/{proxied.dag}/dagRuns/{run_id}/taskInstances/merge/links")["extra_links"]
    assert re.fullmatch(r"http://spark\.example/local-\d+/", buttons["Spark UI"])


@pytest.mark.slow
@pytest.mark.parametrize("who", ["the scheduler alone", "its workers and tasks too"])
def test_a_run_whose_scheduler_is_killed_is_finished_when_the_scheduler_is_started_again(
    station: AirflowStandalone, proxied: AirflowSource, proxy: TcpProxy, who: str
):
    """In the middle of a window. Without its workers, the old task may still run when the scheduler starts it once more.

    The table without a key keeps every change: one that is lost or repeated would show.
    """
    proxied.sql("CREATE TABLE journal (entry INT)", *(f"INSERT INTO journal VALUES ({n})" for n in range(50)))
    before = proxied.state_hashes()
    proxy.stall_after = STALL_AFTER
    run_id = station.trigger(proxied.dag)
    drain_in_progress(station, proxied, run_id, proxy)
    with station.killed("scheduler", with_children=who != "the scheduler alone"):
        proxy.stall_after = None
        proxied.sql("INSERT INTO journal VALUES (50)", "UPDATE orders SET price = price + 1")
    assert station.wait_for_run(proxied.dag, run_id, RETRY_SECONDS)["state"] == "success"
    after = proxied.state_hashes()
    assert {key: after[key] for key in before if "/" in key} == {key: before[key] for key in before if "/" in key}
    run_id = station.trigger(proxied.dag)  # what was written meanwhile
    assert station.wait_for_run(proxied.dag, run_id, RETRY_SECONDS)["state"] == "success"
    assert proxied.differences() == []


@pytest.mark.slow
def test_a_merge_that_waits_for_its_spark_job_takes_up_the_same_job_when_its_triggerer_is_killed(
    station: AirflowStandalone, make_source: Callable[..., AirflowSource], spark_server: RunningSparkServer
):
    """The job runs on the Spark server meanwhile: another writer holds the lock of the catalog until the new triggerer waits for it."""
    source = make_source()
    catalog = source.folder / "catalog.db"
    long_wait = {"type": "jdbc", "uri": f"jdbc:sqlite:{catalog}?busy_timeout=900000"}
    source.write(lake={**long_wait, "warehouse": f"file://{source.folder}/lake"})
    source.sql("CREATE TABLE orders (id INT PRIMARY KEY, item VARCHAR(40))", "INSERT INTO orders VALUES (1, 'bell')")
    assert station.wait_for_run(source.dag, station.trigger(source.dag))["state"] == "success"
    source.sql("INSERT INTO orders VALUES (2, 'lamp')", "UPDATE orders SET item = 'horn' WHERE id = 1")

    def merges() -> list[JobStatus]:
        return [job for job in spark_server.client.jobs() if (job.source, job.job) == (source.name, "merge")]

    def waits_in() -> int | None:
        """Return the triggerer in which the merge waits."""
        (merge,) = (one for one in station.tasks(source.dag, run_id) if one["task_id"] == "merge")
        return merge["triggerer_job"]["id"] if merge["state"] == "deferred" and merge["triggerer_job"] else None

    jobs_before = len(merges())
    with closing(sqlite3.connect(catalog, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        run_id = station.trigger(source.dag)
        first = station.wait("the merge waits for its job", waits_in, RETRY_SECONDS)
        with station.killed("triggerer"):
            (job,) = merges()[jobs_before:]
        station.wait("another triggerer waits for the job", lambda: waits_in() not in (None, first), RETRY_SECONDS)
        assert spark_server.client.job(job.id).state == "running"
    assert station.wait_for_run(source.dag, run_id, RETRY_SECONDS)["state"] == "success"
    assert [one.id for one in merges()[jobs_before:]] == [job.id]
    assert attempts(station, source, run_id, "merge") == [1]
    assert source.differences() == []
