"""Merges of many sources that share one Spark server: the time of a whole round, and the server's memory."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

from tests.bench.lake.memory import memory_of, peak_of
from tests.bench.lake.rounds import CHANGES, Rounds
from tests.bench.report import Figure, spread
from tests.harness.servers import SqlServer
from tests.harness.spark.server import RunningSparkServer

SOURCES, TABLES, ROUNDS = 50, 20, 3


def merges_of_sources(
    folder: Path, server: SqlServer, sources: int = SOURCES, tables: int = TABLES, rounds: int = ROUNDS
) -> Iterator[Figure]:
    """Merge changes of all tables of all sources; all jobs are sent at once, and the server runs as many as it has slots.

    Args:
        folder: for everything but the sources.
        server: has all databases.
        sources: number of sources.
        tables: of each source.
        rounds: that are measured, after the one that makes the tables; a line is printed for each.
    """
    os.environ["CDC_PASSWORD"] = server.cdc_password
    with RunningSparkServer(folder, "--driver-memory", "3g") as spark:
        all_of_them = [Rounds(server, folder, spark, tables, f"source{number}") for number in range(sources)]
        name = f"{sources} sources with {tables} tables of {CHANGES} changes each, on one Spark server"
        first = _round(all_of_them)
        _say("the round that makes the tables", spark, first)
        yield Figure(f"{name}: first round, which makes the tables", round(first[0], 1), "s")
        measured = []
        for number in range(rounds):
            measured.append(_round(all_of_them))
            _say(f"round {number + 1} of {rounds}", spark, measured[-1])
        walls = [wall for wall, _ in measured]
        yield Figure(f"{name}: a round", round(median(walls), 1), "s", spread=spread(walls, 1))
        seconds = [job for _, jobs in measured for job in jobs]
        yield Figure(f"{name}: a source's merge", round(median(seconds), 1), "s", spread=spread(seconds, 1))
        yield Figure(f"{name}: peak memory of Java", peak_of(spark), "MiB")
        yield from memory_of(spark, f"{name}: ", f"after {rounds + 1} rounds")


def _say(what: str, spark: RunningSparkServer, took: tuple[float, list[float]]) -> None:
    """Print how a round went: the next may take many minutes."""
    wall, jobs = took
    print(
        f"{what}: {wall:.1f} s, merges {min(jobs):.1f} to {max(jobs):.1f} s, peak memory of Java {peak_of(spark):,} MiB",
        flush=True,
    )


def _round(sources: list[Rounds]) -> tuple[float, list[float]]:
    """Return the seconds from the first request until the last merge is published, and those of each job."""
    for source in sources:
        source.drain()
    began = time.monotonic()
    with ThreadPoolExecutor(len(sources)) as pool:
        jobs = list(pool.map(Rounds.merge_on_server, sources))
    return time.monotonic() - began, [job.seconds for job in jobs]
