"""Tasks may be retried, cleared or marked in any order: no change is lost or duplicated."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
import yaml
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from cdc_airflow.airflow_versions import IS_3_2
from cdc_lib.model.cursor import DRAIN, LAKE
from demo.shop.compare import open_lake
from tests.harness.airflow.source import CONNECTION, ORDERS_AND_COLOURS, AirflowSource
from tests.harness.airflow.standalone import ROOT, AirflowStandalone
from tests.harness.docs.promql import labels_of, metrics_in
from tests.harness.servers import MySqlServer

TASKS = ["plan", "drain", "ack_drain", "plan_merge", "merge", "ack_lake"]
TIMES_AND_BOUNDS = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d to (\S+ )?\d\d:\d\d:\d\d UTC, \S+:\d+ to \S+$")
OPEN = {"running", "queued", "scheduled", "restarting", None}


def run(air: AirflowStandalone, source: AirflowSource, expected: str = "success") -> str:
    """Make one run, wait for the expected state, and return its id."""
    run_id = air.trigger(source.dag)
    ended(air, source, run_id, expected)
    return run_id


def ended(air: AirflowStandalone, source: AirflowSource, run_id: str, expected: str = "success") -> None:
    """Wait for the end of a run; fails with the logs of failed tasks if its state is not the expected one."""
    state = air.wait_for_run(source.dag, run_id)["state"]
    if state == expected:
        return
    failed = [task for task in air.tasks(source.dag, run_id) if task["state"] == "failed"]
    logs = [air.task_log(source.dag, run_id, t["task_id"], t["try_number"], t["map_index"]) for t in failed]
    pytest.fail(f"the run ended as {state}\n" + "\n\n".join(logs))


def states(air: AirflowStandalone, source: AirflowSource, run_id: str) -> dict[str, set[str]]:
    """Return the states of each task's instances."""
    instances: dict[str, set[str]] = {}
    for task in air.tasks(source.dag, run_id):
        instances.setdefault(task["task_id"], set()).add(task["state"])
    return instances


def names(air: AirflowStandalone, source: AirflowSource, run_id: str) -> set[str]:
    """Return the names of the mapped drain tasks."""
    return {t["rendered_map_index"] for t in air.tasks(source.dag, run_id) if t["task_id"] == "drain"}


def events(air: AirflowStandalone, source: AirflowSource, run_id: str) -> list[tuple[str, Any]]:
    """Return the tables in the asset events of a run, and the number of changes of each."""
    all_events = air.get("/assets/events?limit=500")["asset_events"]
    mine = [event for event in all_events if event["source_run_id"] == run_id and event["source_dag_id"] == source.dag]
    return sorted((event["uri"].rpartition("/")[2], event["extra"]["changes"]) for event in mine)


def extras(air: AirflowStandalone, source: AirflowSource, run_id: str) -> dict[str, Any]:
    """Return what the events of a run carry, by table."""
    found = air.get("/assets/events?limit=500")["asset_events"]
    mine = [event for event in found if event["source_run_id"] == run_id and event["source_dag_id"] == source.dag]
    return {event["uri"].rpartition("/")[2]: event["extra"] for event in mine}


def wait_for_state(air: AirflowStandalone, source: AirflowSource, run_id: str, task_id: str, state: str) -> None:
    air.wait(
        f"{task_id} is {state}",
        lambda: any(t["task_id"] == task_id and t["state"] == state for t in air.tasks(source.dag, run_id)),
    )


class Merged:
    """Makes sources that were merged once, and gives each of them to test after test until one test breaks it."""

    def __init__(self, air: AirflowStandalone, make: Callable[..., AirflowSource]) -> None:
        self._air = air
        self._make = make
        self._last: tuple[AirflowSource, str] | None = None

    def source(self) -> tuple[AirflowSource, str]:
        """Return a source that is equal to its lake, and the id of its first run."""
        if self._last is None:
            source = self._make()
            source.sql(
                *ORDERS_AND_COLOURS,
                "CREATE TABLE days (id INT PRIMARY KEY, day DATE)",
                "INSERT INTO days VALUES (1, '2026-01-01')",
            )
            self._last = source, run(self._air, source)
        return self._last

    def drop(self) -> None:
        """Give this source to no other test."""
        self._last = None


@pytest.fixture(scope="module")
def merged(station: AirflowStandalone, make_shared_source: Callable[..., AirflowSource]) -> Merged:
    return Merged(station, make_shared_source)


