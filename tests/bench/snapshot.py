"""Snapshots by one process and by two, of two tables and of one in two ranges: ``./dev bench snapshot``.

The snapshots of two tables are compared with MySQL's client, which discards the rows.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from multiprocessing.synchronize import Barrier
from pathlib import Path

from cdc_lib.config.credentials import Credentials
from cdc_lib.config.load import load_source
from cdc_lib.model.window import SnapshotTask
from cdc_lib.pipeline import Pipeline
from tests.bench.lake.end_to_end import source_file
from tests.bench.report import Figure, save, spread
from tests.bench.usage import ROOT
from tests.bench.workloads import DATABASE, WORKLOADS, prepare
from tests.harness.servers import MySqlServer, SqlServer, mysql_packages

GOAL = 0.8
"""Rows a second by one process, as a part of those of MySQL's client."""

GOAL_OF_TWO = 1.7
"""Rows a second by two processes, as a multiple of those by one; each process needs a core, and so does the server."""

WHOLE = {"range_bytes": 0}
IN_RANGES = {"range_bytes": 1, "max_ranges": 2}


BOTH = ("mixed", "second")


def main() -> int:
    """Fill the tables, read them in each way, print and save."""
    parser = argparse.ArgumentParser(prog="./dev bench snapshot", description=__doc__)
    parser.add_argument("--rows", type=int, default=500_000, help="of each of the two tables (500000)")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "bench" / "snapshot.json", help="the file")
    options = parser.parse_args()
    load = round(os.getloadavg()[0], 2)
    with MySqlServer(settings={"tls-version": "", "max-binlog-size": "1G"}) as server:
        prepare(server)
        bulk = WORKLOADS[0]
        server.execute(bulk.tables[0], database=DATABASE)
        bulk.run(server, options.rows)
        server.execute("CREATE TABLE second LIKE mixed", database=DATABASE)
        server.execute("INSERT INTO second SELECT * FROM mixed", database=DATABASE)
        server.execute("ANALYZE TABLE mixed, second", database=DATABASE)  # sizes decide about ranges
        rows = 2 * options.rows
        clients = [_client(server) for _ in range(3)]
        ones, twos = ([_drain(server, processes, BOTH) for _ in range(2)] for processes in (1, 2))
        alone, beside = ([_drain(server, processes, ("mixed",), IN_RANGES) for _ in range(2)] for processes in (1, 2))
        version = f"{server.flavor} {server.version}"
    client = min(clients)
    figures = [
        _figure(rows, "the client with --quick", clients),
        _figure(rows, "one process", ones, client, GOAL),
        _figure(rows, "two processes", twos, min(ones), GOAL_OF_TWO, "one process"),
        _figure(rows, "two processes, beside the client", twos, client),
        _figure(options.rows, "one table in two ranges by one process", alone),
        _figure(
            options.rows, "one table in two ranges by two processes", beside, min(alone), GOAL_OF_TWO, "one process"
        ),
    ]
    for figure in figures:
        goal = "" if figure.goal is None else f", goal {figure.goal}: {'met' if figure.met else 'not met'}"
        print(
            f"{figure.name}: {figure.value:,}"
            + (f", {figure.ratio} x {figure.compared_to}{goal}" if figure.ratio else "")
        )
    about = {
        "load_before": load,
        "runs": "3 of the client, 2 of each number of processes; the fastest counts",
        "warm_up": "each process reads a small table first, which is not counted, like its start and its end; the client's are counted",
    }
    save(figures, version, about, options.output)
    return 0


def _figure(
    rows: int,
    who: str,
    took: Sequence[float],
    than: float | None = None,
    goal: float | None = None,
    other: str = "the client",
) -> Figure:
    """Return the rows a second of the fastest run, compared with those of another if its seconds are given."""
    speed, between = round(rows / min(took)), spread((rows / each for each in took), 0)
    name = f"{rows:,} rows, {who}: rows a second"
    if than is None:
        return Figure(name, speed, "rows/s", spread=between)
    ratio = round(than / min(took), 2)
    met = None if goal is None else ratio >= goal
    return Figure(name, speed, "rows/s", other, ratio, goal, met, between)


def _client(server: SqlServer) -> float:
    """Return the seconds in which MySQL's client starts and reads both tables."""
    command = [
        *mysql_packages.command("mysql"),
        *("--no-defaults", "--quick", "--batch", f"--host={server.host}", f"--port={server.port}", "--user=root"),
        *("--ssl-mode=DISABLED", DATABASE, "-e", "SELECT * FROM mixed; SELECT * FROM second"),
    ]
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def _drain(server: SqlServer, processes: int, tables: Sequence[str], snapshot: Mapping[str, int] = WHOLE) -> float:
    """Return the seconds in which processes read tables, from the moment at which all are ready to the end of the last table."""
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory(prefix="lakecdc-bench-") as name:
        folder = Path(name)
        source_file(folder, server, f"{DATABASE}.*", start="snapshot", snapshot=dict(snapshot))
        planned = _pipeline(folder, server.cdc_user, server.cdc_password).plan(by="bench")
        units = [unit.id for unit in planned if isinstance(unit, SnapshotTask) and unit.table in tables]
        if len(units) < 2:
            raise AssertionError(units)
        ready = context.Barrier(processes + 1, timeout=600)
        shares = [units[number::processes] for number in range(processes)]
        workers = [
            context.Process(target=_work, args=(folder, server.cdc_user, server.cdc_password, share, ready))
            for share in shares
        ]
        for worker in workers:
            worker.start()
        ready.wait()
        began = time.perf_counter()
        ready.wait()
        took = time.perf_counter() - began
        for worker in workers:
            worker.join()
        if any(worker.exitcode for worker in workers):
            raise AssertionError([worker.exitcode for worker in workers])
        return took


def _work(folder: Path, user: str, password: str, ids: Sequence[str], ready: Barrier) -> None:
    """Read units. The table of numbers is not counted; it warms the process up."""
    pipeline = _pipeline(folder, user, password)
    units = {unit.id: unit for unit in pipeline.plan(by="bench") if isinstance(unit, SnapshotTask)}
    pipeline.drain(next(unit for unit in units.values() if unit.table == "numbers"))
    ready.wait()
    for one in ids:
        pipeline.drain(units[one])
    ready.wait()


def _pipeline(folder: Path, user: str, password: str) -> Pipeline:
    return Pipeline.open(load_source(folder / "bench.yaml"), Credentials(user, password))


if __name__ == "__main__":
    sys.exit(main())
