"""Servers for the tests, each started when the first test asks for it and stopped after the last one.

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

from tests.harness.servers import MariaDbServer, MySqlServer, S3Server, SqlServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from cdc_lib.config.source import SourceConfig

# Airflow makes its home when it is first imported: never in the home folder of whoever runs the tests.
if "AIRFLOW_HOME" not in os.environ:
    os.environ["AIRFLOW_HOME"] = tempfile.mkdtemp(prefix="lakecdc-airflow-")
    atexit.register(shutil.rmtree, os.environ["AIRFLOW_HOME"], ignore_errors=True)
os.environ.setdefault("AIRFLOW__CORE__LOAD_EXAMPLES", "False")

# A busy machine makes no law wrong. The same examples each time, so that a change is blamed for what it does itself; new ones
# are looked for with --hypothesis-profile search.
settings.register_profile("laws", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None, derandomize=False, print_blob=True)
settings.load_profile("laws")

HERE = Path(__file__).parent


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    names = {line.split(":")[0].strip() for line in config.getini("markers")}
    for item in items:
        folder = item.path.relative_to(HERE).parts[0] if item.path.is_relative_to(HERE) else ""
        if folder in names:
            item.add_marker(folder)


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
def spark_lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SparkSession, SourceConfig]]:
    """A running Spark, which takes seconds to start, with a catalog that all tests share; each takes a database of its own."""
    from spark_jobs.runtime.session import spark_session
    from tests.harness.lake import lake_config

    config = lake_config(tmp_path_factory.mktemp("lake"))
    with spark_session(config) as spark:
        yield spark, config


@pytest.fixture(params=["mysql", "mariadb"])
def any_server(request: pytest.FixtureRequest) -> SqlServer:
    """Each test that asks for it runs on both flavors."""
    return request.getfixturevalue(f"{request.param}_server")


@pytest.fixture
def database(any_server: SqlServer) -> Iterator[str]:
    """Name of a database of its own on ``any_server``."""
    yield from _database(any_server)


@pytest.fixture
def mysql_database(mysql_server: MySqlServer) -> Iterator[str]:
    yield from _database(mysql_server)


@pytest.fixture
def mariadb_database(mariadb_server: MariaDbServer) -> Iterator[str]:
    yield from _database(mariadb_server)


@pytest.fixture
def bucket(s3_server: S3Server) -> str:
    """Name of an empty bucket of its own."""
    return s3_server.make_bucket("test")


def _database(server: SqlServer) -> Iterator[str]:
    name = f"test_{secrets.token_hex(6)}"
    server.execute(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
    yield name
    server.execute(f"DROP DATABASE IF EXISTS {name}")