@pytest.fixture
def source(merged: Merged) -> Iterator[AirflowSource]:
    """A source with orders, colours and days, which are in the lake. Its file is valid again after each test."""
    source, _ = merged.source()
    yield source
    if source.changed:
        source.write(zero_dates=None, merge=None)
    if source.differences():
        merged.drop()


@pytest.fixture
def first_run(merged: Merged, source: AirflowSource) -> str:
    """The id of the run that took the snapshots of the source's tables."""
    return merged.source()[1]


@pytest.mark.turns(1)
def test_runs_merge_the_source_into_the_lake_and_announce_changed_tables(
    station: AirflowStandalone, source: AirflowSource, first_run: str
):
    """First all tables, then only the changed table, then none."""
    first = first_run
    assert source.differences() == []
    assert [table for table, _ in events(station, source, first)] == ["colours", "days", "orders"]
    assert extras(station, source, first)["orders"]["rows"] == {"c": 0, "u": 0, "d": 0, "r": 3}

    source.sql("UPDATE orders SET price = 450 WHERE id = 1", "DELETE FROM orders WHERE id = 2")
    second = run(station, source)
    assert source.differences() == []
    assert [table for table, _ in events(station, source, second)] == ["orders"]
    assert all(TIMES_AND_BOUNDS.match(name) for name in names(station, source, second))
    extra, lake = extras(station, source, second)["orders"], source.cursor(LAKE)
    assert lake is not None
    assert extra["rows"] == {"c": 0, "u": 1, "d": 1, "r": 0}
    assert extra["position"] == str(lake.position)
    assert extra["gtid_set"] == lake.gtid_set
    assert extra["lag_seconds"] >= 0
    assert "verified_to" not in extra

    idle = run(station, source)
    assert events(station, source, idle) == []
    skipped = [*TASKS[1:], "seal_days"]
    assert states(station, source, idle) == {"plan": {"success"}, **{task: {"skipped"} for task in skipped}}
    assert source.differences() == []
    station.clear(source.dag, idle, "plan", downstream=True)
    ended(station, source, idle)
    source.sql("INSERT INTO colours VALUES (7, 'white')")
    station.clear(source.dag, idle, "plan", downstream=True)
    ended(station, source, idle)
    assert source.differences() == []  # a cleared run that was idle is not when it is done again


@pytest.mark.turns(1)
def test_only_the_token_and_users_may_read_the_metrics(
    station: AirflowStandalone, source: AirflowSource, metrics_token: str
):
    """What they tell is what the runs did; the rules and the dashboard read names that are there."""
    address = f"{station.url}/cdc-metrics/"

    def asked(token: str | None, accept: str = "application/openmetrics-text") -> httpx.Response:
        headers = {"Accept": accept, **({"Authorization": f"Bearer {token}"} if token else {})}
        return httpx.get(address, headers=headers, timeout=60)

    assert asked(None).status_code == 401
    assert asked("x" * len(metrics_token)).status_code in (401, 403)
    text = asked(metrics_token)
    assert text.status_code == 200
    assert text.headers["content-type"].startswith("application/openmetrics-text")
    assert asked(station.token("admin"), "text/plain").text.startswith("# HELP cdc_source_up ")
    samples = [one for family in text_string_to_metric_families(text.text) for one in family.samples]
    mine = {
        (one.name, one.labels.get("table"), one.labels.get("op")): one.value
        for one in samples
        if one.labels["source"] == source.name
    }
    assert mine["cdc_source_up", None, None] == 1
    assert mine["cdc_rows_merged_total", f"{source.name}.orders", "r"] == 3
    assert mine["cdc_table_quarantined", f"{source.name}.orders", None] == 0
    assert mine["cdc_lag_seconds", None, None] < 600
    assert mine["cdc_server_seen_age_seconds", None, None] < 600
    known = labels_of((one.name, one.labels) for one in samples)
    # A source that was never compared has no age of that, a server that never purges no time until then, and a source that never
    # had a backlog no rate.
    unknown = {
        "cdc_verified_age_seconds",
        "cdc_verify_drift_rows",
        "cdc_verify_interval_seconds",
        "cdc_binlog_retention_left_seconds",
        "cdc_catch_up_seconds",
        "cdc_cover_period_seconds",
        "cdc_covered_age_seconds",
        "cdc_covered_wrong_rows",
    }
    queries = [rule["expr"] for group in rules()["groups"] for rule in group["rules"]]
    assert {name for query in queries for name in metrics_in(query)} <= known.keys() | unknown


