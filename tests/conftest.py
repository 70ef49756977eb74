"""Servers for the tests, each started when the first test needs it and stopped after the last one.

A test's marker is the name of its folder: tests/unit is unit, tests/e2e is e2e, and so on.
"""

from __future__ import annotations

import atexit
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

# A failed comparison in the harness shows its values, as one in a test does.
pytest.register_assert_rewrite("tests.harness")

from tests.harness.generated.examples import examples
from tests.harness.processes.turns import out_of_turn, turn_of
from tests.harness.servers import MariaDbServer, MySqlServer, S3Server, SqlServer
from tests.harness.servers.features import has
from tests.harness.servers.versions import chosen, in_use

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from cdc_lib.config.source import SourceConfig
    from tests.harness.servers.azure import AzureServer
    from tests.harness.servers.gcs import GcsServer

# Airflow makes its home when it is first imported: never in the home folder of whoever runs the tests.
if "AIRFLOW_HOME" not in os.environ:
    os.environ["AIRFLOW_HOME"] = tempfile.mkdtemp(prefix="lakecdc-airflow-")
    atexit.register(shutil.rmtree, os.environ["AIRFLOW_HOME"], ignore_errors=True)
os.environ.setdefault("AIRFLOW__CORE__LOAD_EXAMPLES", "False")
# Hadoop changes the mode of each local file by a process. By default Java starts a helper process to start that one.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-Djdk.lang.Process.launchMechanism=VFORK")

# No deadline, because the machine may be busy. The same examples each time, so that a failure comes from the change; new examples
# are generated with --hypothesis-profile search.
settings.register_profile("laws", deadline=None, derandomize=True, max_examples=examples(100))
settings.register_profile("search", deadline=None, derandomize=False, print_blob=True)
settings.load_profile("laws")

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    names = {line.split(":")[0].strip() for line in config.getini("markers")}
    modules = {item.path for item in items}
    folders = {path: path.relative_to(HERE).parts[0] for path in modules if path.is_relative_to(HERE)}
    for item in items:
        if (folder := folders.get(item.path)) in names:
            item.add_marker(folder)
    for item in list(out_of_turn(items, turn_of(HERE))):
        item.add_marker(pytest.mark.other_turn)
    _deselect_other_flavor(config, items)


def _deselect_other_flavor(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests on the other kind of server if the environment asks for a version of one kind only."""
    chosen_flavors = {flavor for flavor in ("mysql", "mariadb") if chosen(flavor)}
    if len(chosen_flavors) != 1:
        return
    others = [item for item in items if (flavors := _flavors(item)) and not flavors & chosen_flavors]
    items[:] = [item for item in items if item not in others]
    config.hook.pytest_deselected(items=others)


def _flavors(item: pytest.Item) -> set[str]:
    """Return the kinds of server that a test starts, by its parameters and fixtures."""
    parameters = item.name.partition("[")[2].rstrip("]").lower().split("-")
    # Such as "mysql", "mysql with GTIDs" and "MySqlServer".
    named = {flavor for flavor in ("mysql", "mariadb") if any(name.startswith(flavor) for name in parameters)}
    fixtures = getattr(item, "fixturenames", ())
    return named or {
        flavor for flavor in ("mysql", "mariadb") if any(name.startswith(f"{flavor}_") for name in fixtures)
    }


def pytest_report_header() -> str:
    return f"servers: MySQL {in_use('mysql')}, MariaDB {in_use('mariadb')}"


@pytest.fixture(autouse=True)
def _skip_what_the_server_lacks(request: pytest.FixtureRequest) -> None:
    for marker in request.node.iter_markers("needs"):
        for flavor in _flavors(request.node):
            server = request.getfixturevalue(f"{flavor}_server")
            if not has(server, marker.args[0]):
                pytest.skip(f"{flavor} {server.version} has no {marker.args[0]}")


@pytest.fixture(scope="session")
def mysql_server() -> Iterator[MySqlServer]:
    with MySqlServer() as server:
        yield server


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[MariaDbServer]:
    with MariaDbServer() as server:
        yield server


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    with S3Server() as server:
        yield server


@pytest.fixture(scope="session")
def gcs_server() -> Iterator[GcsServer]:
    from tests.harness.servers.gcs import GcsServer

    with GcsServer() as server:
        yield server


@pytest.fixture(scope="session")
def azure_server() -> Iterator[AzureServer]:
    from tests.harness.servers.azure import AzureServer

    with AzureServer() as server:
        yield server


@pytest.fixture(scope="session")
def spark_lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SparkSession, SourceConfig]]:
    """A running Spark, which takes seconds to start, with a catalog for all tests; each test uses its own database."""
    from spark_jobs.runtime.session import spark_session
    from tests.harness.lake.running import lake_config

    config = lake_config(tmp_path_factory.mktemp("lake"))
    with spark_session(config) as spark:
        yield spark, config


@pytest.fixture(params=["mysql", "mariadb"])
def any_server(request: pytest.FixtureRequest) -> SqlServer:
    """Runs each test that uses it on both flavors."""
    return request.getfixturevalue(f"{request.param}_server")


@pytest.fixture
def database(any_server: SqlServer) -> Iterator[str]:
    """Name of a new database on ``any_server``."""
    yield from _database(any_server)


@pytest.fixture
def mysql_database(mysql_server: MySqlServer) -> Iterator[str]:
    yield from _database(mysql_server)


@pytest.fixture
def mariadb_database(mariadb_server: MariaDbServer) -> Iterator[str]:
    yield from _database(mariadb_server)


@pytest.fixture
def bucket(s3_server: S3Server) -> str:
    """Name of a new, empty bucket."""
    return s3_server.make_bucket("test")


@pytest.fixture
def gcs_bucket(gcs_server: GcsServer) -> str:
    """Name of a new, empty bucket of Google Cloud Storage."""
    return gcs_server.make_bucket("test")


@pytest.fixture
def azure_container(azure_server: AzureServer) -> str:
    """Name of a new, empty container of Azure Blob Storage."""
    return azure_server.make_container("test")


def _database(server: SqlServer) -> Iterator[str]:
    name = f"test_{secrets.token_hex(6)}"
    server.execute(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
    yield name
    server.execute(f"DROP DATABASE IF EXISTS {name}")
