"""Law by law: whatever is done to a task, nothing is lost and nothing is doubled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from cdc_lib.model.cursor import DRAIN, LAKE
from demo.shop.compare import open_lake
from tests.harness.airflow import AirflowStandalone
from tests.harness.airflow_source import CONNECTION, AirflowSource
from tests.harness.servers import MySqlServer

pytestmark = pytest.mark.timeout(600)

TASKS = ["plan", "drain", "ack_drain", "plan_merge", "merge", "ack_lake"]
OPEN = {"running", "queued", "scheduled", "restarting", None}


def run(air: AirflowStandalone, source: AirflowSource, wanted: str = "success") -> str:
    """Make one run, and return its id when it has ended as wanted."""
    run_id = air.trigger(source.dag)
    ended(air, source, run_id, wanted)
    return run_id


def ended(air: AirflowStandalone, source: AirflowSource, run_id: str, wanted: str = "success") -> None:
    """Wait for the end of a run; the log of a task that failed against our wish is in the failure."""
    state = air.wait_for_run(source.dag, run_id)["state"]
    if state == wanted:
        return
    failed = [task for task in air.tasks(source.dag, run_id) if task["state"] == "failed"]
    logs = [air.task_log(source.dag, run_id, t["task_id"], t["try_number"], t["map_index"]) for t in failed]
    pytest.fail(f"the run ended as {state}\n" + "\n\n".join(logs))


def states(air: AirflowStandalone, source: AirflowSource, run_id: str) -> dict[str, set[str]]:
    """Return the states of each task's instances."""
    found: dict[str, set[str]] = {}
    for task in air.tasks(source.dag, run_id):
        found.setdefault(task["task_id"], set()).add(task["state"])
    return found


def names(air: AirflowStandalone, source: AirflowSource, run_id: str) -> set[str]:
    """Return the names of the mapped drain tasks: the ids of their units."""
    return {t["rendered_map_index"] for t in air.tasks(source.dag, run_id) if t["task_id"] == "drain"}


def events(air: AirflowStandalone, source: AirflowSource, run_id: str) -> list[tuple[str, Any]]:
    """Return the tables that a run announced, and how many changes each."""
    found = air.get("/assets/events?limit=500")["asset_events"]
    mine = [event for event in found if event["source_run_id"] == run_id and event["source_dag_id"] == source.dag]
    return sorted((event["uri"].rpartition("/")[2], event["extra"]["changes"]) for event in mine)


def wait_for_state(air: AirflowStandalone, source: AirflowSource, run_id: str, task_id: str, state: str) -> None:
    air.wait(
        f"{task_id} is {state}",
        lambda: any(t["task_id"] == task_id and t["state"] == state for t in air.tasks(source.dag, run_id)),
    )


@pytest.fixture
def mended(source: AirflowSource) -> Iterator[None]:
    """Leaves the source as a right one, so that its file can still be read at the end."""
    yield
    source.write(zero_dates=None, merge=None)


def test_runs_carry_the_source_into_the_lake_and_announce_what_changed(
    station: AirflowStandalone, source: AirflowSource
):
    """First all tables, then only the one with changes, then none."""
    first = run(station, source)
    assert source.differences() == []
    assert [table for table, _ in events(station, source, first)] == ["colours", "orders"]

    source.sql("UPDATE orders SET price = 450 WHERE id = 1", "DELETE FROM orders WHERE id = 2")
    second = run(station, source)
    assert source.differences() == []
    assert [table for table, _ in events(station, source, second)] == ["orders"]
    assert all(name.startswith("000001-") for name in names(station, source, second))

    idle = run(station, source)
    assert events(station, source, idle) == []
    assert source.differences() == []


def test_doing_any_task_again_changes_nothing(station: AirflowStandalone, source: AirflowSource):
    """Cursors, batches, cuts and rows are the same after each clear, alone and with all that follows."""
    run(station, source)
    source.sql("UPDATE orders SET item = 'tandem' WHERE id = 1", "INSERT INTO colours VALUES (3, 'green')")
    run_id = run(station, source)
    before = source.standing()
    for task_id in TASKS:
        station.clear(source.dag, run_id, task_id)
        ended(station, source, run_id)
        assert source.standing() == before, task_id
    station.clear(source.dag, run_id, "drain", downstream=True)
    ended(station, source, run_id)
    assert source.standing() == before
    assert source.differences() == []


