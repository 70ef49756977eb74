"""The daily report that the guide prints, on a real Airflow: one run for each day that is complete in the lake.

No test waits for midnight: ``sealed_days.delay`` in the source file moves it.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest

from cdc_lib.lake.catalog import open_catalog
from cdc_lib.store.announced_days import announced_days
from cdc_lib.store.objects.open import open_store
from tests.harness.airflow.source import PASSWORD_VARIABLE, AirflowSource
from tests.harness.airflow.standalone import ROOT, AirflowStandalone
from tests.harness.servers import MySqlServer

pytestmark = [pytest.mark.timeout(2400), pytest.mark.slow]

NAME = "shop"
REPORT = "shop_by_day"
GUIDE = ROOT / "docs" / "guides" / "airflow.md"
ORDERS = (2, 4, 3, 6, 5, 2, 1, 4, 3)
"""Orders of today, of yesterday, and so on."""
RUN_SECONDS = 900
"""Timeout of a run on a busy machine."""


@pytest.fixture
def source(mysql_server: MySqlServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AirflowSource]:
    """The source shop, whose days end a week late; its orders are of the last days."""
    monkeypatch.setenv(PASSWORD_VARIABLE, mysql_server.cdc_password)
    mysql_server.execute(f"CREATE DATABASE {NAME} CHARACTER SET utf8mb4")
    (tmp_path / "sources").mkdir()
    source = AirflowSource(NAME, mysql_server, tmp_path / "sources", tmp_path / "data").write(sealed_days=delay(7))
    source.sql("CREATE TABLE orders (id INT PRIMARY KEY, price DECIMAL(10, 2), ordered DATETIME)")
    for back, count in enumerate(ORDERS):
        at = f"UTC_TIMESTAMP() - INTERVAL {back} DAY"
        for number in range(count):
            source.sql(f"INSERT INTO orders VALUES ({10 * back + number}, {back}.50, {at})")
    yield source
    mysql_server.execute(f"DROP DATABASE {NAME}")


@pytest.fixture
def air(source: AirflowSource, tmp_path: Path) -> Iterator[AirflowStandalone]:
    """An Airflow with the DAGs of the source and the report of the guide."""
    dags = tmp_path / "dags"
    shutil.copytree(ROOT / "dags", dags, ignore=shutil.ignore_patterns("sources", "__pycache__"))
    (block,) = [one for one in re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL) if REPORT in one]
    text = block.replace("/opt/airflow/sources/shop.yaml", str(source.file))
    (dags / "report.py").write_text(text.replace("/opt/airflow/reports", str(plot(tmp_path).parent)))
    env = {"CDC_SOURCES": str(source.sources), PASSWORD_VARIABLE: source.server.cdc_password}
    with AirflowStandalone(tmp_path / "airflow", dags, ROOT / "plugins", env, ready_seconds=600) as air:
        for dag in (source.dag, REPORT):
            air.wait_for_dag(dag, 400)
            air.unpause(dag)
        yield air


def plot(folder: Path) -> Path:
    """Return the file that the report draws."""
    return folder / "reports" / "orders_by_day.svg"


def row_of(source: AirflowSource, day: str) -> tuple[int, Decimal]:
    """Return number and price of a day in the report, which has one row for it."""
    found = open_catalog(source.config).load_table("reports.orders_by_day").scan(f"day = '{day}'").to_arrow()
    (row,) = found.to_pylist()
    return row["orders"], row["price"]


def delay(days: int) -> dict[str, str]:
    """Return the section with which the last complete day is the one before so many days ago."""
    return {"delay": f"{days * 24}h"}


def seal_days(air: AirflowStandalone, source: AirflowSource, expected: str) -> str:
    """Run the DAG of the source once, and return its id after checking what became of its last task."""
    run_id = air.trigger(source.dag)
    assert air.wait_for_run(source.dag, run_id, RUN_SECONDS)["state"] == "success"
    assert state_of(air, source, run_id) == expected
    return run_id


def state_of(air: AirflowStandalone, source: AirflowSource, run_id: str) -> str:
    (state,) = [task["state"] for task in air.tasks(source.dag, run_id) if task["task_id"] == "seal_days"]
    return str(state)


def announced(air: AirflowStandalone) -> list[str]:
    """Return the days of which Airflow has an event, sorted."""

    def listed() -> list[dict[str, Any]] | None:
        try:
            return list(air.get("/assets/events?limit=500")["asset_events"])
        except httpx.HTTPStatusError as error:
            if error.response.status_code != httpx.codes.INTERNAL_SERVER_ERROR:
                raise
            return None  # Airflow 3.3 lists no event while a run that one of them created waits to start

    events = air.wait("the events are listed", listed, RUN_SECONDS)
    return sorted(str(one["partition_key"]) for one in events if one["uri"] == f"cdc://{NAME}/days")


def reported(air: AirflowStandalone, days: list[str]) -> None:
    """Wait until the report has one run for each day, and no other."""

    def ended() -> bool:
        runs = air.dag_runs(REPORT)
        assert all(run["state"] != "failed" for run in runs), runs
        return len(runs) >= len(days) and all(run["state"] == "success" for run in runs)

    air.wait(f"reports of {days}", ended, RUN_SECONDS)
    assert sorted(run["partition_key"] for run in air.dag_runs(REPORT)) == days


def run_of(air: AirflowStandalone, day: str) -> str:
    """Return the id of the report's run of a day."""
    (run,) = [one for one in air.dag_runs(REPORT) if one["partition_key"] == day]
    return str(run["dag_run_id"])


