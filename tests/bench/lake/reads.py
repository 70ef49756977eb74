"""Time to read a table after many merges, compared with the same table after compaction."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path

from pyspark.sql import SparkSession

from cdc_lib.config.maintenance import MaintenanceConfig
from cdc_lib.store.objects.local import LocalStore
from spark_jobs.maintain import lake_tables, maintain
from spark_jobs.runtime.session import spark_session
from tests.bench.lake.orders import TABLE, make_table, write_changes
from tests.bench.report import Figure, spread
from tests.harness.lake import Lake, lake_config

GOAL = 1.3
_SCAN = "SELECT status, count(*), sum(total), max(created), sum(length(note)) FROM {table} GROUP BY status"
SCANS = 5


def reads(folder: Path, rows: int = 5_000_000, windows: int = 100, changes: int = 1_000) -> list[Figure]:
    """Merge the windows one by one, read the whole table, compact it and read it again."""
    config = lake_config(folder, merge={"driver_memory": "2g"})
    with spark_session(config) as spark:
        lake = Lake(spark, config, LocalStore(folder / "store"))
        make_table(spark, lake, rows)
        fresh = _scans(spark, lake)
        began = time.perf_counter()
        for number in range(windows):
            manifest, stop = write_changes(lake.batches, rows, changes, "uniform" if number % 2 else "recent", number)
            lake.merge(lake.batches.plan(stop, manifest))
        each = (time.perf_counter() - began) / windows
        worn = _scans(spark, lake)
        upkeep = MaintenanceConfig(keep_snapshots_for=timedelta(0))
        tidy = config.model_copy(update={"maintenance": upkeep})
        began = time.perf_counter()
        maintain(spark, tidy, lake.store, lake_tables(tidy, lake.cuts[-1], [TABLE]), lambda _: None)
        upkeep_took = time.perf_counter() - began
        compact = _scans(spark, lake)
    name = f"{rows:,} rows after {windows} merges of {changes:,} changes"
    ratio = round(min(worn) / min(compact), 2)
    return [
        Figure(
            f"{name}: reading the whole table, as a multiple of compacted", ratio, "x", goal=GOAL, met=ratio <= GOAL
        ),
        Figure(f"{name}: reading it", round(min(worn), 3), "s", spread=spread(worn)),
        Figure(f"{name}: reading it compacted", round(min(compact), 3), "s", spread=spread(compact)),
        Figure(f"{name}: reading it before the merges", round(min(fresh), 3), "s", spread=spread(fresh)),
        Figure(f"{name}: one merge, in a running Spark", round(each, 3), "s"),
        Figure(f"{name}: maintenance", round(upkeep_took, 3), "s"),
    ]


def _scans(spark: SparkSession, lake: Lake) -> list[float]:
    """Return the seconds of each of several scans."""
    took = []
    for _ in range(SCANS):
        began = time.perf_counter()
        spark.sql(_SCAN.format(table=lake.name(TABLE))).collect()
        took.append(time.perf_counter() - began)
    return took