def rules() -> Any:
    """Return the alert rules of the documentation."""
    return yaml.safe_load((ROOT / "docs/monitoring/alerts.yaml").read_text())


@pytest.mark.turns(1)
def test_clearing_any_task_changes_nothing(station: AirflowStandalone, source: AirflowSource):
    """Cursors, batches, cuts and rows are the same after each clear, with and without downstream tasks."""
    source.sql("UPDATE orders SET item = 'tandem' WHERE id = 1", "INSERT INTO colours VALUES (3, 'green')")
    run_id = run(station, source)
    before = source.state_hashes()
    for task_id in TASKS:
        station.clear(source.dag, run_id, task_id)
        ended(station, source, run_id)
        assert source.state_hashes() == before, task_id
    # A plan without work takes no task away that others wait for: before Airflow 3.3 these would never run.
    assert states(station, source, run_id)["drain"] == {"skipped"}
    station.clear(source.dag, run_id, "drain", downstream=True)
    ended(station, source, run_id)
    assert source.state_hashes() == before
    assert source.differences() == []


def test_a_failed_drain_keeps_the_cursor_and_continues_when_the_file_is_corrected(
    station: AirflowStandalone, source: AirflowSource
):
    """The task fails at once, without retries; after correcting the file, clearing the task is enough."""
    source.write(zero_dates="error")
    source.sql("SET SESSION sql_mode = ''", "INSERT INTO days VALUES (2, '0000-00-00')")
    before = source.state_hashes()
    failed = run(station, source, "failed")
    assert source.state_hashes() == before
    (task,) = [t for t in station.tasks(source.dag, failed) if t["task_id"] == "drain" and t["state"] == "failed"]
    assert task["try_number"] == 1
    log = station.task_log(source.dag, failed, "drain", 1, task["map_index"])
    assert "UnsupportedValue" in log
    first = log.index("UnsupportedValue: ")
    assert first < log.index("What to do: ") < log.index("Task failed with exception")
    assert "days" in log

    planned = names(station, source, failed)
    again = run(station, source, "failed")
    assert names(station, source, again) == planned  # the windows in flight are adopted with their bounds

    source.write(zero_dates=None)
    station.clear(source.dag, again, "drain", downstream=True)
    ended(station, source, again)
    assert source.differences() == []


def test_marking_a_failed_drain_success_moves_no_cursor_over_it(station: AirflowStandalone, source: AirflowSource):
    """Airflow runs the ack at once; without a batch the cursor stays, and a later run drains the window."""
    source.write(zero_dates="error")
    source.sql("SET SESSION sql_mode = ''", "INSERT INTO days VALUES (3, '0000-00-00')")
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


@pytest.mark.turns(1)
def test_marking_a_merge_success_moves_no_cursor(station: AirflowStandalone, source: AirflowSource):
    """Without a published cut there is nothing to acknowledge; the next run merges the same batches."""
    no_java = {"spark.driver.extraJavaOptions": "-javaagent:/no/agent.jar"}
    source.write(merge={"conf": no_java, "driver_memory": "1g"})
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


def test_the_plan_is_retried_without_a_server_and_no_cursor_moves(
    station: AirflowStandalone, make_source: Callable[..., AirflowSource]
):
    """Airflow retries; marking the plan success ends the run, and the next run does the work."""
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
        (error,) = station.wait("the import error is listed", station.import_errors)
        assert error["filename"] == "cdc_wrong_sources.py"
        assert "wrong.yaml" in error["stack_trace"]
        assert "server.prot" in error["stack_trace"]
        source.sql("INSERT INTO colours VALUES (5, 'black')")
        run(station, source)
        assert source.differences() == []
    finally:
        wrong.unlink()
    station.wait("the import error is cleared", lambda: not station.import_errors())


