"""The forms of Airflow: connections that are kept in its database and tested by its button, and runs by hand with parameters."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from cdc_lib.merge.answers import open_questions
from cdc_lib.model.cursor import DRAIN
from cdc_lib.model.table_name import TableName
from cdc_lib.store.objects.open import open_store
from tests.harness.airflow.source import AirflowSource
from tests.harness.airflow.standalone import AirflowStandalone
from tests.harness.airflow.versions import WAITS, of_3_3
from tests.harness.servers import MySqlServer
from tests.harness.shop.schema_questions import keep_question

LOG_IN = "shop_log_in"


@pytest.fixture(scope="module")
def log_in(station: AirflowStandalone, mysql_server: MySqlServer) -> Iterator[dict[str, Any]]:
    """A connection in Airflow's database, as its form makes it."""
    body = {
        "connection_id": LOG_IN,
        "conn_type": "cdc_mysql",
        "host": mysql_server.host,
        "port": mysql_server.port,
        "login": mysql_server.cdc_user,
        "password": mysql_server.cdc_password,
        "extra": json.dumps({"tables": "mysql_shop.*", "tls": "preferred"}),
    }
    station.request("POST", "/api/v2/connections", body)
    yield body
    station.request("DELETE", f"/api/v2/connections/{LOG_IN}")


@pytest.fixture(scope="module")
def shop(
    station: AirflowStandalone,
    make_shared_source: Callable[..., AirflowSource],
    mysql_server: MySqlServer,
    log_in: dict[str, Any],
) -> AirflowSource:
    """A source whose log-in is in Airflow's database alone, and whose tables are in the lake. The tests share it."""
    server = {"host": mysql_server.host, "port": mysql_server.port, "connection": LOG_IN}
    source = make_shared_source(server=server)
    source.sql(
        "CREATE TABLE orders (id INT PRIMARY KEY, item VARCHAR(40))",
        "INSERT INTO orders VALUES (1, 'bicycle'), (2, 'bell'), (3, 'lamp')",
    )
    ended(station, source.dag, "success")
    return source


def ended(air: AirflowStandalone, dag: str, wanted: str, **params: Any) -> tuple[str, str]:
    """Make one run with a form; return its id and the log of its last task, or of its last failed one."""
    air.wait_for_dag(dag)
    air.unpause(dag)
    run_id = air.trigger(dag, **params)
    state = air.wait_for_run(dag, run_id)["state"]
    tasks = [task for task in air.tasks(dag, run_id) if task["try_number"]]  # a skipped one has no log
    chosen = [task for task in tasks if task["state"] == "failed"] or tasks
    log = air.task_log(dag, run_id, chosen[-1]["task_id"], chosen[-1]["try_number"], chosen[-1]["map_index"])
    assert state == wanted, log
    return run_id, log


def approved(air: AirflowStandalone, dag: str, task: str, **params: Any) -> str:
    """Make one run that waits for a person, approve it, and return its id once it has succeeded."""
    air.wait_for_dag(dag)
    air.unpause(dag)
    run_id = air.trigger(dag, **params)
    settled = {WAITS, "failed", "success"}
    air.wait("the task waits", lambda: air.tasks(dag, run_id)[0]["state"] in settled)
    assert air.tasks(dag, run_id)[0]["state"] == WAITS, air.task_log(dag, run_id, task)
    air.wait_until_process_ended(run_id)
    question = f"/api/v2/dags/{dag}/dagRuns/{run_id}/taskInstances/{task}/-1/hitlDetails"
    air.request("PATCH", question, {"chosen_options": ["Approve"]})
    assert air.wait_for_run(dag, run_id)["state"] == "success", air.task_log(dag, run_id, task)
    return run_id


def test_the_form_of_a_connection_has_the_fields_of_its_type(station: AirflowStandalone):
    """Airflow asks each provider for them."""
    kinds = {one["connection_type"]: one for one in station.request("GET", "/ui/connections/hook_meta")}
    assert kinds["cdc_mysql"]["hook_name"] == "MySQL binlog source"
    assert set(kinds["cdc_mysql"]["extra_fields"]) == {"hosts", "tables", "tls", "tls_ca", "source_file"}
    assert kinds["cdc_store"]["hook_name"] == "CDC store"
    assert kinds["cdc_store"]["standard_fields"]["password"]["title"] == "Secret key"
    assert kinds["cdc_spark"]["hook_name"] == "CDC Spark server"
    assert kinds["cdc_spark"]["standard_fields"]["password"]["title"] == "Token"


