"""A merge runs on the Spark server that an Airflow connection names, and its token is in no other place."""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from tests.harness.airflow.source import AirflowSource
from tests.harness.airflow.standalone import AirflowStandalone
from tests.harness.spark.server import RunningSparkServer

CONNECTION = "other_spark"
TOKEN = secrets.token_hex(16)


@pytest.fixture
def other_server(station: AirflowStandalone, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningSparkServer]:
    """A second Spark server, which only a connection of Airflow names."""
    with RunningSparkServer(tmp_path_factory.mktemp("other"), token=TOKEN) as server:
        given = {"host": "http://127.0.0.1", "port": server.port, "password": TOKEN}
        body = {"connection_id": CONNECTION, "conn_type": "cdc_spark", **given}
        station.request("POST", "/api/v2/connections", body)
        yield server
        station.request("DELETE", f"/api/v2/connections/{CONNECTION}")


def test_a_merge_runs_on_the_server_of_its_connection(
    station: AirflowStandalone,
    make_source: Callable[..., AirflowSource],
    spark_server: RunningSparkServer,
    other_server: RunningSparkServer,
):
    """Not on the one that the file names too. Another writer holds the lock of the catalog until the triggerer has found the job there."""
    source = make_source(merge={"spark_server": {"url": spark_server.client.url}, "connection": CONNECTION})
    catalog = source.folder / "catalog.db"
    lake = {"type": "jdbc", "uri": f"jdbc:sqlite:{catalog}?busy_timeout=900000"}
    source.write(lake={**lake, "warehouse": f"file://{source.folder}/lake"})
    source.sql("CREATE TABLE orders (id INT PRIMARY KEY, item VARCHAR(40))", "INSERT INTO orders VALUES (1, 'bell')")
    with closing(sqlite3.connect(catalog, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        run_id = station.trigger(source.dag)
        station.wait(
            "the triggerer waits for the job",
            lambda: "The triggerer waits" in str(station.log_lines(source.dag, run_id, "merge")),
        )
    assert station.wait_for_run(source.dag, run_id)["state"] == "success", station.task_log(source.dag, run_id, "merge")
    jobs = [(job.job, job.exit_code) for job in other_server.client.jobs() if job.source == source.name]
    assert jobs == [("merge", 0)]
    assert [job for job in spark_server.client.jobs() if job.source == source.name] == []
    assert source.differences() == []
    assert TOKEN not in station.task_log(source.dag, run_id, "merge")
    assert leaks(station) == []


def leaks(station: AirflowStandalone) -> list[str]:
    """Return the tables of Airflow's database that have the token: XComs, rendered fields, triggers, DAGs, audit log; its own place is none."""
    with closing(sqlite3.connect(f"file:{station.home / 'airflow.db'}?mode=ro", uri=True)) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        assert {"xcom", "rendered_task_instance_fields", "trigger", "connection"} <= {*tables}
        return [
            table
            for table in tables
            if table != "connection"
            and any(TOKEN in str(row) for row in connection.execute(f'SELECT * FROM "{table}"'))
        ]
