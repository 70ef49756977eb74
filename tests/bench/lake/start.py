"""What shortens a merge that starts Spark: the same merges with each of it switched off in turn."""

from __future__ import annotations

import runpy
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from statistics import median

from cdc_lib.store import documents
from cdc_lib.store.objects.local import LocalStore
from spark_jobs.runtime import session
from tests.bench.report import Figure, spread
from tests.bench.usage import Usage, measure
from tests.harness.lake.batches import BIGINT, TEXT, BatchWriter, Row, table
from tests.harness.lake.running import lake_config

CHANGES = 50
"""Changes of each table in each merge."""

GOAL = 1.15
"""Least CPU seconds without one of them, as a multiple of those with all: what pays less is not kept."""


def _no_archive() -> None:
    session.archive_options = lambda _: []  # type: ignore[assignment]


WITHOUT: Mapping[str, Callable[[], None]] = {
    "the archive of classes": _no_archive,
}


def starts(tables: int, runs: int) -> Iterator[Figure]:
    """Merge changes of small tables, each time in a new Java process.

    Args:
        tables: number of tables.
        runs: merges of each way.
    """
    ways = ("nothing", *WITHOUT)
    with tempfile.TemporaryDirectory(prefix="lakecdc-bench-") as folder:
        merges = _Merges(Path(folder), tables)
        merges.run("nothing")  # makes the tables
        used: dict[str, list[Usage]] = {way: [] for way in ways}
        for _ in range(runs):
            for way in ways:
                used[way].append(merges.run(way))
    name = f"{tables} tables with {CHANGES} changes each"
    with_all = median(one.cpu for one in used["nothing"])
    for way in ways:
        cpu, wall = [one.cpu for one in used[way]], [one.wall for one in used[way]]
        ratio = round(median(cpu) / with_all, 3)
        compared = {} if way == "nothing" else {"compared_to": "with all", "ratio": ratio}
        goal = {} if way == "nothing" else {"goal": GOAL, "met": ratio >= GOAL}
        what = "" if way == "nothing" else f" without {way}"
        yield Figure(f"{name}{what}: CPU", round(median(cpu), 3), "s", spread=spread(cpu), **compared, **goal)  # type: ignore[arg-type]
        yield Figure(f"{name}{what}: wall", round(median(wall), 3), "s", spread=spread(wall))


class _Merges:
    """Merges of one lake, one after another."""

    def __init__(self, folder: Path, tables: int) -> None:
        self._folder = folder
        self._schemas = [table(f"bench.t{number}", {"id": BIGINT, "name": TEXT}) for number in range(tables)]
        self._batches = BatchWriter(LocalStore(folder / "store"))
        self._start = 1000
        (folder / "config.json").write_text(lake_config(folder, source="shop").model_dump_json())

    def run(self, way: str) -> Usage:
        """Merge the next changes without one thing; return what it took."""
        start, self._start = self._start, self._start + 1000
        # Half of the keys are new.
        keys = range(start // 1000 * CHANGES // 2, start // 1000 * CHANGES // 2 + CHANGES)
        rows = [Row("u", start + number, {"id": key, "name": f"n{start}"}) for number, key in enumerate(keys)]
        plan = self._batches.positioned(
            start + 1000, self._batches.window(start, start + 1000, dict.fromkeys(self._schemas, rows))
        )
        (self._folder / "plan.json").write_bytes(documents.dump(plan))
        files = [str(self._folder / name) for name in ("config.json", "plan.json")]
        used, output = measure([sys.executable, "-m", "tests.bench.lake.start", way, *files])
        if f" {len(self._schemas)}" not in output.partition("CUT")[2]:
            raise AssertionError(output)
        return used


def main() -> None:
    """Run one merge: the arguments are what it is without, and those of :mod:`tests.harness.lake.merge_job`."""
    WITHOUT.get(sys.argv.pop(1), lambda: None)()
    runpy.run_module("tests.harness.lake.merge_job", run_name="__main__")


if __name__ == "__main__":
    main()