def test_a_drain_that_fails_leaves_the_cursor_and_goes_on_when_the_file_is_mended(
    station: AirflowStandalone, source: AirflowSource, mended: None
):
    """The error is told at once, without retries; clearing the task is enough after the file was changed."""
    source.sql("CREATE TABLE days (id INT PRIMARY KEY, day DATE)", "INSERT INTO days VALUES (1, '2026-01-01')")
    run(station, source)
    source.write(zero_dates="error")
    source.sql("SET SESSION sql_mode = ''", "INSERT INTO days VALUES (2, '0000-00-00')")
    before = source.standing()
    failed = run(station, source, "failed")
    assert source.standing() == before
    (task,) = [t for t in station.tasks(source.dag, failed) if t["task_id"] == "drain" and t["state"] == "failed"]
    assert task["try_number"] == 1
    log = station.task_log(source.dag, failed, "drain", 1, task["map_index"])
    assert "UnsupportedValue" in log
    assert "days" in log

    planned = names(station, source, failed)
    again = run(station, source, "failed")
    assert names(station, source, again) == planned  # the windows in flight are adopted, bounds and all

    source.write(zero_dates=None)
    station.clear(source.dag, again, "drain", downstream=True)
    ended(station, source, again)
    assert source.differences() == []


def test_marking_a_failed_drain_success_moves_no_cursor_over_it(
    station: AirflowStandalone, source: AirflowSource, mended: None
):
    """Airflow runs the ack at once; there is no batch, so that it stays, and a later run drains the window."""
    source.sql("CREATE TABLE days (id INT PRIMARY KEY, day DATE)")
    run(station, source)
    source.write(zero_dates="error")
    source.sql("SET SESSION sql_mode = ''", "INSERT INTO days VALUES (1, '0000-00-00')")
    before = source.cursor(DRAIN)
    failed = run(station, source, "failed")
    for task in station.tasks(source.dag, failed):
        if task["task_id"] == "drain" and task["state"] == "failed":
            path = f"/api/v2/dags/{source.dag}/dagRuns/{failed}/taskInstances/drain/{task['map_index']}"
            station.request("PATCH", path, {"new_state": "success"})
    station.wait(
        "the ack has run", lambda: not states(station, source, failed)["ack_drain"] & (OPEN | {"upstream_failed"})
    )
    station.wait_for_run(source.dag, failed)
    after = source.cursor(DRAIN)
    assert before is not None
    assert after is not None
    assert after.position == before.position

    source.write(zero_dates=None)
    run(station, source)
    assert source.differences() == []


def test_marking_a_merge_success_moves_no_cursor(station: AirflowStandalone, source: AirflowSource, mended: None):
    """Without a published cut there is nothing to acknowledge; the next run merges the same batches."""
    run(station, source)
    source.write(merge={"spark_master": "nonsense", "driver_memory": "1g"})
    source.sql("UPDATE orders SET price = 1 WHERE id = 3")
    before = source.cursor(LAKE)
    run_id = station.trigger(source.dag)
    wait_for_state(station, source, run_id, "merge", "up_for_retry")
    station.mark(source.dag, run_id, "merge", "success")
    station.wait_for_run(source.dag, run_id)
    after = source.cursor(LAKE)
    assert before is not None
    assert after is not None
    assert after.position == before.position
    assert source.differences() != []

    source.write(merge=None)
    run(station, source)
    assert source.differences() == []