def test_the_test_button_says_what_is_found_line_by_line(station: AirflowStandalone, log_in: dict[str, Any]):
    """In the API server, with what is in the form; no password is in an answer."""
    found = station.request("POST", "/api/v2/connections/test", log_in)
    assert "ok: binlog_format is ROW" in found["message"].splitlines()
    assert found["status"]
    wrong = station.request("POST", "/api/v2/connections/test", {**log_in, "password": "not the password"})
    assert not wrong["status"]
    assert wrong["message"].startswith("error: ")
    assert log_in["password"] not in json.dumps([found, wrong])


@of_3_3
def test_a_worker_says_what_is_found_too(station: AirflowStandalone, log_in: dict[str, Any]):
    """Where the workers reach the server and the API server does not; Airflow does not keep the password in its answer."""
    queued = station.request("POST", "/api/v2/connections/enqueue-test", log_in)
    headers = {"Authorization": f"Bearer {station.token()}", "Airflow-Connection-Test-Token": queued["token"]}

    def tested() -> dict[str, Any] | None:
        answer = httpx.get(f"{station.url}/api/v2/connections/enqueue-test", headers=headers, timeout=180)
        answer.raise_for_status()
        found: dict[str, Any] = answer.json()
        return found if found["state"] in {"success", "failed"} else None

    found = station.wait("a worker has tested the connection", tested)
    assert "ok: binlog_format is ROW" in (found["result_message"] or "").splitlines(), found
    assert found["state"] == "success"
    assert log_in["password"] not in json.dumps(found)


def test_a_new_snapshot_and_a_comparison_are_asked_for_by_a_form(station: AirflowStandalone, shop: AirflowSource):
    """A row that somebody lost in the lake's past is read again; the comparison takes its tables from the form."""
    table = f"{shop.name}.orders"
    _, log = ended(station, f"{shop.dag}.snapshot", "success", tables=[table], where="id < 3", why="a test of the form")
    assert f"the next runs read rows of {table} where id < 3" in log
    cursor = shop.cursor(DRAIN)
    assert cursor is not None
    (task,) = [one for one in cursor.snapshots if one.selection is not None]
    assert task.selection is not None
    assert (task.selection.where, task.selection.why) == ("`id` < 3", "a test of the form")
    assert task.selection.by.startswith(f"airflow {shop.dag}.snapshot ")
    assert task.selection.by.endswith(", started by admin")
    run_id, _ = ended(station, shop.dag, "success")
    names = {one["rendered_map_index"] for one in station.tasks(shop.dag, run_id) if one["task_id"] == "drain"}
    assert f"snapshot of rows of {table} where id < 3" in names
    assert shop.differences() == []
    shop.sql("SET SESSION sql_log_bin = 0", "UPDATE orders SET item = 'tandem' WHERE id = 1")
    _, log = ended(station, f"{shop.dag}.verify", "failed", tables=[table])
    assert f"{table}: 3 rows, 1 different" in log
    ended(station, f"{shop.dag}.verify", "success", tables=[table], repair=True)
    assert shop.differences() == []


def test_a_form_that_is_wrong_is_refused_and_says_what_is(station: AirflowStandalone, shop: AirflowSource):
    """By the API where a field alone is wrong, else in the first lines of the log; nothing moves."""
    before = shop.state_hashes()
    dag = f"{shop.dag}.snapshot"
    station.wait_for_dag(dag)
    with pytest.raises(httpx.HTTPStatusError) as refused:
        station.trigger(dag, tables=[])
    assert refused.value.response.status_code == httpx.codes.BAD_REQUEST
    assert "tables" in refused.value.response.text
    run_id, log = ended(station, dag, "failed", tables=["*.missing"])
    assert log.index("ConfigError: ") < log.index("Task failed with exception")
    assert [one["try_number"] for one in station.tasks(dag, run_id)] == [1]
    _, log = ended(station, f"{shop.dag}.rewind", "failed", time="2026-11-21T06:00:00Z", gtid="a")
    assert "name exactly one position" in log
    assert shop.state_hashes() == before


