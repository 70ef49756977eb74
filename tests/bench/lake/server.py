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

SMALL = 20
"""Tables of a merge."""

WARM_UP = 10
"""Merges that are not counted."""

STEP = 50
"""Merges between two looks at the server's memory."""

GOAL = 3.0
"""Most seconds of a warm merge of 20 tables."""


def server_merges(
    folder: Path, server: SqlServer, tables: int = SMALL, merges: int = MERGES, minutes: float | None = None
) -> Iterator[Figure]:
    """Merge changes of small tables again and again.

    Args:
        folder: for everything but the source.
        server: the source.
        tables: number of tables.
        merges: on the Spark server.
        minutes: the most for these merges; fewer are done if it is not enough.
    """
    with RunningSparkServer(folder) as spark:
        os.environ["CDC_PASSWORD"] = server.cdc_password
        rounds = _Rounds(server, folder, spark, tables)
        name = f"{_count(tables, 'table')} with {CHANGES} changes each"
        own = [rounds.cold() for _ in range(3)]
        cold = [used.wall for used in own]
        yield Figure(f"{name}, a Java process of its own: wall", median(cold), "s", spread=spread(cold))
        cpu = [used.cpu for used in own]
        yield Figure(f"{name}, a Java process of its own: CPU", median(cpu), "s", spread=spread(cpu))
        for _ in range(WARM_UP):
            rounds.on_server()
        yield from _memory(spark, 0)
        warm, cpu = list[float](), list[float]()
        until = time.monotonic() + minutes * 60 if minutes is not None else float("inf")
        while len(warm) < merges and time.monotonic() < until:
            before = _cpu(spark)
            warm.append(rounds.on_server())
            cpu.append(_cpu(spark) - before)
            if len(warm) % STEP == 0:
                yield from _memory(spark, len(warm))
        if len(warm) % STEP:
            yield from _memory(spark, len(warm))
        yield from _times(name, tables, cold, warm)
        yield Figure(f"{name}, on a Spark server: CPU of the server", round(median(cpu), 3), "s", spread=spread(cpu))


def _times(name: str, tables: int, cold: list[float], warm: list[float]) -> Iterator[Figure]:
    wall, tenth = median(warm), max(1, len(warm) // 10)
    compared = {"compared_to": "a Java process of its own", "ratio": round(wall / median(cold), 3)}
    goal = {"goal": GOAL, "met": wall <= GOAL} if tables == SMALL else {}
    yield Figure(f"{name}, on a Spark server: wall", wall, "s", spread=spread(warm), **compared, **goal)  # type: ignore[arg-type]
    for what, part in (("first", slice(None, tenth)), ("last", slice(-tenth, None))):
        yield Figure(
            f"{name}, on a Spark server: wall, {what} tenth of {len(warm)} merges", round(median(warm[part]), 3), "s"
        )


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
    number: int = 0

    def __post_init__(self) -> None:
        self.server.execute(f"CREATE DATABASE {DATABASE}")
        for table in range(self.tables):
            self.server.execute(f"CREATE TABLE t{table} (id INT PRIMARY KEY, v VARCHAR(30))", database=DATABASE)
        settings = source_settings(self.server, [f"{DATABASE}.*"], self.folder, start="latest")
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

    def on_server(self) -> float:
        """Merge on the server; return the seconds of the job."""
        self._drain()
        config = load_source(self._file("warm"))
        assert config.merge.spark_server is not None
        client = SparkServer(config.merge.spark_server)
        job = client.follow(client.submit(job_request(config, "merge", key=f"bench {self.number}")), lambda _: None)
        raise_for(job)
        self._pipeline().ack_lake(by="bench")
        return job.seconds

    def _drain(self) -> None:
        self.number += 1
        low = self.number * CHANGES // 2  # half of the keys are new
        rows = ", ".join(f"({low + key}, 'value {self.number}')" for key in range(CHANGES))
        for table in range(self.tables):
            self.server.execute(f"REPLACE INTO t{table} VALUES {rows}", database=DATABASE)
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
