"""A source of small tables whose changes are merged again and again, in a Java process of their own or on a Spark server."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import yaml

from cdc_lib.config import load_source
from cdc_lib.config.credentials import Credentials
from cdc_lib.jobs.client import SparkServer, job_request, raise_for
from cdc_lib.jobs.request import JobStatus
from cdc_lib.pipeline import Pipeline
from cdc_lib.store.windows import stored_windows
from tests.bench.lake.memory import cpu_of
from tests.bench.lake.plain import ServerWithPlain
from tests.bench.report import Figure, spread
from tests.bench.usage import Usage, measure
from tests.harness.servers import SqlServer
from tests.harness.shop.seeded import source_settings
from tests.harness.spark.server import RunningSparkServer

PLAIN = "a MERGE INTO for each table"

CHANGES = 50
"""Changes of each table in each merge."""


@dataclass(slots=True)
class Rounds:
    """Changes rows and merges them, in one of both ways.

    Args:
        server: the source.
        folder: a folder of the database's name is made in it, for store, lake and source files.
        spark: the server.
        tables: their number.
        database: of the source's tables; it is made.
        number: rounds so far.
    """

    server: SqlServer
    folder: Path
    spark: RunningSparkServer
    tables: int
    database: str = "served"
    number: int = 0

    def __post_init__(self) -> None:
        self.folder = self.folder / self.database
        self.server.execute(f"CREATE DATABASE {self.database}")
        for table in range(self.tables):
            self.server.execute(f"CREATE TABLE t{table} (id INT PRIMARY KEY, v VARCHAR(30))", database=self.database)
        settings = source_settings(self.server, [f"{self.database}.*"], self.folder, start="latest")
        for name, merge in (
            ("cold", {"driver_memory": "1g"}),
            ("warm", {"spark_server": {"url": self.spark.client.url}}),
        ):
            (self.folder / name).mkdir(parents=True)
            (self.folder / name / f"{self.database}.yaml").write_text(yaml.safe_dump({**settings, "merge": merge}))
        self._pipeline().plan(by="bench")  # records where it starts

    def cold(self) -> Usage:
        """Change rows and merge them in a new Java process; return what the merge took."""
        self.drain()
        used, _ = measure([sys.executable, "-m", "spark_jobs.merge", "--config", str(self._file("cold"))])
        self._pipeline().ack_lake(by="bench")
        return used

    def warm(self) -> tuple[float, float]:
        """Change rows and merge them on the server; return the seconds of the job, and the CPU seconds of the server."""
        self.drain()
        before = cpu_of(self.spark)
        seconds = self._job().seconds
        used = cpu_of(self.spark) - before
        self._pipeline().ack_lake(by="bench")
        return seconds, used

    def copy(self, spark: ServerWithPlain) -> None:
        """Copy the lake tables, for :meth:`beside_plain`."""
        spark.copy(self._file("warm"))

    def check(self, spark: ServerWithPlain) -> None:
        """Check that the copies equal the lake tables."""
        spark.check(self._file("warm"))

    def beside_plain(self, spark: ServerWithPlain) -> tuple[tuple[float, float], tuple[float, float]]:
        """Change rows and merge them on the server, by its job and by MERGE INTO into copies; return seconds and CPU seconds of both."""
        ours = self.warm()
        pipeline = self._pipeline()
        [*_, last] = stored_windows(pipeline.store, self.database)
        before = cpu_of(spark)
        seconds = spark.merge(self._file("warm"), last.key)
        return ours, (seconds, cpu_of(spark) - before)

    def idle(self) -> float:
        """Return the seconds of a job that finds nothing to merge."""
        return self._job().seconds

    def merge_on_server(self) -> JobStatus:
        """Merge what was drained, and move the lake cursor; return the job."""
        job = self._job()
        self._pipeline().ack_lake(by="bench")
        return job

    def _job(self) -> JobStatus:
        config = load_source(self._file("warm"))
        assert config.merge.spark_server is not None
        client = SparkServer(config.merge.spark_server)
        request = job_request(config, "merge", key=f"{self.database} {self.number}")
        job = client.follow(client.submit(request), lambda _: None)
        raise_for(job)
        return job

    def drain(self) -> None:
        """Change rows of each table, drain them, and plan their merge."""
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
        return self.folder / way / f"{self.database}.yaml"


def compared_with_plain(
    rounds: Rounds, spark: ServerWithPlain, merges: int, goal: float | None = None
) -> Iterator[Figure]:
    """Yield what merges on a Spark server take, each followed by MERGE INTO of the same changes into copies of the tables.

    Args:
        rounds: whose tables are there.
        spark: its server.
        merges: how many of each; one more is done first, and not counted.
        goal: most seconds of a merge; None without.
    """
    rounds.copy(spark)
    rounds.beside_plain(spark)
    pairs = [rounds.beside_plain(spark) for _ in range(merges)]
    rounds.check(spark)
    name = f"{rounds.tables} tables with {CHANGES} changes each, on a warm Spark server"
    for number, what in enumerate(("wall", "CPU")):
        ours, plain = ([pair[way][number] for pair in pairs] for way in range(2))
        wall, peer = median(ours), median(plain)
        met = {"goal": goal, "met": wall <= goal} if goal is not None and what == "wall" else {}
        yield Figure(f"{name}: {what}", round(wall, 3), "s", PLAIN, round(wall / peer, 3), spread=spread(ours), **met)  # type: ignore[arg-type]
        yield Figure(f"{name}, a MERGE INTO for each table: {what}", round(peer, 3), "s", spread=spread(plain))
