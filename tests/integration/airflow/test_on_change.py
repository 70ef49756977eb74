"""Sources with ``schedule: on_change``: the triggerer starts a run when the binlog has grown, and at no other time."""

from __future__ import annotations

import time
from collections.abc import Callable

from cdc_lib.config import credentials_from_environment
from cdc_lib.model.cursor import DRAIN, LAKE
from cdc_lib.mysql.server_facts import binlog_end_of
from tests.harness.airflow.source import PASSWORD_VARIABLE, AirflowSource
from tests.harness.airflow.standalone import AirflowStandalone
from tests.harness.servers import MySqlServer

Make = Callable[..., AirflowSource]
SETTLED = {"success", "failed"}


def kinds(air: AirflowStandalone, source: AirflowSource) -> set[tuple[str, str]]:
    """Return type and state of the runs of a source."""
    return {(one["run_type"], one["state"]) for one in air.dag_runs(source.dag)}


def is_even(air: AirflowStandalone, source: AirflowSource) -> bool:
    """Return whether no run is active, and the lake is where the drain is, and both are at the end of the binlog."""
    if not all(run["state"] in SETTLED for run in air.dag_runs(source.dag)):
        return False
    drain, lake = source.cursor(DRAIN), source.cursor(LAKE)
    end = binlog_end_of(source.config.server, credentials_from_environment(source.config.server))
    return drain is not None and lake is not None and drain.position == lake.position == end


def test_a_change_at_the_source_starts_a_run(station: AirflowStandalone, make_source: Make):
    """Nothing is scheduled or triggered by hand. After the last change, no further run begins."""
    source = make_source(schedule="on_change")
    source.sql("CREATE TABLE orders (id INT PRIMARY KEY, item VARCHAR(40))", "INSERT INTO orders VALUES (1, 'bell')")
    station.wait("the first run is over", lambda: is_even(station, source))
    assert source.differences() == []
    source.sql("INSERT INTO orders VALUES (2, 'lamp')", "UPDATE orders SET item = 'horn' WHERE id = 1")
    station.wait("the second run is over", lambda: is_even(station, source))
    assert source.differences() == []
    assert kinds(station, source) == {("asset_triggered", "success")}
    before = len(station.dag_runs(source.dag))
    time.sleep(20)
    assert len(station.dag_runs(source.dag)) == before


def test_a_source_that_cannot_be_reached_fails_a_run_and_is_read_when_it_answers_again(
    station: AirflowStandalone, make_source: Make, mysql_server: MySqlServer
):
    """The reason is in the log of the run, where people look; the file's correction starts the next one."""
    server = {"host": mysql_server.host, "port": mysql_server.port, "user": mysql_server.cdc_user}
    source = make_source(schedule="on_change", server={**server, "password_env": "CDC_NO_SUCH_PASSWORD"})
    source.sql("CREATE TABLE orders (id INT PRIMARY KEY)", "INSERT INTO orders VALUES (1)")
    station.wait("a run has failed", lambda: ("asset_triggered", "failed") in kinds(station, source))
    run = station.dag_runs(source.dag)[0]
    assert "CDC_NO_SUCH_PASSWORD" in station.task_log(source.dag, run["dag_run_id"], "plan")
    source.write(server={**server, "password_env": PASSWORD_VARIABLE})
    station.wait("the lake has the row", lambda: is_even(station, source))
    assert source.differences() == []
