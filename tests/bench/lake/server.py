"""Merges on a Spark server that is warm, beside the same merge in a Java process of its own; and the server's memory over many merges."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import psutil
import yaml

from cdc_lib.config import load_source
from cdc_lib.config.credentials import Credentials
from cdc_lib.jobs.client import SparkServer, job_request, raise_for
from cdc_lib.pipeline import Pipeline
from tests.bench.report import Figure, spread
from tests.bench.usage import Usage, measure
from tests.harness.seeded_shop import source_settings
from tests.harness.servers import SqlServer
from tests.harness.spark_server import RunningSparkServer

DATABASE = "served"
CHANGES = 50
"""Changes of each table in each merge."""

MERGES = 500
"""Merges between which the memory is read."""

FEW = 2
"""Tables of each of them."""

TIMED = 20
"""Merges that are timed."""

SMALL = 20
"""Tables of each of them."""

WARM_UP = 10
"""Merges that are not counted."""

STEP = 50
"""Merges between two looks at the server's memory."""

GOAL = 3.0
"""Most seconds of a warm merge of 20 tables."""

IDLE_GOAL = 2.0
"""Most seconds of a merge that finds nothing to do."""


def server_merges(
    folder: Path, server: SqlServer, tables: int = SMALL, merges: int = MERGES, minutes: float | None = None
) -> Iterator[Figure]:
    """Merge changes of small tables again and again.

    Args:
        folder: for everything but the source.
        server: the source.
        tables: number of tables of the merges that are timed.
        merges: on the Spark server, of :data:`FEW` tables, between which its memory is read.
        minutes: the most for these merges; fewer are done if it is not enough.
    """
    with RunningSparkServer(folder) as spark:
        os.environ["CDC_PASSWORD"] = server.cdc_password
        yield from _times(_Rounds(server, folder, spark, tables, DATABASE), min(TIMED, merges))
        yield from _memory_curve(_Rounds(server, folder, spark, min(FEW, tables), f"{DATABASE}_few"), merges, minutes)


def _times(rounds: _Rounds, merges: int) -> Iterator[Figure]:
    """Yield the seconds of a merge in both ways."""
    name = f"{_count(rounds.tables, 'table')} with {CHANGES} changes each"
    own = [rounds.cold() for _ in range(3)]
    cold, cpu = [used.wall for used in own], [used.cpu for used in own]
    yield Figure(f"{name}, a Java process of its own: wall", median(cold), "s", spread=spread(cold))
    yield Figure(f"{name}, a Java process of its own: CPU", median(cpu), "s", spread=spread(cpu))
    for _ in range(WARM_UP):
        rounds.on_server()
    served = [rounds.on_server() for _ in range(merges)]
    warm, cpu = [wall for wall, _ in served], [of_cpu for _, of_cpu in served]
    wall = median(warm)
    compared = {"compared_to": "a Java process of its own", "ratio": round(wall / median(cold), 3)}
    goal = {"goal": GOAL, "met": wall <= GOAL} if rounds.tables == SMALL else {}
    yield Figure(f"{name}, on a Spark server: wall", wall, "s", spread=spread(warm), **compared, **goal)  # type: ignore[arg-type]
    yield Figure(f"{name}, on a Spark server: CPU of the server", round(median(cpu), 3), "s", spread=spread(cpu))
    idle = rounds.idle()
    yield Figure("nothing to merge, on a Spark server: wall", idle, "s", goal=IDLE_GOAL, met=idle <= IDLE_GOAL)