@pytest.mark.turns(1)
@pytest.mark.skipif(not IS_3_2, reason="Airflow 3.1 refuses no kind of run")
def test_a_backfill_is_refused(station: AirflowStandalone, make_source: Callable[..., AirflowSource]):
    """The DAG limits its active runs, and the date of a run has no meaning."""
    source = make_source(schedule="0 0 1 1 *")
    station.wait("the schedule is read", lambda: station.get(f"/dags/{source.dag}")["timetable_summary"] == "0 0 1 1 *")
    body = {"dag_id": source.dag, "from_date": "2026-01-01T00:00:00Z", "to_date": "2026-02-01T00:00:00Z"}

    def is_refused() -> bool:
        with pytest.raises(httpx.HTTPStatusError) as error:
            station.request("POST", "/api/v2/backfills", body)
        return error.value.response.is_client_error  # Airflow may answer 500 while its SQLite is locked

    assert station.wait("the backfill is refused", is_refused)


def test_a_backfill_restores_a_lost_table(station: AirflowStandalone, source: AirflowSource):
    """By hand from all stored batches, and cleared again; Airflow's backfill of a day without batches succeeds."""
    source.sql("UPDATE orders SET item = 'unicycle' WHERE id = 1", "DELETE FROM orders WHERE id = 3")
    run(station, source)
    before = source.state_hashes()
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
    assert source.state_hashes() == before


def test_an_airflow_connection_gives_the_login_and_no_password_is_stored(
    station: AirflowStandalone, make_source: Callable[..., AirflowSource], mysql_server: MySqlServer
):
    """Neither in Airflow's files nor in the store."""
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


def test_the_verify_dag_runs_separately_and_fails_for_wrong_rows(
    station: AirflowStandalone, make_source: Callable[..., AirflowSource]
):
    """It logs counts if all rows are equal, and fails with the name of the table if a row was lost."""
    source = make_source(verify={"schedule": "0 4 1 1 *"})
    source.sql("CREATE TABLE orders (id INT PRIMARY KEY, item VARCHAR(40))", "INSERT INTO orders VALUES (1, 'bell')")
    run(station, source)
    dag = f"{source.dag}.verify"
    station.wait_for_dag(dag)
    station.unpause(dag)
    right = station.trigger(dag)
    assert station.wait_for_run(dag, right)["state"] == "success"
    (task,) = station.tasks(dag, right)
    assert "orders: 1 row," in station.task_log(dag, right, "verify", task["try_number"], task["map_index"])

    source.sql("SET SESSION sql_log_bin = 0", "INSERT INTO orders VALUES (2, 'unlogged row')")
    wrong = station.trigger(dag)
    assert station.wait_for_run(dag, wrong)["state"] == "failed"
    (task,) = station.tasks(dag, wrong)
    assert task["try_number"] == 1
    log = station.task_log(dag, wrong, "verify", task["try_number"], task["map_index"])
    assert f"source and lake differ: {source.name}.orders: 2 rows, 1 missing" in log
    assert "unlogged row" not in log


def test_the_cover_dag_repairs_the_tables_with_wrong_rows_and_skips_the_repair_of_equal_ones(
    station: AirflowStandalone, make_source: Callable[..., AirflowSource]
):
    """Without Spark as long as no row is wrong; a new table is compared in the next run."""
    source = make_source(verify={"cover_every": "800d", "cover_schedule": "0 4 1 1 *", "on_difference": "repair"})
    source.sql("CREATE TABLE orders (id INT PRIMARY KEY)", "INSERT INTO orders VALUES (1)")
    run(station, source)
    dag = f"{source.dag}.cover"
    station.wait_for_dag(dag)
    station.unpause(dag)
    right = station.trigger(dag)
    assert station.wait_for_run(dag, right)["state"] == "success"
    assert {one["task_id"]: one["state"] for one in station.tasks(dag, right)} == {
        "cover": "success",
        "repair": "skipped",
    }

    source.sql("CREATE TABLE items (id INT PRIMARY KEY, name VARCHAR(40))", "INSERT INTO items VALUES (1, 'bell')")
    run(station, source)
    source.sql("SET SESSION sql_log_bin = 0", "INSERT INTO items VALUES (2, 'unlogged row')")
    wrong = station.trigger(dag)
    assert station.wait_for_run(dag, wrong)["state"] == "success"
    log = station.task_log(dag, wrong, "cover", 1, -1)
    assert f"{source.name}.items: row id=2 is missing in lake.{source.name}.items" in log
    assert "unlogged row" not in log
    assert {one["task_id"]: one["state"] for one in station.tasks(dag, wrong)} == {
        "cover": "success",
        "repair": "success",
    }
    assert source.differences() == []
