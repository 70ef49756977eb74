"""One merge on clusters of one, two and four executors: its time, its tasks, and what goes over the network between them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

from tests.bench.lake.merges import once
from tests.bench.report import Figure
from tests.harness.spark.cluster import SparkCluster

ROWS = 2_000_000
WORKERS = (1, 2, 4)
"""Executors, with one core each."""


def merges_by_executors(folder: Path, rows: int, changes: int) -> Iterator[Figure]:
    """Make a table, and merge the same changes into the same snapshot of it on a cluster of each size.

    Args:
        folder: for the lake and the clusters.
        rows: of the table.
        changes: spread over all of its keys.

    Raises:
        CommandFailed: an application failed.
    """
    lake = folder / "lake"
    once("make", lake, rows)
    alone: float | None = None
    cores = os.cpu_count()
    for workers in WORKERS:
        events = folder / f"events-{workers}"
        events.mkdir()
        with SparkCluster(folder / f"cluster-{workers}", workers) as cluster:
            more = (f"--changes={changes}", f"--master={cluster.url}", f"--events={events}")
            result = json.loads(once("ours", lake, rows, *more))
        tasks, shuffled = _tasks(events)
        wall = result["wall"]
        name = (
            f"{changes:,} changes into {rows:,} rows, {workers} executor{'s' if workers > 1 else ''} on {cores} cores"
        )
        ratio = None if alone is None else round(wall / alone, 2)
        yield Figure(f"{name}: wall", wall, "s", None if alone is None else "one executor", ratio)
        yield Figure(f"{name}: tasks", tasks, "tasks")
        yield Figure(f"{name}: shuffled", round(shuffled / 1e6, 1), "MB")
        alone = alone or wall


def _tasks(events: Path) -> tuple[int, int]:
    """Return the number of tasks in an event log, and the bytes that they wrote for other tasks."""
    tasks = shuffled = 0
    for file in events.glob("[!.]*"):
        for line in file.read_text().splitlines():
            if line.startswith('{"Event":"SparkListenerTaskEnd"'):
                tasks += 1
                shuffled += json.loads(line)["Task Metrics"]["Shuffle Write Metrics"]["Shuffle Bytes Written"]
    return tasks, shuffled
