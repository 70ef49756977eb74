"""A backlog of eight windows, drained by one process and by two processes in parallel: ``./dev bench parallel``."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from multiprocessing.synchronize import Barrier
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.bench.processes import ROOT, job_of
from tests.bench.readers import Job, cpu_now, drain_all
from tests.bench.report import Figure, save
from tests.bench.workloads import WORKLOADS, binlog_range, prepare
from tests.harness.servers import MySqlServer

WINDOWS = 8
GOAL = 1.7
"""Speed of two processes as a multiple of one's, if neither the server nor the number of cores is the limit."""


def main() -> int:
    """Write the windows, drain them both ways, print and save."""
    parser = argparse.ArgumentParser(prog="./dev bench parallel", description=__doc__)
    parser.add_argument("--rows", type=int, default=250_000, help="rows of each window (250000)")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "bench" / "parallel.json", help="the file")
    options = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 120)
    load = round(os.getloadavg()[0], 2)
    with MySqlServer(settings={"max-binlog-size": "1G", "tls-version": ""}) as server:
        prepare(server)
        workload = WORKLOADS[0]
        for statement in workload.tables:
            server.execute(statement, database="bench")
        warm = binlog_range(server, lambda: workload.run(server, 1000))
        ranges = [binlog_range(server, lambda: workload.run(server, options.rows)) for _ in range(WINDOWS)]
        jobs = [job_of(server, start, stop, warm) for start, stop in ranges]
        took = {processes: _run(jobs, processes) for processes in (1, 2)}
        version = f"{server.flavor} {server.version}"
    ratio = took[1][0] / took[2][0]
    table = Table(title=f"{WINDOWS} windows of {options.rows:,} rows")
    for heading in ("processes", "wall s", "CPU s", "cores busy", "speed x one"):
        table.add_column(heading, justify="right", no_wrap=True)
    for processes, (wall, cpu) in took.items():
        table.add_row(str(processes), f"{wall:.2f}", f"{cpu:.2f}", f"{cpu / wall:.2f}", f"{took[1][0] / wall:.2f}")
    console.print(table)
    console.print(f"goal: {GOAL} where a core is free for each; one process decodes and encodes on threads of its own.")
    figures = [
        *(Figure(f"{n} processes: wall", round(wall, 3), "s") for n, (wall, _) in took.items()),
        Figure("speed of two processes", round(ratio, 2), "x", "one process", round(ratio, 2), GOAL, ratio >= GOAL),
    ]
    about = {
        "rows": options.rows,
        "load_before": load,
        "runs": "1 each way",
        "warm_up": "each process drains a small window of the same table first, which is not counted",
    }
    save(figures, version, about, options.output)
    return 0


def _run(jobs: list[Job], processes: int) -> tuple[float, float]:
    """Return wall seconds and CPU seconds of all processes together, from when all are ready."""
    context = multiprocessing.get_context("spawn")
    ready = context.Barrier(processes + 1)
    used = context.Queue()
    children = [context.Process(target=_child, args=(jobs[n::processes], ready, used)) for n in range(processes)]
    for child in children:
        child.start()
    ready.wait()
    began = time.perf_counter()
    for child in children:
        child.join()
    wall = time.perf_counter() - began
    if any(child.exitcode for child in children):
        msg = "a drain failed"
        raise RuntimeError(msg)
    return wall, sum(used.get() for _ in children)


def _child(jobs: list[Job], ready: Barrier, used: multiprocessing.Queue[float]) -> None:
    def warmed() -> None:
        ready.wait()
        before.append(cpu_now())

    before: list[float] = []
    drain_all(jobs, warmed)
    used.put(cpu_now() - before[0])


if __name__ == "__main__":
    sys.exit(main())