def states_of(air: AirflowStandalone, day: str) -> set[str]:
    return {str(task["state"]) for task in air.tasks(REPORT, run_of(air, day))}


def test_each_complete_day_has_one_report(air: AirflowStandalone, source: AirflowSource, tmp_path: Path):
    """Also after a pause, a clear, and a task that was marked success before it announced anything."""
    today = datetime.now(UTC).date()
    days = [(today - timedelta(days=back)).isoformat() for back in range(7, 0, -1)]

    seal_days(air, source, "skipped")
    noted = announced_days(open_store(source.config.store), NAME)
    assert noted is not None
    assert noted.through == today - timedelta(days=8)

    source.write(sealed_days=delay(6))
    idle = seal_days(air, source, "success")  # nothing was committed since
    assert announced(air) == days[:1]
    reported(air, days[:1])
    assert row_of(source, days[0]) == (ORDERS[7], ORDERS[7] * Decimal("7.50"))

    air.clear(source.dag, idle, "seal_days")
    air.wait("the cleared task has ended", lambda: state_of(air, source, idle) == "skipped", RUN_SECONDS)
    assert announced(air) == days[:1]

    source.write(sealed_days=delay(3))
    source.sql("UPDATE orders SET price = price + 1")
    lost = air.trigger(source.dag)
    air.mark(source.dag, lost, "seal_days", "success")  # before it runs
    assert air.wait_for_run(source.dag, lost, RUN_SECONDS)["state"] == "success"
    assert announced(air) == days[:1]

    seal_days(air, source, "success")
    assert announced(air) == days[:4]
    reported(air, days[:4])
    assert row_of(source, days[0]) == (
        ORDERS[7],
        ORDERS[7] * Decimal("7.50"),
    )  # as of the transaction that completed it
    assert row_of(source, days[3]) == (ORDERS[4], ORDERS[4] * Decimal("5.50"))

    seal_days(air, source, "skipped")  # it notes that Airflow has the events
    noted = announced_days(open_store(source.config.store), NAME)
    assert noted is not None
    assert noted.through == date.fromisoformat(days[3])
    seal_days(air, source, "skipped")
    assert announced(air) == days[:4]
    reported(air, days[:4])

    air.clear(REPORT, run_of(air, days[3]), "report")
    air.wait("the repeated report has ended", lambda: states_of(air, days[3]) == {"success"}, RUN_SECONDS)
    assert row_of(source, days[3]) == (ORDERS[4], ORDERS[4] * Decimal("5.50"))
    drawn = plot(tmp_path).read_text()
    assert all(f"<!-- {day} -->" in drawn for day in days[:4])
