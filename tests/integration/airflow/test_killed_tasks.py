"""Processes of Airflow are killed in the middle of a task: its retry finishes, nothing is lost and nothing is doubled."""

from __future__ import annotations

from collections.abc import Iterator

import psutil
import pytest

from tests.harness.airflow import AirflowStandalone
from tests.harness.airflow_source import PASSWORD_VARIABLE, AirflowSource
from tests.harness.servers import MySqlServer
from tests.harness.tcp_proxy import TcpProxy

pytestmark = pytest.mark.timeout(1200)

ALL_OF_A_RETRY = 900
"""Seconds that a run may take on a busy machine: what was killed is missed, waited for and done again."""

STALLED_BEHIND = 100_000
"""Bytes of a dump: more than the head of a file, less than the rows that are drained."""


@pytest.fixture(scope="module")
def airflow_settings() -> dict[str, str]:
    """A worker that is gone is missed after half a minute, not after five."""
    return {
        "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "30",
        "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "5",
    }


@pytest.fixture
def proxy(mysql_server: MySqlServer) -> Iterator[TcpProxy]:
    """What stands between Airflow and the server, and can stand still."""
    with TcpProxy(mysql_server.host, mysql_server.port, stays=True) as proxy:
        yield proxy


@pytest.fixture
def behind(proxy: TcpProxy, source: AirflowSource, station: AirflowStandalone) -> AirflowSource:
    """A source behind the proxy whose tables are in the lake, and with a megabyte of changes that is not."""
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

    def found() -> psutil.Process | None:
        running = {t["task_id"] for t in air.tasks(source.dag, run_id) if t["state"] == "running"}
        here = [
            one.pid
            for one in psutil.net_connections("tcp")
            if one.raddr and one.raddr.port == proxy.own_port and one.status == "ESTABLISHED" and one.pid
        ]
        mine = [psutil.Process(pid) for pid in here if psutil.Process().pid != pid]
        return mine[0] if mine and "drain" in running and proxy.stalled.is_set() else None

    return air.wait("a drain waits for its window", found)


def finished(air: AirflowStandalone, source: AirflowSource, run_id: str, task_id: str, before: dict[str, str]) -> None:
    """The run ends well after a second attempt, and what there was stands."""
    assert air.wait_for_run(source.dag, run_id, ALL_OF_A_RETRY)["state"] == "success"
    assert attempts(air, source, run_id, task_id)[-1] == 2
    assert source.differences() == []
    after = source.standing()
    assert {key: after[key] for key in before if "/" in key} == {key: before[key] for key in before if "/" in key}


@pytest.mark.parametrize("who", ["the task's process", "its worker too"])
def test_a_drain_whose_process_is_killed_is_finished_by_its_retry(
    station: AirflowStandalone, behind: AirflowSource, proxy: TcpProxy, who: str
):
    """In the middle of a window: the retry drains the same one, and everything is in the lake once."""
    before = behind.standing()
    proxy.stall_after = STALLED_BEHIND
    run_id = station.trigger(behind.dag)
    process = drain_in_progress(station, behind, run_id, proxy)
    proxy.stall_after = None
    worker = process.parent()
    assert worker is not None
    if who == "its worker too":
        worker.kill()
    process.kill()
    finished(station, behind, run_id, "drain", before)


def test_a_merge_whose_task_is_killed_takes_its_spark_along_and_is_finished_by_the_retry(
    station: AirflowStandalone, behind: AirflowSource
):
    """Two merges at once would be right, but not wanted."""
    before = behind.standing()
    run_id = station.trigger(behind.dag)

    def job() -> psutil.Process | None:
        for one in psutil.process_iter(["cmdline"]):
            words = one.info["cmdline"] or []
            if "spark_jobs.merge" in words and "python" in words[0] and any(behind.file.name in word for word in words):
                return one
        return None

    found = station.wait("the merge runs", job)
    task = found.parents()[1]  # the shell that watches over the job is in between
    task.kill()
    found.wait(60)
    finished(station, behind, run_id, "merge", before)