def test_a_server_that_does_not_answer_is_tried_again_and_nothing_moves(
    station: AirflowStandalone, make_source: Callable[..., AirflowSource]
):
    """Airflow waits and tries once more; marking the plan success ends the run there and leaves all to the next."""
    source = make_source(server={"host": "127.0.0.1", "port": 1, "user": "cdc", "password_env": "CDC_TEST_PASSWORD"})
    source.sql("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    run_id = station.trigger(source.dag)
    wait_for_state(station, source, run_id, "plan", "up_for_retry")
    assert "SourceUnavailable" in station.task_log(source.dag, run_id, "plan")
    station.mark(source.dag, run_id, "plan", "success")
    station.wait_for_run(source.dag, run_id)
    assert source.cursor(DRAIN) is None
    source.write(server=None)
    run(station, source)
    assert source.differences() == []


def test_a_wrong_source_file_is_an_import_error_and_the_other_dags_stay(
    station: AirflowStandalone, source: AirflowSource
):
    """The page shows file, key and value; the right sources continue to run."""
    wrong = source.file.with_name("wrong.yaml")
    wrong.write_text("server: {host: h, user: u, password_env: P, prot: 3307}\ntables: [a.*]\n")
    try:
        (error,) = station.wait("the import error is there", station.import_errors)
        assert error["filename"] == "cdc_wrong_sources.py"
        assert "wrong.yaml" in error["stack_trace"]
        assert "server.prot" in error["stack_trace"]
        run(station, source)
        assert source.differences() == []
    finally:
        wrong.unlink()
    station.wait("the import error is gone", lambda: not station.import_errors())


def test_a_backfill_is_refused(station: AirflowStandalone, source: AirflowSource):
    """It has a limit of runs of its own, and the date of a run decides nothing."""
    source.write(schedule="0 0 1 1 *")
    station.wait("the schedule is read", lambda: station.get(f"/dags/{source.dag}")["timetable_summary"] == "0 0 1 1 *")
    body = {"dag_id": source.dag, "from_date": "2026-01-01T00:00:00Z", "to_date": "2026-02-01T00:00:00Z"}
    with pytest.raises(httpx.HTTPStatusError) as error:
        station.request("POST", "/api/v2/backfills", body)
    assert error.value.response.is_client_error


def test_a_backfill_brings_a_lost_table_back(station: AirflowStandalone, source: AirflowSource):
    """By hand from all that is stored, and cleared once more; a day of which nothing was merged passes, as Airflow's own backfill makes it."""
    run(station, source)
    source.sql("UPDATE orders SET item = 'tandem' WHERE id = 1", "DELETE FROM orders WHERE id = 2")
    run(station, source)
    before = source.standing()
    lake = open_lake(str(source.config.lake.uri), str(source.config.lake.warehouse))
    lake.drop_table((source.name, "orders"))
    dag = f"{source.dag}.backfill"
    station.wait_for_dag(dag)
    station.unpause(dag)
    assert station.dag_runs(dag) == []
    yesterday = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=1)
    dates = {"from_date": yesterday.isoformat(), "to_date": yesterday.isoformat()}
    station.request("POST", "/api/v2/backfills", {"dag_id": dag, **dates, "max_active_runs": 1})
    [day] = station.wait("the day has a run", lambda: station.dag_runs(dag))
    assert day["run_type"] == "backfill"
    by_hand = station.trigger(dag)
    for run_id in (day["dag_run_id"], by_hand):
        state = station.wait_for_run(dag, run_id)["state"]
        assert state == "success", station.task_log(dag, run_id, "backfill")
    assert "nothing of" in station.task_log(dag, day["dag_run_id"], "backfill")
    assert source.differences() == []
    station.clear(dag, by_hand, "backfill")
    assert station.wait_for_run(dag, by_hand)["state"] == "success"
    assert source.differences() == []
    assert source.standing() == before


def test_a_log_in_from_an_airflow_connection_serves_and_no_password_stands_anywhere(
    station: AirflowStandalone, make_source: Callable[..., AirflowSource], mysql_server: MySqlServer
):
    """Neither in what Airflow keeps nor in the store, whichever way it came."""
    server = {"host": mysql_server.host, "port": mysql_server.port, "connection": CONNECTION}
    source = make_source(server=server)
    source.sql("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    run(station, source)
    assert source.differences() == []
    secret = source.server.cdc_password.encode()
    for folder in (station.home, source.folder):
        for path in folder.rglob("*"):
            if path.is_file():
                assert secret not in path.read_bytes(), path


def test_the_comparison_runs_on_its_own_and_fails_where_rows_are_wrong(
    station: AirflowStandalone, make_source: Callable[..., AirflowSource]
):
    """With the job itself: counts when all is right, and a failure that names the table when a row was lost on the way."""
    source = make_source(verify={"schedule": "0 4 1 1 *"})
    source.sql("CREATE TABLE orders (id INT PRIMARY KEY, item VARCHAR(40))", "INSERT INTO orders VALUES (1, 'bell')")
    run(station, source)
    dag = f"{source.dag}.verify"
    station.wait_for_dag(dag)
    station.unpause(dag)
    right = station.trigger(dag)
    assert station.wait_for_run(dag, right)["state"] == "success"
    (task,) = station.tasks(dag, right)
    assert "orders: 1 rows" in station.task_log(dag, right, "verify", task["try_number"], task["map_index"])

    source.sql("SET SESSION sql_log_bin = 0", "INSERT INTO orders VALUES (2, 'nobody is told')")
    wrong = station.trigger(dag)
    assert station.wait_for_run(dag, wrong)["state"] == "failed"
    (task,) = station.tasks(dag, wrong)
    assert task["try_number"] == 1
    log = station.task_log(dag, wrong, "verify", task["try_number"], task["map_index"])
    assert f"source and lake differ: {source.name}.orders: 2 rows, 1 missing" in log
    assert "nobody is told" not in log
