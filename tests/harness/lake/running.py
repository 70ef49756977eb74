"""A lake on a running Spark, to merge plans into and to read."""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from cdc_lib.config.source import SourceConfig
from cdc_lib.lake.routing import lake_merges
from cdc_lib.merge.load import load_plan
from cdc_lib.model.lake_table import LakeTable
from cdc_lib.model.lexer import quoted
from cdc_lib.model.merge_plan import Cut, MergePlan
from cdc_lib.ports import ObjectStore
from spark_jobs.iceberg.lake_table import IcebergTable
from spark_jobs.merging.job import Now, utc_now
from spark_jobs.merging.run import merge, needs_spark, run
from spark_jobs.merging.source_rows import Origin
from spark_jobs.sql import full_name
from tests.harness.lake.batches import BatchWriter


def lake_config(folder: Path, **changed: Any) -> SourceConfig:
    """Return a source whose store and lake are in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    plain = {
        "source": "shop",
        "server": {"host": "127.0.0.1", "user": "cdc", "password_env": "CDC_TEST_PASSWORD"},
        "tables": {"include": ["*.*"]},
        "store": {"url": f"file://{folder}/store"},
        "lake": {
            "type": "jdbc",
            "uri": f"jdbc:sqlite:{folder}/catalog.db?busy_timeout=30000",
            "warehouse": f"file://{folder}/warehouse",
        },
        "merge": {"driver_memory": "1g"},
        **changed,
    }
    return SourceConfig.model_validate(plain)


def empty_catalog(config: SourceConfig) -> None:
    """Remove all tables from the catalog of :func:`lake_config`; their files stay."""
    file = str(config.lake.uri).removeprefix("jdbc:sqlite:").partition("?")[0]
    with closing(sqlite3.connect(file, timeout=30)) as catalog, catalog:
        catalog.execute("DELETE FROM iceberg_tables")


def files_per_get(bounds: Sequence[tuple[Any, Any]], key: Any) -> int:
    """Return how many data files a reader of one key opens: those whose bounds contain it."""
    return sum(lower <= key <= upper for lower, upper in bounds)


class Lake:
    """Merges plans and reads tables."""

    def __init__(self, spark: SparkSession, config: SourceConfig, store: ObjectStore) -> None:
        self.spark = spark
        self.config = config
        self.store = store
        self.batches = BatchWriter(store)
        self.database = f"db_{secrets.token_hex(4)}"
        self.said: list[str] = []
        self.cuts: list[Cut] = []
        self.origin: Origin | None = None
        self.now: Now = utc_now

    def merge(self, plan: MergePlan) -> Cut:
        """Merge a plan in the running Spark; a plan without changes needs no Spark."""
        if not needs_spark(self.config, self.store, load_plan(self.store, plan)):
            return run(self.config, plan, self.store, now=self.now)
        cut = merge(self.spark, self.config, plan, self.store, self.said.append, origin=self.origin, now=self.now)
        self.cuts.append(cut)
        return cut

    def name(self, table: str) -> str:
        """Return the name of a source table's lake table, for SQL."""
        return full_name(lake_merges(self.config, [table])[0].name)

    def target(self, table: str) -> IcebergTable:
        """Return the lake table of a source table."""
        lake = lake_merges(self.config, [table])[0]
        return IcebergTable(self.spark, lake.name, self.config.source, {table: lake.routed_tables[0].target.routed})

    def state(self, table: str) -> LakeTable:
        """Return the lake table's facts."""
        state = self.target(table).load()
        assert state is not None
        return state

    def rows(self, table: str, *columns: str) -> list[tuple[Any, ...]]:
        """Return columns of all rows, sorted."""
        frame = self.spark.sql(f"SELECT {', '.join(map(quoted, columns))} FROM {self.name(table)}")
        return sorted((tuple(row) for row in frame.collect()), key=repr)

    def key_bounds(self, table: str, column: str) -> list[tuple[Any, Any]]:
        """Return the least and the largest value of a key column in each data file, sorted."""
        metrics = f"readable_metrics.{quoted(column)}"
        frame = self.spark.sql(
            f"SELECT {metrics}.lower_bound, {metrics}.upper_bound FROM {self.name(table)}.data_files"
        )
        return sorted(tuple(row) for row in frame.collect())

    def snapshots(self, table: str) -> int:
        """Return how many snapshots the table has."""
        return self.spark.sql(f"SELECT count(*) FROM {self.name(table)}.snapshots").first()[0]
