"""Airflow with its database on PostgreSQL, as most installations have it: two sources at once, repeated tasks, the page."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.harness.airflow.source import AirflowSource, log_ins
from tests.harness.airflow.standalone import ROOT, AirflowStandalone
from tests.harness.servers import MySqlServer
from tests.harness.servers.postgres import PostgresServer, packages

pytestmark = pytest.mark.slow

NAMES = ("first_shop", "second_shop")


@pytest.fixture
def sources(
    mysql_server: MySqlServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[list[AirflowSource]]:
    """Two sources with a table each, which run on request."""
    for name, value in log_ins(mysql_server).items():
        monkeypatch.setenv(name, value)
    (tmp_path / "sources").mkdir()
    made = []
    for name in NAMES:
        mysql_server.execute(f"CREATE DATABASE {name}")
        made.append(AirflowSource(name, mysql_server, tmp_path / "sources", tmp_path / name).write())
        made[-1].sql(
            "CREATE TABLE orders (id INT PRIMARY KEY, total DECIMAL(12, 2))", "INSERT INTO orders VALUES (1, 2.5)"
        )
    yield made
    for name in NAMES:
        mysql_server.execute(f"DROP DATABASE {name}")


def test_airflow_on_postgresql_runs_two_sources_at_once_and_their_tasks_twice(
    sources: list[AirflowSource], mysql_server: MySqlServer, tmp_path: Path
):
    """The runs end well and equal, a cleared run changes nothing, and the page shows both sources."""
    with PostgresServer() as postgres:
        env = {
            "CDC_SOURCES": str(sources[0].sources),
            "PYTHONPATH": str(packages()),
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": postgres.create_database("airflow"),
            **log_ins(mysql_server),
        }
        with AirflowStandalone(tmp_path / "airflow", ROOT / "dags", ROOT / "plugins", env) as air:
            for source in sources:
                air.wait_for_dag(source.dag)
                air.unpause(source.dag)
            for number in (2, 3):
                for source in sources:
                    source.sql(f"INSERT INTO orders VALUES ({number}, {number})", "UPDATE orders SET total = total + 1")
                runs = [air.trigger(source.dag) for source in sources]
                with ThreadPoolExecutor() as pool:
                    ended = pool.map(
                        lambda pair: air.wait_for_run(*pair), zip((s.dag for s in sources), runs, strict=True)
                    )
                    assert [run["state"] for run in ended] == ["success", "success"]
            before = [source.state_hashes() for source in sources]
            for source, run in zip(sources, runs, strict=True):
                air.clear(source.dag, run, "drain", downstream=True)
                assert air.wait_for_run(source.dag, run)["state"] == "success"
            assert [source.state_hashes() for source in sources] == before
            assert {one["source"] for one in air.get("/cdc/page/sources")["sources"]} == set(NAMES)
    assert [source.differences() for source in sources] == [[], []]
