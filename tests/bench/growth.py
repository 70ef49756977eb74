"""Cost of the N-th small merge of a lake table, compared with the first: ``./dev bench growth --runs 600``.

One table with a key, merged in many runs of one Spark, so that no start of Java is measured. Half of the changes
are updates, the others inserts. The clock of the merges is ``--every`` seconds later at each run, so that snapshots and cuts become old:
most of them are removed, and one stays for each hour of a day and for each day.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

from pyspark.sql import SparkSession

from cdc_lib.store.objects.local import LocalStore
from spark_jobs.runtime.session import spark_session
from tests.bench.page import SAVED
from tests.bench.report import about_the_run
from tests.harness.lake.batches import BIGINT, TEXT, Row, table
from tests.harness.lake.past import PastClock
from tests.harness.lake.running import Lake, lake_config

CHANGES = 50
EVERY = 60
"""Seconds between two runs, by the clock of the merges."""
WINDOW = 1000
WIDTH = 60
"""Characters of a bar."""


@dataclass(frozen=True, slots=True)
class Run:
    """The cost of one run, and the size of the table after it.

    Args:
        number: of the run.
        seconds: on the clock.
        java: CPU seconds of Java.
        empty: seconds on the clock of the empty window after it.
        metadata: bytes of the newest metadata file.
        snapshots: in it.
        data_files: in the newest snapshot.
        files: below the table's folder.
        cuts: in the store.
    """

    number: int
    seconds: float
    java: float
    empty: float
    metadata: int
    snapshots: int
    data_files: int
    files: int
    cuts: int


def main(arguments: Sequence[str] | None = None) -> int:
    """Merge, and print a line for every tenth of the runs and a plot of each figure."""
    parser = argparse.ArgumentParser(prog="bench growth", description=__doc__)
    parser.add_argument("--runs", type=int, default=200, help="merges, each with an empty window after it")
    parser.add_argument(
        "--every", type=int, default=EVERY, help="seconds between two runs, by the clock of the merges (60)"
    )
    parser.add_argument("--output", type=Path, default=SAVED / "growth.json", help="the file")
    options = parser.parse_args(arguments)
    load = round(os.getloadavg()[0], 2)
    with tempfile.TemporaryDirectory(prefix="lakecdc-growth-") as folder:
        config = lake_config(Path(folder))
        with spark_session(config) as spark:
            lake = Lake(spark, config, LocalStore(Path(folder) / "store"))
            runs = grown(lake, Path(folder), options.runs, timedelta(seconds=options.every))
    document = {
        **about_the_run("none"),
        "load_before": load,
        "runs": "1 of each merge; means over tenths",
        "warm_up": "none; the first tenth holds what Spark's first merges cost more",
        "changes": CHANGES,
        "every": options.every,
        "lines": lines(runs),
    }
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(document))
    print("\n".join(lines(runs)))
    return 0


def grown(lake: Lake, folder: Path, count: int, every: timedelta) -> list[Run]:
    """Run ``count`` merges, and return their costs.

    Args:
        lake: an empty lake.
        folder: its folder.
        count: how many merges.
        every: time between two of them. The first is so long ago that the last one is now.
    """
    clock = PastClock(lake, datetime.now(UTC) - (count + 1) * every)
    schema = table("growth.orders", {"id": BIGINT, "state": TEXT})
    random, runs, java = Random(1), [], java_pid(lake.spark)
    home = folder / "warehouse" / "growth" / "orders"
    for number in range(count):
        start = 4 + 2 * number * WINDOW
        rows = [_change(random, number, i, start) for i in range(CHANGES)]
        plan = lake.batches.positioned(start + WINDOW, lake.batches.window(start, start + WINDOW, {schema: rows}))
        empty = lake.batches.positioned(start + 2 * WINDOW, lake.batches.window(start + WINDOW, start + 2 * WINDOW, {}))
        clock.forward(every)
        cpu, began = cpu_seconds(java), time.monotonic()
        lake.merge(plan)
        merged, cpu = time.monotonic(), cpu_seconds(java) - cpu
        lake.merge(empty)
        ended = time.monotonic()
        clock.backdate(schema.name)
        runs.append(_left(lake, home, schema.name, number, merged - began, cpu, ended - merged))
        if (number + 1) % max(1, count // 10) == 0:
            print(runs[-1], flush=True)
    return runs


def _change(random: Random, number: int, i: int, start: int) -> Row:
    if number and i % 2:
        return Row(
            "u",
            start + i,
            {"id": 2 * CHANGES * random.randrange(number) + 2 * random.randrange(CHANGES // 2), "state": f"u{number}"},
            i,
        )
    return Row("c", start + i, {"id": 2 * CHANGES * number + i, "state": "new"}, i)


def _left(lake: Lake, home: Path, name: str, number: int, seconds: float, cpu: float, empty: float) -> Run:
    java = lake.target(name)._java()
    metadata = java.operations().current()
    summary = java.currentSnapshot().summary()
    return Run(
        number=number + 1,
        seconds=round(seconds, 3),
        java=round(cpu, 3),
        empty=round(empty, 4),
        metadata=Path(str(metadata.metadataFileLocation()).removeprefix("file:")).stat().st_size,
        snapshots=metadata.snapshots().size(),
        data_files=int(summary.get("total-data-files")),
        files=sum(1 for path in home.rglob("*") if path.is_file()),
        cuts=sum(1 for _ in lake.store.list("shop/cuts/")),
    )


def java_pid(spark: SparkSession) -> int:
    """Return the id of Spark's Java process."""
    return int(spark._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]


def cpu_seconds(pid: int) -> float:
    """Return the CPU seconds that a process has used."""
    parts = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")


def lines(runs: Sequence[Run]) -> list[str]:
    """Return a table of means over tenths of the runs, and a plot in text of each figure."""
    step = max(1, len(runs) // 10)
    parts = [runs[at : at + step] for at in range(0, len(runs) - len(runs) % step, step)]
    names = [field.name for field in fields(Run)][1:]
    means = [{name: sum(getattr(run, name) for run in part) / len(part) for name in names} for part in parts]
    text = ["| runs | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for part, mean in zip(parts, means, strict=True):
        values = " | ".join(f"{mean[name]:,.3f}" if mean[name] < 10 else f"{mean[name]:,.0f}" for name in names)
        text.append(f"| {part[0].number} to {part[-1].number} | {values} |")
    for name in names:
        most = max(mean[name] for mean in means) or 1
        text += ["", name]
        text += [
            f"{part[-1].number:6d} {'#' * max(1, round(WIDTH * mean[name] / most))}"
            for part, mean in zip(parts, means, strict=True)
        ]
    return text


if __name__ == "__main__":
    sys.exit(main())
