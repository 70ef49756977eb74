"""Time from a commit at the source until the lake has it, by a source's DAG in a real Airflow: ``./dev bench freshness``.

`airflow standalone` with the LocalExecutor, a MySQL server, a Spark server that stays, and one source of some tables with a run
each minute. A process commits transactions of one row at an even pace, all the time. Once a second a probe is committed, and the
end of the binlog after it is noted; the first cut of the lake that reaches this position has the probe. So each time has the wait
for the next run in it. At the end every table is compared with the source.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import secrets
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Event as StopEvent
from pathlib import Path
from statistics import median, quantiles
from threading import Event, Thread

from cdc_lib.model.cursor import LAKE
from cdc_lib.model.position import Position
from tests.bench.airflow import cpu_of_session
from tests.bench.processes import ROOT
from tests.bench.report import Figure, save, spread
from tests.harness.airflow.source import OWN_JAVA, AirflowSource, log_ins
from tests.harness.airflow.standalone import AirflowStandalone
from tests.harness.servers import MySqlServer
from tests.harness.spark.server import RunningSparkServer

TABLES = 20
RATE = 500
MINUTES = 30.0
KEYS = 20_000
"""Keys of a table; a transaction writes the row of a random one."""
GOAL = 75.0
"""Most seconds from commit to cut, for 95 % of the probes."""


@dataclass
class Probes:
    """Commits whose time is known, and when the lake had them.

    Args:
        committed: of each probe, the time of its commit and a position that is not before its end, oldest first.
        visible: seconds until the lake had the probe, for the first ones of ``committed``.
    """

    committed: list[tuple[float, Position]] = field(default_factory=list)
    visible: list[float] = field(default_factory=list)

    def reached(self, position: Position, at: float) -> None:
        """Take that the lake is at a position since a time."""
        for commit, end in self.committed[len(self.visible) :]:
            if end > position:
                break
            self.visible.append(at - commit)


def main() -> int:
    """Measure, print each figure, and save."""
    parser = argparse.ArgumentParser(prog="./dev bench freshness", description=__doc__)
    parser.add_argument("--tables", type=int, default=TABLES, help=f"of the source ({TABLES})")
    parser.add_argument("--rate", type=int, default=RATE, help=f"transactions a second ({RATE})")
    parser.add_argument("--minutes", type=float, default=MINUTES, help=f"of writing, after the first run ({MINUTES:g})")
    parser.add_argument("--schedule", default="* * * * *", help="of the source: a run each minute, or on_change")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "bench" / "freshness.json", help="the file")
    options = parser.parse_args()
    load = round(os.getloadavg()[0], 2)
    figures, server = measure(options.tables, options.rate, options.minutes, options.schedule)
    for figure in figures:
        goal = "" if figure.goal is None else f", goal {figure.goal:g}: {'met' if figure.met else 'not met'}"
        print(f"{figure.name}: {figure.value:,} {figure.unit}{goal}", flush=True)
    runs = "one probe a second; all count"
    save(figures, server, {"load_before": load, "runs": runs, "warm_up": "the run of the snapshots"}, options.output)
    return 0


def measure(tables: int, rate: int, minutes: float, schedule: str) -> tuple[list[Figure], str]:
    """Run everything, and return the figures and the server's version."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lakecdc-bench-")))
        server = stack.enter_context(MySqlServer())
        spark = stack.enter_context(RunningSparkServer(folder))
        os.environ.update(log_ins(server))
        (folder / "sources").mkdir()
        env = {"CDC_SOURCES": str(folder / "sources"), **log_ins(server)}
        air = stack.enter_context(AirflowStandalone(folder / "home", ROOT / "dags", ROOT / "plugins", env))
        name = f"shop_{secrets.token_hex(4)}"
        server.execute(f"CREATE DATABASE {name}")
        merge = {**OWN_JAVA, "spark_server": {"url": spark.config.url}}
        source = AirflowSource(name, server, folder / "sources", folder / name, {"schedule": schedule}, merge).write()
        source.sql(*(f"CREATE TABLE t{number} (id INT PRIMARY KEY, v VARCHAR(40))" for number in range(tables)))
        source.sql("CREATE TABLE probe (id INT PRIMARY KEY AUTO_INCREMENT, v INT)")
        air.wait_for_dag(source.dag)
        air.unpause(source.dag)
        air.wait("the first cut", lambda: source.cursor(LAKE))
        began = time.time()
        with _written(source, tables, rate) as written:
            before = cpu_of_session(air.session)
            probes = _probed(source, minutes * 60)
            cpu, committed = cpu_of_session(air.session) - before, written()
        _until_all_are_visible(source, probes)
        differences = source.differences()
        if differences:
            raise AssertionError(differences)
        runs = [_seconds(run) for run in air.dag_runs(source.dag) if run["state"] == "success"]
        print(f"{len(runs)} runs and {committed:,} transactions in {time.time() - began:,.0f} s", flush=True)
        name = f"{tables} tables, {rate} transactions a second, {_words(schedule)}"
        rest = [
            Figure(f"{name}: transactions a second that were committed", round(committed / minutes / 60), "1/s"),
            Figure(f"{name}: a run of the DAG", round(median(runs), 1), "s", spread=spread(runs, 1)),
            Figure(f"{name}: Airflow's CPU, of one core", round(cpu / minutes / 60, 2), "cores"),
        ]
        return [*_times(name, probes.visible), *rest], f"{server.flavor} {server.version}"


