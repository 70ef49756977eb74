from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.harness.airflow.database import put_database
from tests.harness.airflow.source import ORDERS_AND_COLOURS, PASSWORD_VARIABLE, AirflowSource, log_ins
from tests.harness.airflow.standalone import ROOT, AirflowStandalone
from tests.harness.docs.package import metadata_path
from tests.harness.servers import MySqlServer
from tests.harness.spark.server import RunningSparkServer

METRICS_TOKEN = secrets.token_hex(32)


@pytest.fixture(scope="session")
def station(mysql_server: MySqlServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AirflowStandalone]:
    """An Airflow with this project's DAGs and an empty folder of sources, which `make_source` fills; all tests share it.

    A test may put a DAG of its own beside those of the project.
    """
    home = tmp_path_factory.mktemp("airflow")
    put_database(home)
    (home / "sources").mkdir()
    dags = home / "dags"
    dags.mkdir()
    for file in (ROOT / "dags").glob("*.py"):
        shutil.copy(file, dags)
    env = {
        "CDC_SOURCES": str(home / "sources"),
        **log_ins(mysql_server),
        # DAG files are read again when a source has touched them; an interval of 5 s would take most of the CPU time of all tests here.
        "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "30",
        "AIRFLOW__SCHEDULER__PARSING_CLEANUP_INTERVAL": "10",
        "AIRFLOW__CDC__METRICS_TOKEN": METRICS_TOKEN,
        "AIRFLOW__CDC__WATCH_INTERVAL": "2",
        "PYTHONPATH": metadata_path(home / "metadata"),
        "AIRFLOW__CORE__TEST_CONNECTION": "Enabled",  # the Test button is off unless somebody switches it on
        # A killed worker is detected after a minute instead of five.
        "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "60",
        "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "5",
    }
    with AirflowStandalone(home, dags, ROOT / "plugins", env) as air:
        yield air


@pytest.fixture(scope="session")
def spark_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningSparkServer]:
    """The Spark server of all sources: no merge of a test starts a Java, which costs ten CPU seconds."""
    with RunningSparkServer(tmp_path_factory.mktemp("spark")) as server:
        yield server


@pytest.fixture
def metrics_token() -> str:
    """The token that Prometheus would have."""
    return METRICS_TOKEN


@contextmanager
def _sources(
    station: AirflowStandalone, server: MySqlServer, folder: Path, spark: RunningSparkServer
) -> Iterator[Callable[..., AirflowSource]]:
    """Make sources whose DAGs are listed and not paused; remove their files and databases at the end."""
    made: list[AirflowSource] = []

    def make(**changed: object) -> AirflowSource:
        name = f"shop_{secrets.token_hex(4)}"
        server.execute(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
        merge = {"spark_server": {"url": spark.client.url}}
        source = AirflowSource(name, server, station.home / "sources", folder / name, merge=merge, dags=station.dags)
        source.write(**changed)
        made.append(source)
        station.wait_for_dag(source.dag)
        station.unpause(source.dag)
        return source

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(PASSWORD_VARIABLE, server.cdc_password)
        yield make
    for source in made:
        source.file.unlink(missing_ok=True)
        server.execute(f"DROP DATABASE {source.name}")


@pytest.fixture
def make_source(
    station: AirflowStandalone, mysql_server: MySqlServer, tmp_path: Path, spark_server: RunningSparkServer
) -> Iterator[Callable[..., AirflowSource]]:
    """Makes a new source whose DAG is listed and not paused."""
    with _sources(station, mysql_server, tmp_path, spark_server) as make:
        yield make


@pytest.fixture(scope="module")
def make_shared_source(
    station: AirflowStandalone,
    mysql_server: MySqlServer,
    tmp_path_factory: pytest.TempPathFactory,
    spark_server: RunningSparkServer,
) -> Iterator[Callable[..., AirflowSource]]:
    """The same for a source that the tests of a file share."""
    with _sources(station, mysql_server, tmp_path_factory.mktemp("shared"), spark_server) as make:
        yield make


@pytest.fixture
def source(make_source: Callable[..., AirflowSource]) -> AirflowSource:
    """A source with three orders and a table of two colours."""
    source = make_source()
    source.sql(*ORDERS_AND_COLOURS)
    return source
