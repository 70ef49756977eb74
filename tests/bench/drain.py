"""Speed of the drain, compared with other projects' readers and a raw copy: ``./dev bench drain``."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

from rich.console import Console

from tests.bench.peers import programs
from tests.bench.processes import (
    ROOT,
    ReaderFailed,
    copy_raw,
    job_of,
    raw_program,
    read_in_python,
    read_with_program,
)
from tests.bench.readers import Job, Measured
from tests.bench.report import (
    DRAIN,
    GO,
    JAVA,
    PEERS,
    PYTHON,
    RAW,
    WARM_UP,
    NotMeasured,
    Reading,
    figures,
    save,
    show,
    show_stages,
    stage_figures,
)
from tests.bench.workloads import WORKLOADS, Workload, Written, prepare, write
from tests.harness.servers import MariaDbServer, MySqlServer, SqlServer

SERVERS = {"mysql": MySqlServer, "mariadb": MariaDbServer}
SETTINGS = {"max-binlog-size": "1G"}
WITHOUT_TLS = {"mysql": {"tls-version": ""}, "mariadb": {"ssl": "OFF", "ssl-cert": None, "ssl-key": None}}
"""Disables TLS at the server: every reader would use it if the server offers it."""
READERS = {"mysqlbinlog": RAW, **{peer: peer for peer in PEERS}}
"""The peers, by their names in the option."""
_WHY = 300
"""Most characters of the reason why a reader was not measured."""

Read = Callable[[Job], Measured]


@dataclass(frozen=True, slots=True)
class Results:
    """The results of the command.

    Args:
        readings: one for each workload and reader.
        missing: readers that were not measured.
        stages: CPU seconds of the drain by workload and stage.
    """

    readings: list[Reading] = field(default_factory=list)
    missing: list[NotMeasured] = field(default_factory=list)
    stages: dict[str, dict[str, float]] = field(default_factory=dict)


def main() -> int:
    """Write the workloads, run the readers, print and save the results."""
    options = _options()
    console = Console(width=None if sys.stdout.isatty() else 120)
    began = time.monotonic()
    workloads = [workload for workload in WORKLOADS if workload.name in options.workloads]
    results = Results()
    readers = _readers(options.server, [READERS[name] for name in options.readers], results)
    load = os.getloadavg()[0]
    settings = SETTINGS if options.tls else {**SETTINGS, **WITHOUT_TLS[options.server]}
    with SERVERS[options.server](settings=settings) as server:
        name = f"{server.flavor} {server.version}"
        prepare(server)
        try:
            for workload in workloads:
                _workload(server, workload, options, console, readers, results)
        except ReaderFailed as error:
            print(f"bench: {error}", file=sys.stderr)
            return 1
    show(results.readings, results.missing, name, console)
    show_stages(results.stages, console)
    all_figures = [*figures(results.readings), *stage_figures(results.stages)]
    about = {
        "scale": options.scale,
        "tls": options.tls,
        "load_before": round(load, 2),
        "runs": f"{options.runs} of each reader, the one with the least CPU counts",
        "warm_up": f"not counted: {WARM_UP}",
        "slices": _slices(results.readings),
        "not_measured": [asdict(entry) for entry in results.missing],
    }
    save(all_figures, name, about, options.output, _versions(results.readings))
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
    parser.add_argument(
        "--readers", nargs="*", choices=READERS, default=list(READERS), help="what the drain is compared with (all)"
    )
    parser.add_argument("--output", type=Path, help="the file to write (build/bench/drain.json, drain-mariadb.json)")
    options = parser.parse_args()
    if options.output is None:
        name = "drain" if options.server == "mysql" else f"drain-{options.server}"
        options.output = ROOT / "build" / "bench" / f"{name}.json"
    return options


def _readers(flavor: str, names: Sequence[str], results: Results) -> dict[str, Read]:
    """Return the named readers that are on this machine or can be built; record the others as not measured."""
    prepared: dict[str, Callable[[], Read]] = {
        RAW: lambda: partial(copy_raw, raw_program(flavor)),
        PYTHON: lambda: partial(read_in_python, PYTHON),
        GO: lambda: partial(read_with_program, GO, programs.go_mysql()),
        JAVA: lambda: partial(read_with_program, JAVA, programs.binlog_connector()),
    }
    readers: dict[str, Read] = {}
    for reader in names:
        try:
            readers[reader] = prepared[reader]()
        except programs.ReaderMissing as error:
            results.missing.append(NotMeasured("all", reader, _one_line(error)))
    return readers


def _workload(
    server: SqlServer,
    workload: Workload,
    options: argparse.Namespace,
    console: Console,
    readers: dict[str, Read],
    results: Results,
) -> None:
    """Write one workload and let every reader read it.

    Raises:
        ReaderFailed: the drain or the raw copy failed; a peer that fails is recorded as not measured.
    """
    began = time.monotonic()
    written = write(server, workload, options.scale)
    size, seconds = f"{written.bytes / 1e6:,.0f} MB", f"{time.monotonic() - began:.0f} s"
    console.print(f"{workload.name} {workload.title}: {written.rows:,} row changes, {size}, written in {seconds}")
    whole, sliced = (
        job_of(server, written.start, written.stop, written.warm, rows, tls=options.tls)
        for rows in (written.rows, min(written.rows, workload.slice_rows))
    )
    for reader, read in readers.items():
        job = sliced if reader == PYTHON else whole
        try:
            results.readings.append(_reading(written, reader, [read(job) for _ in range(options.runs)]))
        except ReaderFailed as error:
            if reader not in PEERS:
                raise
            results.missing.append(NotMeasured(workload.name, reader, _one_line(error)))
    drained = [read_in_python("drain", whole) for _ in range(options.runs)]
    results.readings.append(_reading(written, DRAIN, drained))
    results.stages[workload.name] = read_in_python("drain-by-stages", whole).stages


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:_WHY]


def _slices(readings: Sequence[Reading]) -> str:
    """Return which part of each workload mysql-replication read."""
    slices = [reading for reading in readings if reading.reader == PYTHON]
    parts = [f"{part.rows:,} of {part.of_rows:,} row changes of {part.workload}" for part in slices]
    return f"{PYTHON} read {', '.join(parts) or 'nothing'}; every other reader read all"


def _versions(readings: Sequence[Reading]) -> dict[str, str]:
    """Return the versions of the measured peers that are not Python packages."""
    known = {GO: programs.go_mysql_version, JAVA: programs.binlog_connector_version}
    read = {reading.reader for reading in readings}
    return {peer: version() for peer, version in known.items() if peer in read}


def _reading(written: Written, reader: str, runs: Sequence[Measured]) -> Reading:
    """Make a reading of the run with the least CPU, which other processes disturbed least.

    Raises:
        ReaderFailed: it read other rows than were written, so its times are invalid.
    """
    took = min(runs, key=lambda run: run.cpu)
    rows = written.rows if took.rows is None else took.rows
    expected = min(written.rows, written.workload.slice_rows) if reader == PYTHON else written.rows
    if rows < expected or rows > written.rows:
        raise ReaderFailed(f"{reader} read {rows} row changes of {expected}")
    size = round(written.bytes * rows / written.rows)
    return Reading(written.workload.name, reader, written.workload.wall_goal, rows, written.rows, size, took, runs)


if __name__ == "__main__":
    sys.exit(main())
