"""End to end as users run it: Airflow's scheduler, one run a minute, a source with continuous writes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.airflow import ROOT, AirflowStandalone
from tests.harness.airflow_source import PASSWORD_VARIABLE, AirflowSource
from tests.harness.servers import MySqlServer

pytestmark = pytest.mark.timeout(900)

NAME = "little_shop"


@pytest.fixture
def source(mysql_server: MySqlServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AirflowSource]:
    """A source that runs every minute."""
    monkeypatch.setenv(PASSWORD_VARIABLE, mysql_server.cdc_password)
    mysql_server.execute(f"CREATE DATABASE {NAME} CHARACTER SET utf8mb4")
    (tmp_path / "sources").mkdir()
    source = AirflowSource(NAME, mysql_server, tmp_path / "sources", tmp_path / NAME).write(schedule="* * * * *")
    source.sql(
        "CREATE TABLE customers (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(50), joined DATETIME(6))",
        "CREATE TABLE orders (customer INT, number INT, total DECIMAL(12, 2), note JSON, PRIMARY KEY (customer, number))",
    )
    yield source
    mysql_server.execute(f"DROP DATABASE {NAME}")


class Customers(threading.Thread):
    """Writes until it is stopped: inserts, updates, deletes and changed keys."""

    def __init__(self, source: AirflowSource) -> None:
        super().__init__(daemon=True)
        self.source = source
        self.enough = threading.Event()
        self.rounds = 0

    def run(self) -> None:
        while not self.enough.wait(0.2):
            self.rounds += 1
            n = self.rounds
            self.source.sql(
                "BEGIN",
                f"INSERT INTO customers (name, joined) VALUES ('Zoë {n}', NOW(6))",
                f"""INSERT INTO orders VALUES ({n}, 1, {n}.25, '{{"round": {n}}}'), ({n}, 2, 10, NULL)""",
                f"UPDATE orders SET total = total + 1 WHERE customer % 7 = {n % 7}",
                "COMMIT",
                f"DELETE FROM orders WHERE customer = {n - 20}",
                f"UPDATE orders SET number = 3 WHERE customer = {n - 5} AND number = 2",
            )

    def stop(self) -> None:
        self.enough.set()
        self.join(30)


def test_three_scheduled_runs_merge_a_busy_source_into_the_lake(source: AirflowSource, tmp_path: Path):
    """Three runs during the writes and one after them; then every row of every table is equal."""
    env = {
        "CDC_SOURCES": str(source.sources),
        PASSWORD_VARIABLE: source.server.cdc_password,
        "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "5",
    }
    customers = Customers(source)
    customers.start()
    with AirflowStandalone(tmp_path / "airflow", ROOT / "dags", ROOT / "plugins", env) as air:
        air.wait_for_dag(source.dag)
        air.unpause(source.dag)

        def done(kind: str) -> list[str]:
            runs = [run for run in air.dag_runs(source.dag) if run["run_type"] == kind]
            assert all(run["state"] != "failed" for run in runs), runs
            return [run["dag_run_id"] for run in runs if run["state"] == "success"]

        air.wait("three scheduled runs", lambda: len(done("scheduled")) >= 3, 400)
        customers.stop()
        last = air.trigger(source.dag)
        assert air.wait_for_run(source.dag, last)["state"] == "success"
        air.pause(source.dag)  # not earlier: pausing a DAG stops its run in progress
    assert customers.rounds > 100
    assert source.differences() == []
