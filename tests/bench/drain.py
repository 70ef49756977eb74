"""How fast the binlog becomes batches, beside mysql-replication and a raw copy: ``./dev bench drain``."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from tests.bench.processes import ROOT, ReaderFailed, copy_raw, job_of, read_in_python
from tests.bench.readers import Measured
from tests.bench.report import DRAIN, PEER, RAW, Reading, figures, save, show, show_stages, stage_figures
from tests.bench.workloads import WORKLOADS, Workload, Written, prepare, write
from tests.harness.servers import MariaDbServer, MySqlServer, SqlServer

SERVERS = {"mysql": MySqlServer, "mariadb": MariaDbServer}
SETTINGS = {"max-binlog-size": "1G"}
WITHOUT_TLS = {"mysql": {"tls-version": ""}, "mariadb": {"ssl": "OFF", "ssl-cert": None, "ssl-key": None}}
"""Every reader encrypts automatically when the server can: it is the server that must not."""


def main() -> int:
    """Write the workloads, run the readers, print and save what they took."""
    options = _options()
    console = Console(width=None if sys.stdout.isatty() else 120)
    began = time.monotonic()
    wanted = [workload for workload in WORKLOADS if workload.name in options.workloads]
    readings: list[Reading] = []
    stages: dict[str, dict[str, float]] = {}
    load = os.getloadavg()[0]
    settings = SETTINGS if options.tls else {**SETTINGS, **WITHOUT_TLS[options.server]}
    with SERVERS[options.server](settings=settings) as server:
        name = f"{server.flavor} {server.version}"
        prepare(server)
        try:
            for workload in wanted:
                readings += _workload(server, workload, options, console, stages)
        except ReaderFailed as error:
            print(f"bench: {error}", file=sys.stderr)
            return 1
    show(readings, name, console)
    show_stages(stages, console)
    found = [*figures(readings), *stage_figures(stages)]
    about = {
        "scale": options.scale,
        "tls": options.tls,
        "load_before": round(load, 2),
        "runs": f"{options.runs} of each reader, the one with the least CPU counts",
        "warm_up": "Python, imports and one drain of a small window of the same table are not counted",
        "slices": _slices(readings),
    }
    save(found, name, about, options.output)
    console.print(f"{time.monotonic() - began:.0f} s in all, load {load:.1f} before; saved as {options.output}")
    return 0


def _options() -> argparse.Namespace:
    names = [workload.name for workload in WORKLOADS]
    parser = argparse.ArgumentParser(prog="./dev bench drain", description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="1 writes 2.8 million row changes (1)")
    parser.add_argument("--server", choices=SERVERS, default="mysql", help="which real server to start (mysql)")
    parser.add_argument("--runs", type=int, default=5, help="of each reader; the one with the least CPU counts (5)")
    parser.add_argument("--tls", action="store_true", help="all readers over encrypted connections")
    parser.add_argument("--workloads", nargs="+", choices=names, default=names, help="some of the five")
    parser.add_argument("--output", type=Path, help="the file to write (build/bench/drain.json, drain-mariadb.json)")
    options = parser.parse_args()
    if options.output is None:
        name = "drain" if options.server == "mysql" else f"drain-{options.server}"
        options.output = ROOT / "build" / "bench" / f"{name}.json"
    return options


def _workload(
    server: SqlServer,
    workload: Workload,
    options: argparse.Namespace,
    console: Console,
    stages: dict[str, dict[str, float]],
) -> list[Reading]:
    """Write one workload, let every reader read it, and enter where the drain's time goes into ``stages``."""
    began = time.monotonic()
    written = write(server, workload, options.scale)
    size, seconds = f"{written.bytes / 1e6:,.0f} MB", f"{time.monotonic() - began:.0f} s"
    console.print(f"{workload.name} {workload.title}: {written.rows:,} row changes, {size}, written in {seconds}")
    whole, sliced = (
        job_of(server, written.start, written.stop, written.warm, rows)
        for rows in (written.rows, min(written.rows, workload.slice_rows))
    )
    peer = [read_in_python(PEER, sliced) if workload.slice_rows else None for _ in range(options.runs)]
    raw = [copy_raw(whole) for _ in range(options.runs)]
    drained = [read_in_python("drain", whole) for _ in range(options.runs)]
    stages[workload.name] = read_in_python("drain-by-stages", whole).stages
    took = {RAW: _best(raw), PEER: _best(peer), DRAIN: _best(drained)}
    runs = {RAW: raw, PEER: peer, DRAIN: drained}
    return [_reading(written, reader, best, runs[reader]) for reader, best in took.items() if best]


def _slices(readings: Sequence[Reading]) -> str:
    """Return which part of each workload the peer read."""
    parts = [f"{one.rows:,} of {one.of_rows:,} row changes of {one.workload}" for one in readings if one.reader == PEER]
    return f"{PEER} read {', '.join(parts) or 'nothing'}; every other reader read all"


def _best(runs: Sequence[Measured | None]) -> Measured | None:
    """Return the run with the least CPU, which others on the machine disturbed least; None when the reader is not there."""
    return min((run for run in runs if run), key=lambda run: run.cpu, default=None)


def _reading(written: Written, reader: str, took: Measured, runs: Sequence[Measured | None]) -> Reading:
    """Put a measurement beside what was written; one that read other rows than were written is worth nothing."""
    rows = written.rows if took.rows is None else took.rows
    expected = min(written.rows, written.workload.slice_rows) if reader == PEER else written.rows
    if rows < expected or rows > written.rows:
        raise ReaderFailed(f"{reader} read {rows} row changes of {expected}")
    size = round(written.bytes * rows / written.rows)
    goal, all_runs = written.workload.wall_goal, [run for run in runs if run]
    return Reading(written.workload.name, reader, goal, rows, written.rows, size, took, all_runs)


if __name__ == "__main__":
    sys.exit(main())
