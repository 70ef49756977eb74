"""Reads by key from a large lake table, beside other readers of it and the source itself: ``./dev bench read``.

After many merges, with as many windows that no merge has yet, and after maintenance. All readers read the same keys and ranges in one
run. The source's table has the same keys and columns. A read is wrong if it has other rows than the client of this project.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path

from cdc_lib.config import SourceConfig
from cdc_lib.config.maintenance import MaintenanceConfig
from cdc_lib.lake.catalog import open_table
from cdc_lib.model.cursor import DRAIN, LAKE, Cursor
from cdc_lib.ports import ObjectStore
from cdc_lib.read import Lake as ReadLake
from cdc_lib.read import TableReader
from cdc_lib.store.cursors import ObjectCursorStore
from cdc_lib.store.manifests import load_manifest
from cdc_lib.store.objects.local import LocalStore
from cdc_lib.store.windows import stored_windows
from spark_jobs.maintain import lake_tables, maintain
from spark_jobs.runtime.session import spark_session
from tests.bench.lake.orders import TABLE, Keys, make_table, write_changes
from tests.bench.reading.commands import commands
from tests.bench.reading.measures import (
    GETS,
    MANY,
    PEER_READS,
    REPEATS,
    VERSIONS,
    Results,
    State,
    figure,
    measure_peers,
    times,
)
from tests.bench.reading.readers import LakeReader, PyIceberg, Source, SparkSql, duckdb_on
from tests.bench.reading.requests import costs
from tests.bench.report import Figure, NotMeasured, save, spread
from tests.bench.usage import ROOT
from tests.harness.lake.batches import IDENTITY, at
from tests.harness.lake.duckdb_queries import ExtensionMissing
from tests.harness.lake.running import Lake, lake_config
from tests.harness.servers import MySqlServer

FILES, S3_GETS = 1_000, 100
_SMALL = 1_000_000
"""Most rows of the table whose versions are read from many windows."""


def main() -> int:
    """Make the tables, read, print and save."""
    parser = argparse.ArgumentParser(prog="./dev bench read", description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000, help="of the table (5000000)")
    parser.add_argument(
        "--merges", type=int, default=50, help="without maintenance, and as many windows wait then (50)"
    )
    parser.add_argument("--changes", type=int, default=10_000, help="of each window (10000)")
    parser.add_argument(
        "--windows", type=int, default=1_000, help="of which versions of rows are read; 0 for none (1000)"
    )
    parser.add_argument("--window-changes", type=int, default=1_000, help="of each of these windows (1000)")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "bench" / "read.json", help="the file")
    options = parser.parse_args()
    load = round(os.getloadavg()[0], 2)
    results = Results()
    with tempfile.TemporaryDirectory(prefix="lakecdc-bench-") as temporary:
        for _ in states(Path(temporary), options, results):
            # What is measured so far is kept: the whole takes long.
            saved(results, load, options.output)
    for one in results.figures:
        ratio = f", {one.ratio} x {one.compared_to}" if one.compared_to else ""
        goal = "" if one.goal is None else f", goal {one.goal:g}: {'met' if one.met else 'not met'}"
        print(f"{one.name}: {one.value:,} {one.unit}{ratio}{goal}")
    for missing in results.missing:
        print(f"not measured: {missing.workload}, {missing.reader}: {missing.why}")
    return 0


def saved(results: Results, load: float, output: Path) -> None:
    """Write the file of results."""
    reads = "; ".join(f"{gets} and {others} of {name}" for name, (gets, others) in PEER_READS.items())
    about = {
        "load_before": load,
        "runs": f"{GETS} gets, and {REPEATS} of each other read by cdc_lib.read; gets and other reads of others: {reads}; 10 and 3 of DuckDB; "
        "the median counts",
        "warm_up": f"{GETS} gets of other keys and one of {MANY:,} keys, so that the keys are in memory; none for what is called the first; "
        "one get of other readers",
        "not_measured": [asdict(one) for one in results.missing],
    }
    save(results.figures, "none", about, output)


def states(folder: Path, options: argparse.Namespace, results: Results) -> Iterator[None]:
    """Measure one state after the other."""
    yield from large(folder / "large", options.rows, options.merges, options.changes, results)
    results.figures += many_files(folder / "files")
    yield
    if options.windows:
        small = lake_config(folder / "windows", merge={"driver_memory": "2g"})
        rows = min(options.rows, _SMALL)
        make_windows(small, folder / "windows", rows, options.windows, options.window_changes)
        results.figures += versions(small, rows, options.windows)
        yield


def large(folder: Path, rows: int, merges: int, changes: int, results: Results) -> Iterator[None]:
    """Make the table, and read it in its three states."""
    config = lake_config(folder, merge={"driver_memory": "2g"})
    store = LocalStore(folder / "store")
    keys = [2 * number for number in random.Random(1).sample(range(rows), 2 * GETS)]
    with spark_session(config) as spark:
        lake = Lake(spark, config, store)

        def measure(name: str, source: MySqlServer | None) -> Iterator[None]:
            with ReadLake.open(config, store=store) as reading, ExitStack() as stack:
                state = State(name, lambda: reading.table(TABLE), rows, keys)
                results.figures += state.figures()
                yield
                table = stack.enter_context(open_table(config, TABLE))
                peers: list[LakeReader] = [PyIceberg(table), SparkSql(spark, lake.name(TABLE))]
                if source is not None:
                    peers.append(Source(source, rows))
                try:
                    peers.append(stack.enter_context(duckdb_on(table.metadata_location)))
                except ExtensionMissing as error:
                    results.missing.append(NotMeasured(name, "DuckDB's Iceberg extension", str(error)))
                for peer in peers:
                    measure_peers(peer, state, results)
                    yield

        make_table(spark, lake, rows)
        for number in range(merges):
            manifest, stop = write_changes(lake.batches, rows, changes, _keys_of(number), number)
            lake.merge(lake.batches.plan(stop, manifest))
        stored = acknowledged(config, store, DRAIN, LAKE)
        name = f"{rows:,} rows after {merges} merges of {changes:,} changes"
        with MySqlServer() as server:
            yield from measure(name, server)
        results.figures += table_versions(config, store, keys, name, stored)
        for number in range(merges, 2 * merges):
            write_changes(lake.batches, rows, changes, _keys_of(number), number)
        acknowledged(config, store, DRAIN)
        with ReadLake.open(config, store=store) as reading:
            state = State(
                f"{name}, {merges} such windows wait", lambda: reading.table(TABLE, fresh=True), rows, keys, goals=False
            )
            results.figures += state.figures()
        yield
        upkeep = MaintenanceConfig(keep_snapshots_for=timedelta(0))
        tidy = config.model_copy(update={"maintenance": upkeep})
        maintain(spark, tidy, store, lake_tables(tidy, lake.cuts[-1], [TABLE]), lambda _: None)
        yield from measure(f"{rows:,} rows after maintenance", None)
    results.figures += commands(folder / "sources", config, TABLE, keys[0], f"{rows:,} rows after maintenance")
    with ReadLake.open(config, store=store) as reading:
        results.figures += s3_figures(reading.table(TABLE), rows)
    yield


def _keys_of(number: int) -> Keys:
    return "uniform" if number % 2 else "recent"


def s3_figures(table: TableReader, rows: int) -> list[Figure]:
    """Count what gets cost whose keys are in memory."""
    found = costs(table.pinned, rows, S3_GETS)
    name = f"{rows:,} rows after maintenance, on S3: a get whose keys are in memory"
    requests = [one.requests for one in found]
    return [
        figure(f"{name}, p50", [one.ms for one in found]),
        Figure(
            f"{name}, most requests", max(requests), "requests", None, None, 3, max(requests) <= 3, spread(requests)
        ),
        figure(f"{name}, bytes read", [one.kib for one in found], unit="KiB"),
    ]


def many_files(folder: Path) -> list[Figure]:
    """Open a table of many files."""
    config = lake_config(folder)
    with spark_session(config) as spark:
        make_table(spark, Lake(spark, config, LocalStore(folder / "store")), 100 * FILES, FILES)
    with ReadLake.open(config) as reading:
        took = times(lambda _: reading.table(TABLE), range(REPEATS))
    return [
        figure(f"{FILES:,} data files: opening the table for the first time", took[:1]),
        figure(f"{FILES:,} data files: opening the table, its manifests read once", took[1:]),
    ]


def make_windows(config: SourceConfig, folder: Path, rows: int, windows: int, changes: int) -> None:
    """Make a small table, and merge many windows of changes at once."""
    with spark_session(config) as spark:
        lake = Lake(spark, config, LocalStore(folder / "store"))
        make_table(spark, lake, rows)
        made = [write_changes(lake.batches, rows, changes, "uniform", number) for number in range(windows)]
        lake.merge(lake.batches.plan(made[-1][1], *(manifest for manifest, _ in made)))


def versions(config: SourceConfig, rows: int, windows: int) -> list[Figure]:
    """Read the versions of rows from the batches of many windows."""
    store = LocalStore(Path(config.store.url.removeprefix("file://")))
    keys = [2 * number for number in random.Random(2).sample(range(rows), VERSIONS)]
    return table_versions(config, store, keys, f"{windows:,} windows", acknowledged(config, store, DRAIN, LAKE))


def table_versions(
    config: SourceConfig, store: ObjectStore, keys: Sequence[int], name: str, changes: int
) -> list[Figure]:
    """Read the versions of rows from batches; without keys in memory, and with them."""
    with ReadLake.open(config, store=store) as lake:
        table = lake.table(TABLE)
        first = times(table.archived_versions, keys[:1])
        warm = times(table.archived_versions, keys[:VERSIONS])
    name = f"{name}, {changes:,} changes in batches"
    return [
        figure(f"{name}: the first versions of a row", first),
        figure(f"{name}: the versions of a row, p50", warm, 200),
        figure(f"{name}: the versions of a row, p99", warm, part=0.99),
    ]


def acknowledged(config: SourceConfig, store: ObjectStore, *consumers: str) -> int:
    """Move cursors to the end of the last window; return the number of changes in windows."""
    windows, cursors = stored_windows(store, config.source), ObjectCursorStore(store)
    for consumer in consumers:
        before, stop = cursors.load(config.source, consumer), at(windows[-1].stop.offset)
        generation = 0 if before is None else before.generation + 1
        cursors.swap(before, Cursor(config.source, consumer, generation, 1, IDENTITY, stop))
    return sum(load_manifest(store, one.key).rows for one in windows)


if __name__ == "__main__":
    sys.exit(main())