def _words(schedule: str) -> str:
    return "a run each minute" if schedule == "* * * * *" else f"schedule {schedule}"


def _times(name: str, visible: list[float]) -> Iterator[Figure]:
    """Yield the quantiles of all probes, and those of the first and the last third, which tell whether it is steady."""
    most = quantiles(visible, n=20)[-1]
    for what, value in (("half of the commits within", median(visible)), ("all within", max(visible))):
        yield Figure(f"{name}: {what}", round(value, 1), "s")
    yield Figure(f"{name}: 95 % within", round(most, 1), "s", goal=GOAL, met=most <= GOAL)
    third = len(visible) // 3
    for which, part in (("first", visible[:third]), ("last", visible[-third:])):
        yield Figure(f"{name}: 95 % of the {which} third within", round(quantiles(part, n=20)[-1], 1), "s")


def _probed(source: AirflowSource, seconds: float) -> Probes:
    """Commit a probe a second, and look twice a second where the lake is."""
    probes, until = Probes(), time.time() + seconds
    stop = Event()
    looks = Thread(target=_look, args=(source, probes, stop))
    looks.start()
    try:
        with source.server.connect(database=source.name) as connection, connection.cursor() as cursor:
            while (now := time.time()) < until:
                cursor.execute("INSERT INTO probe (v) VALUES (1)")
                at = time.time()
                cursor.execute("SHOW BINARY LOG STATUS")
                [(file, offset, *_)] = cursor.fetchall()
                probes.committed.append((at, Position(file, offset)))
                time.sleep(max(0.0, now + 1 - time.time()))
    finally:
        stop.set()
        looks.join()
    return probes


def _look(source: AirflowSource, probes: Probes, stop: Event) -> None:
    while not stop.wait(0.5):
        if (cursor := source.cursor(LAKE)) is not None:
            probes.reached(cursor.position, time.time())


def _until_all_are_visible(source: AirflowSource, probes: Probes) -> None:
    stop = Event()
    looks = Thread(target=_look, args=(source, probes, stop))
    looks.start()
    deadline = time.time() + 900
    try:
        while len(probes.visible) < len(probes.committed):
            if time.time() > deadline:
                raise AssertionError("the lake did not reach the last probe")
            time.sleep(0.5)
    finally:
        stop.set()
        looks.join()


@contextmanager
def _written(source: AirflowSource, tables: int, rate: int) -> Iterator[Callable[[], int]]:
    """Commit transactions in a process of its own; yields what returns their number so far."""
    number: Synchronized[int] = multiprocessing.Value("q", 0)
    stop = multiprocessing.Event()
    writer = multiprocessing.Process(target=_write, args=(source, tables, rate, number, stop))
    writer.start()
    try:
        yield lambda: number.value
    finally:
        stop.set()
        writer.join()
    if writer.exitcode != 0:
        raise AssertionError("the process that writes failed")


def _write(source: AirflowSource, tables: int, rate: int, number: Synchronized[int], stop: StopEvent) -> None:
    chosen = random.Random(1)  # the same keys in each run
    began = time.monotonic()
    with source.server.connect(database=source.name) as connection, connection.cursor() as cursor:
        while not stop.is_set():
            number.value += 1
            table, key = chosen.randrange(tables), chosen.randrange(KEYS)
            cursor.execute(f"REPLACE INTO t{table} VALUES ({key}, 'value {number.value}')")
            ahead = began + number.value / rate - time.monotonic()
            if ahead > 0:
                time.sleep(ahead)


def _seconds(run: dict[str, object]) -> float:
    took = datetime.fromisoformat(str(run["end_date"])) - datetime.fromisoformat(str(run["start_date"]))
    return took.total_seconds()


if __name__ == "__main__":
    raise SystemExit(main())
