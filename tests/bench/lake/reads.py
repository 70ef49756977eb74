"""Time to read a table after many merges, and data files that a reader of one key opens, compared with the same table compacted."""

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
from tests.harness.lake.running import Lake, files_per_get, lake_config

GOAL = 1.3
_SCAN = "SELECT status, count(*), sum(total), max(created), sum(length(note)) FROM {table} GROUP BY status"
SCANS = 5
GETS = 1_000
"""Keys, at equal distances, for which the data files are counted."""


def reads(folder: Path, rows: int = 5_000_000, windows: int = 100, changes: int = 1_000) -> list[Figure]:
    """Merge the windows one by one, read the whole table, compact it and read it again."""
    config = lake_config(folder, merge={"driver_memory": "2g"})
    with spark_session(config) as spark:
        lake = Lake(spark, config, LocalStore(folder / "store"))
        make_table(spark, lake, rows)
        fresh, fresh_gets = _scans(spark, lake), _gets(lake, rows)
        began = time.perf_counter()
        for number in range(windows):
            manifest, stop = write_changes(lake.batches, rows, changes, "uniform" if number % 2 else "recent", number)
            lake.merge(lake.batches.plan(stop, manifest))
        each = (time.perf_counter() - began) / windows
        worn, worn_gets = _scans(spark, lake), _gets(lake, rows)
        upkeep = MaintenanceConfig(keep_snapshots_for=timedelta(0))
        tidy = config.model_copy(update={"maintenance": upkeep})
        began = time.perf_counter()
        maintain(spark, tidy, lake.store, lake_tables(tidy, lake.cuts[-1], [TABLE]), lambda _: None)
        upkeep_took = time.perf_counter() - began
        compact, compact_gets = _scans(spark, lake), _gets(lake, rows)
    name = f"{rows:,} rows after {windows} merges of {changes:,} changes"
    ratio = round(min(worn) / min(compact), 2)
    return [
        Figure(
            f"{name}: reading the whole table, as a multiple of compacted", ratio, "x", goal=GOAL, met=ratio <= GOAL
        ),
        Figure(f"{name}: reading it", round(min(worn), 3), "s", spread=spread(worn)),
        Figure(f"{name}: reading it compacted", round(min(compact), 3), "s", spread=spread(compact)),
        Figure(f"{name}: reading it before the merges", round(min(fresh), 3), "s", spread=spread(fresh)),
        _opened(f"{name}: data files that a get of one key opens", worn_gets),
        _opened(f"{name}: data files that a get of one key opens, compacted", compact_gets),
        _opened(f"{name}: data files that a get of one key opens, before the merges", fresh_gets),
        Figure(f"{name}: one merge, in a running Spark", round(each, 3), "s"),
        Figure(f"{name}: maintenance", round(upkeep_took, 3), "s"),
    ]


def _gets(lake: Lake, rows: int) -> list[int]:
    """Return the number of data files that a get of each of several keys opens."""
    bounds = lake.key_bounds(TABLE, "id")
    return [files_per_get(bounds, key) for key in range(0, 2 * rows, max(1, 2 * rows // GETS))]


def _opened(name: str, counts: list[int]) -> Figure:
    return Figure(name, round(sum(counts) / len(counts), 2), "files", spread=spread(counts))


def _scans(spark: SparkSession, lake: Lake) -> list[float]:
    """Return the seconds of each of several scans."""
    took = []
    for _ in range(SCANS):
        began = time.perf_counter()
        spark.sql(_SCAN.format(table=lake.name(TABLE))).collect()
        took.append(time.perf_counter() - began)
    return took
