"""Peak memory of a drain, with one huge transaction and with huge values: ``./dev bench memory``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from cdc_lib.model.position import Position
from tests.bench.processes import ROOT, job_of, read_in_python
from tests.bench.report import MEMORY_GOAL, Figure, save
from tests.bench.workloads import DATABASE, binlog_range, prepare
from tests.harness.servers import MySqlServer, SqlServer

MIB = 1 << 20
VALUE = 64 * MIB
SETTINGS = {"max-allowed-packet": "256M", "max-binlog-size": "1G", "tls-version": ""}
_ROWS = 10_000
_ROW = 2_000


def main() -> int:
    """Write both, drain each in its own process, print and save its peak."""
    parser = argparse.ArgumentParser(prog="./dev bench memory", description=__doc__)
    parser.add_argument("--mib", type=int, default=2048, help="size of the transaction (2048)")
    parser.add_argument(
        "--output", type=Path, default=ROOT / "build" / "bench" / "memory.json", help="the file to write"
    )
    options = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 120)
    figures: list[Figure] = []
    load = round(os.getloadavg()[0], 2)
    table = Table(title="Memory of the drain at most")
    for heading in ("", "binlog MiB", "peak MiB", "goal MiB"):
        table.add_column(heading, justify="right" if heading else "left", no_wrap=True)
    with MySqlServer(settings=SETTINGS) as server:
        prepare(server)
        server.execute("CREATE TABLE big (id INT PRIMARY KEY, v VARBINARY(2000))", database=DATABASE)
        server.execute("CREATE TABLE blobs (id INT PRIMARY KEY, v LONGBLOB)", database=DATABASE)
        cases: list[tuple[str, Callable[[], None], int]] = [
            (f"one transaction of {options.mib} MiB", lambda: _transaction(server, options.mib), MEMORY_GOAL),
            # Two values are in flight at a time: one being received, one being encoded.
            ("8 values of 64 MiB", lambda: _values(server), MEMORY_GOAL + 2 * VALUE // MIB),
        ]
        for name, work, goal in cases:
            start, stop = binlog_range(server, work, one_transaction=True)
            peak, size = _drained(server, start, stop), _size(server, start.file) // MIB
            table.add_row(name, f"{size:,}", f"{peak:,}", f"{goal:,}")
            figures.append(Figure(f"{name}: peak memory", peak, "MiB", goal=goal, met=peak <= goal))
        version = f"{server.flavor} {server.version}"
    console.print(table)
    about = {
        "mib": options.mib,
        "load_before": load,
        "runs": "1 of each case",
        "warm_up": "the memory of the start is counted",
    }
    save(figures, version, about, options.output)
    return 0


def _transaction(server: SqlServer, mib: int) -> None:
    with server.connect(database=DATABASE) as session, session.cursor() as cursor:
        cursor.execute("BEGIN")
        for first in range(0, mib * MIB // _ROW, _ROWS):
            # Random bytes: values that compress well would not fill the encoder's buffers.
            cursor.execute(
                f"INSERT INTO big SELECT n + {first}, CONCAT(RANDOM_BYTES(1000), RANDOM_BYTES({_ROW - 1000})) FROM numbers"
            )
        cursor.execute("COMMIT")


def _values(server: SqlServer) -> None:
    for number in range(8):
        server.execute(
            f"INSERT INTO blobs VALUES ({number}, REPEAT(RANDOM_BYTES(1024), {VALUE // 1024}))", database=DATABASE
        )


def _size(server: SqlServer, file: str) -> int:
    return next(int(size) for name, size, *_ in server.execute("SHOW BINARY LOGS") if name == file)


def _drained(server: SqlServer, start: Position, stop: Position) -> int:
    """Drain a range of the binlog and return the process's peak in MiB."""
    return round((read_in_python("drain", job_of(server, start, stop)).peak_rss or 0) / MIB)


if __name__ == "__main__":
    sys.exit(main())