def _memory_curve(rounds: _Rounds, merges: int, minutes: float | None) -> Iterator[Figure]:
    """Yield the server's memory between merges of few tables, and the CPU seconds of the first and the last of them."""
    yield from _memory(rounds.spark, 0)
    cpu = list[float]()
    until = time.monotonic() + minutes * 60 if minutes is not None else float("inf")
    while len(cpu) < merges and time.monotonic() < until:
        cpu.append(rounds.on_server()[1])
        if len(cpu) % STEP == 0:
            yield from _memory(rounds.spark, len(cpu))
    if len(cpu) % STEP:
        yield from _memory(rounds.spark, len(cpu))
    tenth = max(1, len(cpu) // 10)
    for what, part in (("first", slice(None, tenth)), ("last", slice(-tenth, None))):
        name = f"{_count(rounds.tables, 'table')}, {what} tenth of {_count(len(cpu), 'merge')}: CPU of the server"
        yield Figure(name, round(median(cpu[part]), 3), "s")


def _memory(spark: RunningSparkServer, merges: int) -> Iterator[Figure]:
    """Yield the memory of the server's Java process after a number of merges: its objects that are in use, and all of it."""
    java = _java(spark)
    # What waits for a collection is no leak.
    subprocess.run(["jcmd", str(java.pid), "GC.run"], capture_output=True, check=True)
    after = f"after {_count(merges, 'merge')}"
    yield Figure(f"Java's objects after garbage collection, {after}", spark.client.status().heap_mib, "MiB")
    yield Figure(f"Java's process, {after}", java.memory_info().rss >> 20, "MiB")


def _java(spark: RunningSparkServer) -> psutil.Process:
    assert spark.process is not None
    [java] = [child for child in psutil.Process(spark.process.pid).children() if child.name() == "java"]
    return java


def _cpu(spark: RunningSparkServer) -> float:
    """Return the CPU seconds of the server's processes until now, with those that have ended."""
    assert spark.process is not None
    server = psutil.Process(spark.process.pid)
    times = [one.cpu_times() for one in (server, *server.children())]
    return sum(one.user + one.system + one.children_user + one.children_system for one in times)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


@dataclass(slots=True)
class _Rounds:
    """Changes rows and merges them, in one of both ways."""

    server: SqlServer
    folder: Path
    spark: RunningSparkServer
    tables: int
    database: str
    number: int = 0

    def __post_init__(self) -> None:
        self.folder = self.folder / self.database
        self.folder.mkdir()
        self.server.execute(f"CREATE DATABASE {self.database}")
        for table in range(self.tables):
            self.server.execute(f"CREATE TABLE t{table} (id INT PRIMARY KEY, v VARCHAR(30))", database=self.database)
        settings = source_settings(self.server, [f"{self.database}.*"], self.folder, start="latest")
        for name, merge in (
            ("cold", {"driver_memory": "1g"}),
            ("warm", {"spark_server": {"url": self.spark.client.url}}),
        ):
            (self.folder / name).mkdir()
            (self.folder / name / "bench.yaml").write_text(yaml.safe_dump({**settings, "merge": merge}))
        self._pipeline().plan(by="bench")  # records where it starts

    def cold(self) -> Usage:
        """Merge in a new Java process; return what it took."""
        self._drain()
        used, _ = measure([sys.executable, "-m", "spark_jobs.merge", "--config", str(self._file("cold"))])
        self._pipeline().ack_lake(by="bench")
        return used

    def on_server(self) -> tuple[float, float]:
        """Merge on the server; return the seconds of the job, and the CPU seconds of the server."""
        self._drain()
        before = _cpu(self.spark)
        seconds = self._job()
        used = _cpu(self.spark) - before
        self._pipeline().ack_lake(by="bench")
        return seconds, used

    def idle(self) -> float:
        """Return the seconds of a job that finds nothing to merge."""
        return self._job()

    def _job(self) -> float:
        config = load_source(self._file("warm"))
        assert config.merge.spark_server is not None
        client = SparkServer(config.merge.spark_server)
        job = client.follow(client.submit(job_request(config, "merge", key=f"bench {self.number}")), lambda _: None)
        raise_for(job)
        return job.seconds

    def _drain(self) -> None:
        self.number += 1
        low = self.number * CHANGES // 2  # half of the keys are new
        rows = ", ".join(f"({low + key}, 'value {self.number}')" for key in range(CHANGES))
        for table in range(self.tables):
            self.server.execute(f"REPLACE INTO t{table} VALUES {rows}", database=self.database)
        pipeline = self._pipeline()
        for unit in pipeline.plan(by="bench"):
            pipeline.drain(unit)
        pipeline.ack_drain(by="bench")
        pipeline.plan_merge(by="bench")

    def _pipeline(self) -> Pipeline:
        login = Credentials(self.server.cdc_user, self.server.cdc_password)
        return Pipeline.open(load_source(self._file("cold")), login)

    def _file(self, way: str) -> Path:
        return self.folder / way / "bench.yaml"
