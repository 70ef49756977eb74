"""Cost of runs of a source's DAG in a real Airflow: ``./dev bench airflow``.

`airflow standalone` with the LocalExecutor, a MySQL server, and one source with some tables. Measured are runs that find nothing
to do, and runs with a few changes in each table; both with the scheduler's imports (``[cdc] preload``) and without them.
CPU is that of all of Airflow's processes, less what they use in as many seconds without a run.
"""

from __future__ import annotations

import argparse
import os
import secrets
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import median

from tests.bench.processes import ROOT
from tests.bench.report import Figure, save, spread
from tests.harness.airflow.source import AirflowSource, log_ins
from tests.harness.airflow.standalone import AirflowStandalone
from tests.harness.servers import MySqlServer

TICKS = os.sysconf("SC_CLK_TCK")
TABLES = 5
GOAL = 5.0
"""Most seconds of a run that finds nothing to do."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the DAG.

    Args:
        wall: seconds from its start to its end.
        cpu: CPU seconds of Airflow's processes, less those of the same time without a run.
        processes: tasks that were not skipped; each is a process.
    """

    wall: float
    cpu: float
    processes: int


def main() -> int:
    """Measure, print a line for each kind of run, and save."""
    parser = argparse.ArgumentParser(prog="./dev bench airflow", description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="runs of each kind")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "bench" / "airflow.json", help="the file")
    options = parser.parse_args()
    load = round(os.getloadavg()[0], 2)
    figures: list[Figure] = []
    without: dict[str, list[Run]] = {}
    for preload in (False, True):
        kind = "with the scheduler's imports" if preload else "without the scheduler's imports"
        measured = measure(options.runs, preload=preload)
        for name, runs in measured.items():
            figures += _figures(f"{name}, {kind}", runs, without.get(name))
            print(
                f"{name + ', ' + kind:58}{median(run.wall for run in runs):7.1f} s"
                f"{median(run.cpu for run in runs):8.1f} CPU s{max(run.processes for run in runs):4} tasks",
                flush=True,
            )
        without = without or measured
    save(figures, "none", {"load_before": load, "runs": f"{options.runs} of each", "warm_up": "the first run of the source"}, options.output)  # fmt: skip
    return 0


def _figures(name: str, runs: list[Run], without: list[Run] | None) -> list[Figure]:
    wall, cpu = median(run.wall for run in runs), median(run.cpu for run in runs)
    base = "without the scheduler's imports" if without else None
    ratios = (
        (round(wall / median(run.wall for run in without), 2), round(cpu / median(run.cpu for run in without), 2))
        if without
        else (None, None)
    )
    goal = GOAL if name.startswith("nothing") and without else None
    met = None if goal is None else wall <= goal
    return [
        Figure(f"{name}: wall", round(wall, 1), "s", base, ratios[0], goal, met, spread((run.wall for run in runs), 1)),
        Figure(f"{name}: CPU", round(cpu, 1), "s", base, ratios[1], spread=spread((run.cpu for run in runs), 1)),
        Figure(f"{name}: tasks", max(run.processes for run in runs), "processes"),
    ]


def measure(count: int, *, preload: bool) -> dict[str, list[Run]]:
    """Return the runs of each kind, by its name."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lakecdc-bench-")))
        server = stack.enter_context(MySqlServer())
        os.environ.update(log_ins(server))
        (folder / "sources").mkdir()
        env = {"CDC_SOURCES": str(folder / "sources"), **log_ins(server), "AIRFLOW__CDC__PRELOAD": str(preload)}
        air = stack.enter_context(AirflowStandalone(folder / "home", ROOT / "dags", ROOT / "plugins", env))
        name = f"shop_{secrets.token_hex(4)}"
        server.execute(f"CREATE DATABASE {name}")
        source = AirflowSource(name, server, folder / "sources", folder / name).write()
        source.sql(*(f"CREATE TABLE t{number} (id INT PRIMARY KEY AUTO_INCREMENT, v INT)" for number in range(TABLES)))
        changes = [f"INSERT INTO t{number} (v) VALUES (1), (2), (3)" for number in range(TABLES)]
        source.sql(*changes)
        air.wait_for_dag(source.dag)
        air.unpause(source.dag)
        _run(air, source, 0.0)
        time.sleep(10)
        idle = _idle_rate(air)
        return {
            "nothing to do": [_run(air, source, idle) for _ in range(count)],
            f"changes in {TABLES} tables": [
                _run(air, source, idle, lambda: source.sql(*changes)) for _ in range(count)
            ],
        }


def _run(air: AirflowStandalone, source: AirflowSource, idle: float, before: Callable[[], None] | None = None) -> Run:
    if before is not None:
        before()
    cpu, began = cpu_of_session(air.session), time.monotonic()
    run = air.wait_for_run(source.dag, air.trigger(source.dag))
    cpu, took = cpu_of_session(air.session) - cpu, time.monotonic() - began
    if run["state"] != "success":
        raise AssertionError(run)
    wall = datetime.fromisoformat(run["end_date"]) - datetime.fromisoformat(run["start_date"])
    tasks = [task for task in air.tasks(source.dag, run["dag_run_id"]) if task["state"] == "success"]
    return Run(wall.total_seconds(), cpu - idle * took, len(tasks))


def _idle_rate(air: AirflowStandalone, seconds: float = 20) -> float:
    before = cpu_of_session(air.session)
    time.sleep(seconds)
    return (cpu_of_session(air.session) - before) / seconds


def cpu_of_session(session: int) -> float:
    """Return the CPU seconds of the living processes of a session, and of their children that have ended."""
    used = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[3]) == session:
                used += sum(int(field) for field in fields[11:15])
    return used / TICKS


if __name__ == "__main__":
    raise SystemExit(main())
