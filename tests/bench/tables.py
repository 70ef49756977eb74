"""Cost of each step with many tables: ``./dev bench tables``.

In CPU seconds of this process. The cursors are in a real store, in a folder; no server runs, and chunks are manifests without rows.
Plan: every table is new, and then every table is known. Unit: what each drain task does before it reads. Ack: after one run of
Airflow's (1,024 units), and when all chunks are ready at once.

With ``--server`` the tables are real ones of a server, and each step is the command: see :mod:`tests.bench.real_tables`.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from cdc_lib.config import Credentials, SourceConfig
from cdc_lib.model.cursor import DRAIN, LAKE, Cursor, Move
from cdc_lib.model.manifest import Manifest, SnapshotChunk
from cdc_lib.model.position import Position
from cdc_lib.model.server_identity import ServerIdentity
from cdc_lib.model.table_name import TableName
from cdc_lib.model.window import SnapshotTask, Window
from cdc_lib.mysql.server_facts import ServerFacts
from cdc_lib.pipeline import Pipeline
from cdc_lib.quarantine.resnapshot import ResnapshotRequest
from cdc_lib.quarantine.tables import Quarantine
from cdc_lib.steps.ack import over_durable
from cdc_lib.steps.drain import _is_collected
from cdc_lib.steps.plan import Planning
from cdc_lib.store import documents, layout
from tests.bench.processes import ROOT
from tests.bench.real_tables import REAL_SIZES, real_tables
from tests.bench.report import Figure, save

SIZES = (1_000, 5_000, 20_000)
GOAL = 2.0
"""Most CPU seconds of a step of one Airflow run with the largest number of tables."""
HELD = ("plan, all tables new", "plan, all tables known", "unit", "ack of 1,024 units")
"""The steps of one Airflow run."""
ONE_RUN = 1_024
"""Units of one Airflow run: its max_map_length."""
IDENTITY = ServerIdentity("mysql", "bench", 1)
HEAD = Position("binlog.000001", 4)
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def main() -> int:
    """Measure each size, print a line per step, and save."""
    parser = argparse.ArgumentParser(prog="./dev bench tables", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", help="numbers of tables")
    parser.add_argument("--server", choices=["mysql", "mariadb"], help="make real tables at a server of this kind")
    parser.add_argument("--merges", action="store_true", help="with --server: merge them too, by Spark")
    parser.add_argument("--output", type=Path, help="the file")
    options = parser.parse_args()
    load = round(os.getloadavg()[0], 2)
    if options.server:
        output = options.output or ROOT / "build" / "bench" / f"tables-{options.server}.json"
        return real_tables(options.server, options.sizes or REAL_SIZES, load, output, merges=options.merges)
    options.sizes = options.sizes or SIZES
    measured = {size: measure(size) for size in sorted(options.sizes)}
    least, most = min(measured), max(measured)
    print(f"{'step':32}" + "".join(f"{size:>10,}" for size in measured) + f"   ratio (tables: {most / least:.0f})")
    for step in measured[least]:
        times = [seconds[step] for seconds in measured.values()]
        ratio = f"{times[-1] / times[0]:.0f}" if times[0] > 0.001 else "-"
        print(f"{step:32}" + "".join(f"{took:>9.2f}s" for took in times) + f"   {ratio:>5}")
    figures = [
        _figure(size, step, took, GOAL if size == most and step in HELD else None)
        for size, seconds in measured.items()
        for step, took in seconds.items()
    ]
    about = {"load_before": load, "runs": "1 of each size", "warm_up": "none"}
    save(figures, "none", about, options.output or ROOT / "build" / "bench" / "tables.json")
    return 0


def _figure(size: int, step: str, took: float, goal: float | None) -> Figure:
    return Figure(
        f"{size:,} tables, {step}", round(took, 2), "CPU s", goal=goal, met=None if goal is None else took <= goal
    )


def measure(size: int) -> dict[str, float]:
    """Return the CPU seconds of each step with ``size`` tables."""
    tables = [("shop", f"table_{number:05d}") for number in range(size)]
    took: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        bench = _Steps(pipeline(Path(folder)))
        bench.begin()
        for name, step in bench.steps(tables):
            began = time.process_time()
            step()
            took[name] = time.process_time() - began
    return took


def pipeline(folder: Path) -> Pipeline:
    """Return the pipeline of a source whose store is a folder."""
    config = SourceConfig.model_validate(
        {
            "source": "shop",
            "server": {"host": "bench", "user": "u", "password_env": "P"},
            "tables": {"include": ["shop.*"]},
            "store": {"url": f"file://{folder}/store"},
            "lake": {"type": "jdbc", "uri": f"jdbc:sqlite:{folder}/cat.db", "warehouse": f"file://{folder}/lake"},
        }
    )
    return Pipeline.open(config, Credentials("u", ""))


class _Steps:
    """The steps of one source, which are measured."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        self.facts = ServerFacts(IDENTITY, (9, 7, 0), {}, HEAD, "", ((HEAD.file, 4),))

    def begin(self) -> None:
        """Make the cursors."""
        for consumer in (DRAIN, LAKE):
            cursor = Cursor("shop", consumer, 0, 1, IDENTITY, HEAD, moves=(Move(NOW, "start", None, HEAD),))
            self.pipeline.cursors.swap(None, cursor)

    def steps(self, tables: list[tuple[str, str]]) -> Iterator[tuple[str, Callable[[], object]]]:
        """Yield the name and function of each step, after preparing its input."""
        yield "plan, all tables new", lambda: self.plan(tables)
        yield "plan, all tables known", lambda: self.plan(tables)
        yield "unit", lambda: _is_collected(self.pipeline, self.first(), self.cursor())
        self.write(self.cursor().open_snapshots[:ONE_RUN])
        yield "ack of 1,024 units", self.ack
        yield "ack of nothing new", self.ack_nothing
        self.write(self.cursor().open_snapshots)
        yield "ack of all the others", self.ack
        yield "plan of a merge", lambda: self.pipeline.plan_merge(by="bench")
        yield "plan of a merge, adopted", lambda: self.pipeline.plan_merge(by="bench")
        names = [TableName(database, table) for database, table in tables]
        yield "new snapshots of all, recorded", lambda: self.resnapshot(names)

    def cursor(self) -> Cursor:
        """Return the drain cursor as a task loads it."""
        cursor = self.pipeline.cursors.load("shop", DRAIN)
        if cursor is None:
            raise AssertionError
        return cursor

    def first(self) -> SnapshotTask | Window:
        """Return the first unit."""
        return self.cursor().snapshots[0]

    def plan(self, tables: list[tuple[str, str]]) -> None:
        """Do the part of a plan that needs no server."""
        cursor = self.cursor()
        planned = Planning(self.pipeline, "test")._enrolled(cursor, self.facts, tables)
        if planned != cursor:
            self.pipeline.cursors.swap(cursor, planned)

    def ack(self) -> None:
        """Acknowledge what is durable."""
        self.pipeline.ack_drain(by="bench")

    def ack_nothing(self) -> None:
        """Ack when nothing new is durable."""
        over_durable(self.pipeline, self.cursor(), by="bench")

    def resnapshot(self, names: list[TableName]) -> None:
        """Record requests for new snapshots of all tables."""
        lake = self.pipeline.cursors.load("shop", LAKE)
        quarantine = Quarantine(self.pipeline)
        quarantine.with_new_snapshots(self.cursor(), lake, names, ResnapshotRequest("bench", NOW, "bench"))

    def write(self, tasks: tuple[SnapshotTask, ...]) -> None:
        """Write the manifest of a single chunk for each task."""
        for task in tasks:
            chunk = SnapshotChunk(task.snapshot_id, task.name, 0, HEAD, None, None, last=True, high_watermark=HEAD)
            manifest = Manifest(
                source="shop", epoch=1, identity=IDENTITY, window=None, chunk=chunk, gtid_first="", gtid_last="",
                first_time=None, last_time=None, transactions=0, events=0, files=(), schemas={}, statements=(),
            )  # fmt: skip
            self.pipeline.store.put(layout.chunk_manifest_key(task, 0), documents.dump(manifest))


if __name__ == "__main__":
    raise SystemExit(main())
