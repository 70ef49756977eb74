"""A window in which thousands of tables are created, altered and dropped, planned and drained: ``./dev bench ddl``."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from rich.console import Console
from rich.table import Table

from cdc_lib.drain import origin
from cdc_lib.drain import window as draining
from cdc_lib.schema_history import versions
from tests.bench.processes import ROOT
from tests.bench.report import Figure, save
from tests.harness.binlog.capture import Capture, row_metadata
from tests.harness.servers import MariaDbServer, MySqlServer, SqlServer

GOAL = 10.0
"""CPU seconds of plan and drain together, for the most tables."""
SESSIONS = 50
"""Tables whose statements one session sends."""


@dataclass(frozen=True, slots=True)
class Run:
    """The cost of one size.

    Args:
        metadata: binlog_row_metadata.
        tables: number of tables.
        plan: CPU seconds of the plan.
        drain: CPU seconds of the drain of its one window.
        dumps: how often the window was read.
        connections: connections of plan and drain.
        left_out: tables that need a new snapshot, because the binlog does not have the values that a DDL statement set.
    """

    metadata: str
    tables: int
    plan: float
    drain: float
    dumps: int
    connections: int
    left_out: int

    @property
    def cpu(self) -> float:
        """CPU seconds of both."""
        return self.plan + self.drain


def main() -> int:
    """Write a window of each size, plan and drain it, print and save."""
    parser = argparse.ArgumentParser(prog="./dev bench ddl", description=__doc__)
    parser.add_argument(
        "--tables", type=int, default=2600, help="of the largest window (2600); others have parts of it"
    )
    parser.add_argument("--server", choices=("mysql", "mariadb"), default="mysql", help="the server (mysql)")
    parser.add_argument("--output", type=Path, help="the file (build/bench/ddl.json, or ddl-mariadb.json)")
    options = parser.parse_args()
    name = "ddl.json" if options.server == "mysql" else "ddl-mariadb.json"
    output = options.output or ROOT / "build" / "bench" / name
    sizes = [max(1, options.tables // part) for part in (8, 4, 2, 1)]
    load = round(os.getloadavg()[0], 2)
    with (MySqlServer if options.server == "mysql" else MariaDbServer)() as server:
        runs = list(_all(server, sizes))
        version = f"{server.flavor} {server.version}"
    _show(runs, version)
    about = {
        "tables": options.tables,
        "load_before": load,
        "runs": "1 of each size",
        "warm_up": "a window of 20 tables with the same metadata is planned and drained first, and not counted",
    }
    save(list(_figures(runs)), version, about, output)
    return 0


def _all(server: SqlServer, sizes: list[int]) -> Iterator[Run]:
    for metadata in ("FULL", "MINIMAL"):
        with row_metadata(server, metadata):
            _one(server, metadata, 20)  # warms up kernels and connections
            for size in sizes:
                run = _one(server, metadata, size)
                print(f"{metadata}, {size} tables: {run.cpu:.2f} CPU s, {run.dumps} readings", flush=True)
                yield run


def _one(server: SqlServer, metadata: str, tables: int) -> Run:
    database = f"ddl_{metadata.lower()}_{tables}"
    server.execute(f"CREATE DATABASE {database}")
    with tempfile.TemporaryDirectory() as folder, _counted() as count:
        capture = Capture(server, database, Path(folder), start="latest")
        capture.execute("CREATE TABLE known (id INT PRIMARY KEY)")
        capture.pipeline.plan(by="bench")
        _write(server, database, tables)
        count.clear()
        plan, units = _cpu(lambda: capture.pipeline.plan(by="bench"))
        windows = [unit for unit in units if not hasattr(unit, "table")]
        before = count.get("binlog_dump", 0)
        drain, results = _cpu(lambda: [capture.pipeline.drain(window) for window in windows])
        left_out = sum(len(result.quarantined) for result in results)
        dumps, connections = count.get("binlog_dump", 0) - before, count.get("connect", 0)
    server.execute(f"DROP DATABASE {database}")
    return Run(metadata, tables, plan, drain, dumps, connections, left_out)


def _write(server: SqlServer, database: str, tables: int) -> None:
    """Create, fill, alter and drop tables; every other one by a statement after which it needs a new snapshot."""
    for first in range(0, tables, SESSIONS):
        with server.connect(database=database) as session, session.cursor() as sql:
            for n in range(first, min(tables, first + SESSIONS)):
                default = "(1 + 1)" if n % 2 else "7"
                sql.execute(f"CREATE TABLE t{n} (id INT PRIMARY KEY, v VARCHAR(20))")
                sql.execute(f"INSERT INTO t{n} VALUES (1, 'x')")
                sql.execute(f"ALTER TABLE t{n} ADD COLUMN w INT DEFAULT {default}")
                sql.execute(f"INSERT INTO t{n} VALUES (2, 'y', 3)")
                sql.execute(f"DROP TABLE t{n}")
            session.commit()


def _cpu(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.process_time()
    result = work()
    return time.process_time() - began, result


@contextmanager
def _counted() -> Iterator[dict[str, int]]:
    """Count the dumps and connections of the product."""
    count: dict[str, int] = {}

    def counting(name: str, ask: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **named: Any) -> Any:
            count[name] = count.get(name, 0) + 1
            return ask(*arguments, **named)

        return counted

    places = [
        (m, name) for m in (draining, versions, origin) for name in ("connect", "binlog_dump") if hasattr(m, name)
    ]
    patches = [mock.patch.object(module, name, counting(name, getattr(module, name))) for module, name in places]
    for patch in patches:
        patch.start()
    try:
        yield count
    finally:
        for patch in patches:
            patch.stop()


def _show(runs: list[Run], version: str) -> None:
    console = Console(width=None if sys.stdout.isatty() else 120)
    table = Table(title=f"tables created, altered and dropped in one window, {version}")
    for heading in ("metadata", "tables", "left out", "readings", "log-ins", "plan CPU s", "drain CPU s", "ms a table"):
        table.add_column(heading, justify="right", no_wrap=True)
    for run in runs:
        each = f"{1000 * run.cpu / run.tables:.2f}"
        numbers = (run.tables, run.left_out, run.dumps, run.connections)
        table.add_row(run.metadata, *map(str, numbers), f"{run.plan:.2f}", f"{run.drain:.2f}", each)
    console.print(table)


def _figures(runs: list[Run]) -> Iterator[Figure]:
    for metadata in ("FULL", "MINIMAL"):
        mine = [run for run in runs if run.metadata == metadata]
        most, half = mine[-1], mine[-2]
        name = f"{metadata}: {most.tables} tables"
        yield Figure(f"{name}, CPU", round(most.cpu, 3), "s", goal=GOAL, met=most.cpu <= GOAL)
        yield Figure(f"{name}, readings of the window", most.dumps, "")
        ratio = round(most.cpu / max(half.cpu, 1e-6), 2)
        yield Figure(f"{name}, CPU as a multiple of {half.tables} tables", ratio, "x", f"{half.tables} tables", ratio)


if __name__ == "__main__":
    sys.exit(main())
