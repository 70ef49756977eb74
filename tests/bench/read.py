"""Reads by key from a large lake table after many merges, without Spark: ``./dev bench read``.

In the same run PyIceberg's own scan reads the same keys and ranges. The floor is what Arrow takes to read one row group. Earlier versions
of rows are read from the batches of the merges, and from those of many small windows that one merge of another table takes.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyiceberg.expressions import And, EqualTo, GreaterThanOrEqual, In, LessThan
from pyiceberg.table import Table

from cdc_lib.config import SourceConfig
from cdc_lib.lake.catalog import open_table
from cdc_lib.model.cursor import DRAIN, LAKE, Cursor
from cdc_lib.ports import ObjectStore
from cdc_lib.read import Lake as ReadLake
from cdc_lib.store.cursors import ObjectCursorStore
from cdc_lib.store.manifests import load_manifest
from cdc_lib.store.objects.local import LocalStore
from cdc_lib.store.windows import stored_windows
from spark_jobs.runtime.session import spark_session
from tests.bench.lake.orders import TABLE, make_table, write_changes
from tests.bench.report import Figure, save, spread
from tests.bench.usage import ROOT
from tests.harness.batches import IDENTITY, at
from tests.harness.lake import Lake, lake_config

GETS, PEER_GETS, MANY, RANGE, REPEATS, VERSIONS = 1_000, 5, 1_000, 10_000, 7, 100
FEW = ["id", "status"]
_SMALL = 1_000_000
"""Most rows of the table whose versions are read from many windows."""


def main() -> int:
    """Make the table, merge into it, read, print and save."""
    parser = argparse.ArgumentParser(prog="./dev bench read", description=__doc__)
    parser.add_argument("--rows", type=int, default=3_000_000, help="of the table (3000000)")
    parser.add_argument("--merges", type=int, default=50, help="without maintenance (50)")
    parser.add_argument("--changes", type=int, default=10_000, help="of each merge (10000)")
    parser.add_argument("--windows", type=int, default=1_000, help="of which versions of rows are read (1000)")
    parser.add_argument("--window-changes", type=int, default=1_000, help="of each window (1000)")
    parser.add_argument("--folder", type=Path, help="of a table that an earlier run made there; made if it is empty")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "bench" / "read.json", help="the file")
    options = parser.parse_args()
    load = round(os.getloadavg()[0], 2)
    with tempfile.TemporaryDirectory(prefix="lakecdc-bench-") as temporary:
        folder = options.folder or Path(temporary)
        config = lake_config(folder, merge={"driver_memory": "2g"})
        if not (folder / "catalog.db").exists():
            make(config, folder, options.rows, options.merges, options.changes)
        name = f"{options.rows:,} rows after {options.merges} merges of {options.changes:,} changes"
        figures = measured(config, options.rows, name)
        small = lake_config(folder / "windows", merge={"driver_memory": "2g"})
        rows = min(options.rows, _SMALL)
        if not (folder / "windows" / "catalog.db").exists():
            make_windows(small, folder / "windows", rows, options.windows, options.window_changes)
        figures += versions(small, rows, options.windows)
    for one in figures:
        ratio = f", {one.ratio} x {one.compared_to}" if one.compared_to else ""
        goal = "" if one.goal is None else f", goal {one.goal:g}: {'met' if one.met else 'not met'}"
        print(f"{one.name}: {one.value:,} {one.unit}{ratio}{goal}")
    about = {
        "load_before": load,
        "runs": f"{GETS} gets; {REPEATS} of each other read, the median counts; {PEER_GETS} of PyIceberg's gets",
        "warm_up": f"{GETS} gets of other keys, so that the keys are in memory; none for the first get",
    }
    save(figures, "none", about, options.output)
    return 0


def make(config: SourceConfig, folder: Path, rows: int, merges: int, changes: int) -> None:
    """Make the table, and merge changes near its newest rows and over all of it by turns."""
    with spark_session(config) as spark:
        lake = Lake(spark, config, LocalStore(folder / "store"))
        make_table(spark, lake, rows)
        for number in range(merges):
            keys = "uniform" if number % 2 else "recent"
            manifest, stop = write_changes(lake.batches, rows, changes, keys, number)
            lake.merge(lake.batches.plan(stop, manifest))


def make_windows(config: SourceConfig, folder: Path, rows: int, windows: int, changes: int) -> None:
    """Make a small table, and merge many windows of changes at once."""
    folder.mkdir(parents=True, exist_ok=True)
    with spark_session(config) as spark:
        lake = Lake(spark, config, LocalStore(folder / "store"))
        make_table(spark, lake, rows)
        made = [write_changes(lake.batches, rows, changes, "uniform", number) for number in range(windows)]
        lake.merge(lake.batches.plan(made[-1][1], *(manifest for manifest, _ in made)))


def versions(config: SourceConfig, rows: int, windows: int) -> list[Figure]:
    """Read the versions of rows from the batches of many windows; without keys in memory, and with them."""
    chosen = random.Random(2)
    keys = [2 * chosen.randrange(rows) for _ in range(VERSIONS)]
    store = LocalStore(Path(config.store.url.removeprefix("file://")))
    name = f"{acknowledged(config, store):,} changes in {windows:,} windows"
    with ReadLake.open(config, store=store) as lake:
        table = lake.table(TABLE)
        first = _times(table.archived_versions, keys[:1])
        warm = _times(table.archived_versions, keys)
        found = [table.archived_versions(key).rows.num_rows for key in keys]
    shown = f"{sum(found) / len(found):.1f} versions of each"
    return [
        _figure(f"{name}: the first versions of a row", first),
        _figure(f"{name}: the versions of a row, {shown}, p50", warm, 200),
        _figure(f"{name}: the versions of a row, {shown}, p99", warm, part=0.99),
    ]


def acknowledged(config: SourceConfig, store: ObjectStore) -> int:
    """Write the cursors at the end of the last window, if there are none; return the number of changes in windows."""
    windows, cursors = stored_windows(store, config.source), ObjectCursorStore(store)
    for consumer in (DRAIN, LAKE):
        if cursors.load(config.source, consumer) is None:
            cursors.swap(None, Cursor(config.source, consumer, 0, 1, IDENTITY, at(windows[-1].stop.offset)))
    return sum(load_manifest(store, one.key).rows for one in windows)


def measured(config: SourceConfig, rows: int, name: str) -> list[Figure]:
    """Read, and return the figures; each read is compared with PyIceberg's own scan."""
    chosen = random.Random(1)
    keys = [2 * chosen.randrange(rows) for _ in range(2 * GETS)]
    start = 2 * (rows // 3)
    peer = open_table(config, TABLE)
    store = LocalStore(Path(config.store.url.removeprefix("file://")))
    changes = acknowledged(config, store)
    with ReadLake.open(config, store=store) as lake:
        opened = _times(lambda _: lake.table(TABLE), range(REPEATS))
        table = lake.table(TABLE)
        first = _times(table.get, keys[:1])
        _times(table.get, keys[:GETS])
        warm = _times(table.get, keys[GETS:])
        few = _times(lambda key: table.get(key, FEW), keys[GETS:])
        miss = _times(table.get, [key + 1 for key in keys[GETS:]])
        asked = [[2 * chosen.randrange(rows) for _ in range(MANY)] for _ in range(REPEATS)]
        many = _times(table.multi_get, asked)
        many_few = _times(lambda of: table.multi_get(of, FEW), asked)
        ranges = _times(lambda _: table.scan(start, limit=RANGE).read_all(), range(REPEATS))
        first_versions = _times(table.archived_versions, keys[:1])
        versions = _times(table.archived_versions, keys[GETS : GETS + VERSIONS])
    floor = _times(_row_group(peer), range(REPEATS))
    peer_get = _times(lambda key: peer.scan(EqualTo("id", key)).to_arrow(), keys[:PEER_GETS])
    peer_many = _times(lambda of: peer.scan(In("id", of)).to_arrow(), asked[:1])
    between = And(GreaterThanOrEqual("id", start), LessThan("id", start + 2 * RANGE))
    peer_range = _times(lambda _: peer.scan(between).to_arrow(), range(1))
    return [
        _figure(f"{name}: opening it, its manifests read once", opened),
        _figure(f"{name}: the first get", first),
        _figure(f"{name}: a get, p50", warm, 5, peer_get),
        _figure(f"{name}: a get, p99", warm, 30, part=0.99),
        _figure(f"{name}: a get of two columns, p50", few),
        _figure(f"{name}: a get of two columns, p99", few, part=0.99),
        _figure(f"{name}: a get of a key without a row, p50", miss, 3),
        _figure(f"{name}: a get of a key without a row, p99", miss, part=0.99),
        _figure(f"{name}: {MANY:,} random keys at once", many, 500, peer_many),
        _figure(f"{name}: {MANY:,} random keys at once, two columns", many_few, 500),
        _figure(f"{name}: {RANGE:,} rows in key order", ranges, 100, peer_range),
        _figure(f"{name}: the first versions of a row, of {changes:,} changes in batches", first_versions),
        _figure(f"{name}: the versions of a row, of {changes:,} changes in batches, p50", versions, 200),
        _figure(f"{name}: floor: Arrow reads one row group, all columns", floor),
    ]


def _row_group(table: Table) -> Callable[[Any], Any]:
    """Return a function that reads one row group of the largest data file."""
    task = max(table.scan().plan_files(), key=lambda one: one.file.file_size_in_bytes)
    file = pq.ParquetFile(task.file.file_path.removeprefix("file:"))
    return lambda _: file.read_row_group(file.num_row_groups // 2, use_threads=False)


def _times(read: Callable[[Any], Any], arguments: Iterable[Any]) -> list[float]:
    """Return the milliseconds of each call."""
    times = []
    for argument in arguments:
        began = time.perf_counter()
        read(argument)
        times.append((time.perf_counter() - began) * 1_000)
    return times


def _figure(
    name: str, times: list[float], goal: float | None = None, peer: list[float] | None = None, part: float = 0.5
) -> Figure:
    value = _quantile(times, part)
    ratio = None if peer is None else round(value / _quantile(peer, 0.5), 4)
    met = None if goal is None else value <= goal
    other = None if peer is None else "PyIceberg's scan"
    return Figure(name, round(value, 2), "ms", other, ratio, goal, met, spread(times, 2))


def _quantile(times: list[float], part: float) -> float:
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))]


if __name__ == "__main__":
    sys.exit(main())
