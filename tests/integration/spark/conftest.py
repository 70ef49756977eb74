"""One Spark for all tests of the merge: it takes seconds to start."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cdc_lib.config.source import SourceConfig
from cdc_lib.store.local import LocalStore
from tests.support.lake import Lake, lake_config

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Pyspark leaves the socket of every collect to the garbage collector."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"))


@pytest.fixture(scope="session")
def spark_lake(tmp_path_factory) -> Iterator[tuple[SparkSession, SourceConfig]]:
    """A running Spark with a catalog that all tests share; each takes a database of its own."""
    from spark_jobs.session import spark_session

    config = lake_config(tmp_path_factory.mktemp("lake"))
    with spark_session(config) as spark:
        yield spark, config


@pytest.fixture
def lake(spark_lake, tmp_path: Path) -> Lake:
    """A lake of its own in the running Spark: an empty store, and a database name that nobody else has."""
    spark, config = spark_lake
    return Lake(spark, config, LocalStore(tmp_path / "store"))
