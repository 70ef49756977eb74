"""The whole way as users run it: Airflow's scheduler, one run a minute, a source with continuous writes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.harness.airflow.database import move_back
from tests.harness.airflow.source import AirflowSource
from tests.harness.airflow.standalone import AirflowStandalone


class Customers(threading.Thread):
    """Writes until it is stopped: inserts, updates, deletes and changed keys."""

    def __init__(self, source: AirflowSource) -> None:
        super().__init__(daemon=True)
        self.source = source
        self.enough = threading.Event()
        self.rounds = 0

    def run(self) -> None:
        with self.source.server.connect(database=self.source.name) as connection, connection.cursor() as cursor:
            while not self.enough.wait(0.2):
                self.rounds += 1
                for statement in self.statements(self.rounds):
                    cursor.execute(statement)

    def statements(self, n: int) -> tuple[str, ...]:
        return (
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


def test_scheduled_runs_merge_a_busy_source_into_the_lake(
    station: AirflowStandalone, make_source: Callable[..., AirflowSource]
):
    """Two runs during the writes, with the snapshot and after it, and one after them; then every row of every table is equal."""
    source = make_source()
    source.sql(
        "CREATE TABLE customers (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(50), joined DATETIME(6))",
        "CREATE TABLE orders (customer INT, number INT, total DECIMAL(12, 2), note JSON, PRIMARY KEY (customer, number))",
    )
    customers = Customers(source)
    customers.start()
    source.write(schedule="* * * * *")

    def done(kind: str) -> list[str]:
        runs = [run for run in station.dag_runs(source.dag) if run["run_type"] == kind]
        assert all(run["state"] != "failed" for run in runs), runs
        return [run["dag_run_id"] for run in runs if run["state"] == "success"]

    station.wait("two scheduled runs", lambda: len(done("scheduled")) >= 2)
    customers.stop()
    last = station.trigger(source.dag)
    assert station.wait_for_run(source.dag, last)["state"] == "success"
    station.pause(source.dag)  # not earlier: pausing a DAG stops its run in progress
    assert customers.rounds > 100
    assert source.differences() == []


@pytest.mark.slow
def test_after_a_pause_of_a_day_one_run_merges_what_was_written_meanwhile(
    station: AirflowStandalone, make_source: Callable[..., AirflowSource]
):
    """1,440 times of a schedule have passed by then: Airflow makes a run of the last of them alone."""
    source = make_source(schedule="* * * * *")
    source.sql("CREATE TABLE orders (id INT PRIMARY KEY, item VARCHAR(40))", "INSERT INTO orders VALUES (1, 'bell')")

    def finished() -> list[dict[str, Any]]:
        """Return the scheduled runs when all of them have ended."""
        runs = [run for run in station.dag_runs(source.dag) if run["run_type"] == "scheduled"]
        return runs if runs and all(run["state"] == "success" for run in runs) else []

    station.wait("a scheduled run", finished)
    station.pause(source.dag)
    before = {run["dag_run_id"] for run in station.dag_runs(source.dag)}
    move_back(station.home, source.dag, hours=24)
    source.sql("INSERT INTO orders VALUES (2, 'lamp')", "UPDATE orders SET item = 'horn' WHERE id = 1")
    continued = datetime.now(UTC)
    station.unpause(source.dag)

    def new() -> list[dict[str, Any]]:
        return [run for run in finished() if run["dag_run_id"] not in before]

    station.wait("a run of a time after the pause", lambda: any(started_at(run) > continued for run in new()))
    assert sum(started_at(run) <= continued for run in new()) <= 1
    station.pause(source.dag)
    assert source.differences() == []


def started_at(run: dict[str, Any]) -> datetime:
    """Return the time of the schedule that a run is for."""
    return datetime.fromisoformat(run["logical_date"])
