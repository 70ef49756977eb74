"""Merges into large tables, compared with Iceberg's own SQL statements from the same snapshot."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from tests.bench.capacity import MORE
from tests.bench.lake.once import LOADS, PAIR, WAYS
from tests.bench.report import Figure, spread
from tests.bench.usage import ROOT, CommandFailed

CHANGES = 100_000
FASTER = 2.0
"""Least speed as a multiple of MERGE INTO's."""
WARM = {"uniform": {"wall": 0.2, "cpu": 0.12}, "recent": {"wall": 0.15, "cpu": 0.08}}
"""Most wall time and CPU of a merge as a part of MERGE INTO's, both in one Java process whose code is warm."""
LOAD = 0.6
"""Most CPU of a first load as a part of an INSERT's."""
GROWTH = 1.5
"""Most time for the larger table, as a multiple of that for the smaller one, with mostly recent rows changed."""


def merges(folder: Path, sizes: list[int], changes: int = CHANGES) -> Iterator[Figure]:
    """Make a table of each size and merge changes in each way, each in its own Spark application.

    Args:
        folder: for the lakes.
        sizes: rows of each table, the smallest first.
        changes: number of changes.

    Raises:
        CommandFailed: an application failed, or two ways left different rows.
    """
    took: dict[tuple[int, str], float] = {}
    for rows in sizes:
        lake = folder / str(rows)
        once("make", lake, rows)
        for keys in ("uniform", "recent"):
            results = {way: json.loads(once(way, lake, rows, f"--keys={keys}", f"--changes={changes}")) for way in WAYS}
            if len({result["check"] for result in results.values()}) != 1:
                raise CommandFailed(f"the ways left different rows: {results}")
            peer = results["merge-into"]["wall"]
            took[rows, keys] = results["ours"]["wall"]
            for way, result in results.items():
                name = f"{rows:,} rows, {keys} keys, {way}"
                ratio = round(peer / result["wall"], 2)
                ours = way == "ours"
                yield Figure(
                    f"{name}: wall", result["wall"], "s", "merge-into", ratio, FASTER if ours else None, ratio >= FASTER if ours else None
                )  # fmt: skip
                yield Figure(f"{name}: CPU", result["cpu"], "s")
                yield Figure(f"{name}: read", result["read_mb"], "MB")
                yield Figure(f"{name}: peak memory of Java", result["peak_mib"], "MiB")
            yield from _warm(lake, rows, keys, changes)
    small, large = sizes[0], sizes[-1]
    # The recent keys are fewer than so many changes.
    result = json.loads(once("ours", folder / str(small), small, f"--changes={MORE * changes}"))
    name = f"{small:,} rows, uniform keys, ours with {MORE * changes:,} changes"
    yield Figure(f"{name}: wall", result["wall"], "s")
    yield Figure(f"{name}: CPU", result["cpu"], "s")
    for keys in ("uniform", "recent"):
        grown = round(took[large, keys] / took[small, keys], 2)
        goal = GROWTH if keys == "recent" else large / small
        yield Figure(
            f"{keys} keys: time for {large:,} rows as a multiple of {small:,}", grown, "x", goal=goal, met=grown <= goal
        )


def first_loads(folder: Path, rows: int) -> Iterator[Figure]:
    """Bring so many rows into an empty table, by a merge and by an INSERT of the same files.

    Raises:
        CommandFailed: an application failed.
    """
    taken = {way: json.loads(once(way, folder / way, rows)) for way in LOADS}
    for what, label in (("wall", "wall"), ("cpu", "CPU")):
        peer = taken["insert"][what]
        for way, cost in taken.items():
            ratio, ours = round(cost[what] / peer, 2), way == "load"
            goal, met = (LOAD, ratio <= LOAD) if ours and what == "cpu" else (None, None)
            yield Figure(f"{rows:,} first rows, {way}: {label}", cost[what], "s", "insert", ratio, goal, met)
    for way, cost in taken.items():
        yield Figure(f"{rows:,} first rows, {way}: peak memory of Java", cost["peak_mib"], "MiB")


def _warm(lake: Path, rows: int, keys: str, changes: int) -> Iterator[Figure]:
    """Merge the same changes in turn by the merge job and by MERGE INTO, in one Java process that did both before."""
    output = _output("pairs", lake, rows, f"--keys={keys}", f"--changes={changes}", "--memory=3g")
    costs = [json.loads(line) for line in output.splitlines() if line.startswith('{"way"')]
    if len({cost["check"] for cost in costs}) != 1:
        raise CommandFailed(f"the ways left different rows: {costs}")
    for what, label in (("wall", "wall"), ("cpu", "CPU")):
        peers, goal = [cost[what] for cost in costs if cost["way"] == "merge-into"], WARM[keys][what]
        for way in PAIR:
            taken = [cost[what] for cost in costs if cost["way"] == way]
            ratio, ours = round(median(taken) / median(peers), 2), way == "ours"
            yield Figure(
                f"{rows:,} rows, {keys} keys, warm, {way}: {label}", round(median(taken), 3), "s", "merge-into", ratio,
                goal if ours else None, ratio <= goal if ours else None, spread(taken),
            )  # fmt: skip


def once(way: str, folder: Path, rows: int, *more: str) -> str:
    """Run one way of :mod:`tests.bench.lake.once` in a process of its own, and return the last line of its output.

    Raises:
        CommandFailed: it failed.
    """
    return _output(way, folder, rows, *more).rpartition("\n")[2]


def _output(way: str, folder: Path, rows: int, *more: str) -> str:
    command = [sys.executable, "-m", "tests.bench.lake.once", way, str(folder), f"--rows={rows}", *more]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        raise CommandFailed(f"{' '.join(command)}: {done.stderr[-3000:]}")
    return done.stdout.rstrip()
