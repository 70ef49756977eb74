"""Merges into large tables beside what the format's own statements take, in one run from the same snapshot."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.bench.lake.once import WAYS
from tests.bench.report import Figure
from tests.bench.usage import ROOT, CommandFailed

CHANGES = 100_000
FASTER = 2.0
"""Speed as a multiple of plain MERGE INTO's."""
GROWTH = 1.5
"""Time for the larger table as a multiple of that for the smaller one, where most changes are to recent rows."""


def merges(folder: Path, sizes: list[int], changes: int = CHANGES) -> Iterator[Figure]:
    """Make a table of each size and bring changes in, each way in an application of its own.

    Args:
        folder: where the lakes lie.
        sizes: rows of each table, the smallest first.
        changes: how many.

    Raises:
        CommandFailed: an application ended badly, or two ways left different rows.
    """
    took: dict[tuple[int, str], float] = {}
    for rows in sizes:
        lake = folder / str(rows)
        _once("make", lake, rows)
        for keys in ("uniform", "recent"):
            found = {way: json.loads(_once(way, lake, rows, f"--keys={keys}", f"--changes={changes}")) for way in WAYS}
            if len({one["check"] for one in found.values()}) != 1:
                raise CommandFailed(f"the ways left different rows: {found}")
            peer = found["merge-into"]["wall"]
            took[rows, keys] = found["ours"]["wall"]
            for way, one in found.items():
                name = f"{rows:,} rows, {keys} keys, {way}"
                ratio = round(peer / one["wall"], 2)
                ours = way == "ours"
                yield Figure(
                    f"{name}: wall", one["wall"], "s", "merge-into", ratio, FASTER if ours else None, ratio >= FASTER if ours else None
                )  # fmt: skip
                yield Figure(f"{name}: CPU", one["cpu"], "s")
                yield Figure(f"{name}: read", one["read_mb"], "MB")
                yield Figure(f"{name}: peak memory of Java", one["peak_mib"], "MiB")
    small, large = sizes[0], sizes[-1]
    for keys in ("uniform", "recent"):
        grown = round(took[large, keys] / took[small, keys], 2)
        goal = GROWTH if keys == "recent" else large / small
        yield Figure(
            f"{keys} keys: time for {large:,} rows as a multiple of {small:,}", grown, "x", goal=goal, met=grown <= goal
        )


def _once(way: str, folder: Path, rows: int, *more: str) -> str:
    """Return the last line that it printed."""
    command = [sys.executable, "-m", "tests.bench.lake.once", way, str(folder), f"--rows={rows}", *more]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        raise CommandFailed(f"{' '.join(command)}: {done.stderr[-3000:]}")
    return done.stdout.rstrip().rpartition("\n")[2]