def test_a_rewind_is_looked_at_first_and_then_done(station: AirflowStandalone, shop: AirflowSource):
    """With who asked and why in the cursor; what is read again changes nothing in the lake."""
    before = shop.cursor(DRAIN)
    assert before is not None
    place = str(before.moves[0].stop)
    dag = f"{shop.dag}.rewind"
    _, log = ended(station, dag, "success", position=place)
    assert "nothing was moved" in log
    assert shop.cursor(DRAIN) == before
    ended(station, dag, "success", position=place, move=True, why="a test of the form")
    after = shop.cursor(DRAIN)
    assert after is not None
    assert (after.epoch, after.moves[-1].kind, after.moves[-1].why) == (
        before.epoch + 1,
        "rewind",
        "a test of the form",
    )
    ended(station, shop.dag, "success")
    assert shop.differences() == []


def test_a_quarantined_table_is_resumed_by_a_form(
    station: AirflowStandalone, make_source: Callable[..., AirflowSource]
):
    """Once its value is corrected, and a person has approved it; a table that is not quarantined is refused, and nothing moves."""
    source = make_source(on_error="quarantine", zero_dates="error", approvals={"resume": True})
    table = f"{source.name}.days"
    source.sql("CREATE TABLE days (id INT PRIMARY KEY, day DATE)", "SET SESSION sql_mode = ''", f"INSERT INTO {table} VALUES (1, '0000-00-00')")  # fmt: skip
    ended(station, source.dag, "success")
    cursor = source.cursor(DRAIN)
    assert cursor is not None
    assert [one.table for one in cursor.quarantined_tables] == [table]
    source.sql("UPDATE days SET day = '2026-01-01'")
    run_id = approved(station, f"{source.dag}.resume", "resume", table=table)
    station.wait(
        "the log says so",
        lambda: f"{table} is followed again from" in station.task_log(f"{source.dag}.resume", run_id, "resume"),
    )
    cursor = source.cursor(DRAIN)
    assert cursor is not None
    assert cursor.quarantine[-1].released_by.startswith(f"airflow {source.dag}.resume ")
    assert cursor.quarantine[-1].released_by.endswith("approved by admin")
    ended(station, source.dag, "success")
    assert source.differences() == []
    before = source.state_hashes()
    _, log = ended(station, f"{source.dag}.resume", "failed", table=table)
    assert log.index("ConfigError: ") < log.index("Task failed with exception")
    assert source.state_hashes() == before


def test_a_schema_change_is_answered_by_a_form(station: AirflowStandalone, make_source: Callable[..., AirflowSource]):
    """A table that does not wait is refused, and the log lists what waits; the answer names its run. No server is asked."""
    source = make_source(schema_changes={"truncate": "ask"})
    store, dag = open_store(source.config.store), f"{source.dag}.answer"
    keep_question(store, source.name, TableName(source.name, "orders"))
    station.wait_for_dag(dag)
    with pytest.raises(httpx.HTTPStatusError) as refused:
        station.trigger(dag, table=f"{source.name}.orders", answer="drop")
    assert refused.value.response.status_code == httpx.codes.BAD_REQUEST
    _, log = ended(station, dag, "failed", table=f"{source.name}.colours", answer="keep")
    assert log.index("ConfigError: ") < log.index("Task failed with exception")
    assert f"These wait: {source.name}.orders at binlog.000003:120 (truncate: follow or keep)" in log
    run_id, log = ended(station, dag, "success", table=f"{source.name}.orders", answer="keep")
    assert f"{source.name}.orders: keep is the answer to truncate" in log
    (asked,) = open_questions(store, source.name)
    assert asked.answer is not None
    assert asked.answer.by.startswith(f"airflow {dag} {run_id} answer ")
    assert asked.answer.by.endswith(", started by admin")
