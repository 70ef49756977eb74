"""One way to merge changes into a lake table, in its own Spark application: ``python -m tests.bench.lake.once``.

Prints a line of JSON; measures from the started Spark to the commit. Each way starts from the same
snapshot of the table, to which it is rolled back first.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import secrets
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from cdc_lib.merge.load import load_plan
from cdc_lib.model.merge_plan import MergePlan
from cdc_lib.store import layout
from cdc_lib.store.objects.local import LocalStore
from spark_jobs.merging.run import merge
from spark_jobs.runtime.session import spark_session
from tests.bench.lake.orders import TABLE, Keys, make_table, write_changes, write_rows
from tests.harness.lake.running import Lake, lake_config

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one way.

    Args:
        wall: seconds.
        cpu: CPU seconds of Spark's process and of this one.
        peak_mib: peak memory of Spark's process since its start.
        read_mb: MB that Spark's process read.
        rows: of the table after it.
        check: a sum over the table's values after it, equal for every way.
    """

    wall: float
    cpu: float
    peak_mib: int
    read_mb: float
    rows: int
    check: int


def main() -> int:
    """Run one way, and print its cost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("way", choices=["make", "pairs", *WAYS, *LOADS])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--changes", type=int, default=100_000)
    parser.add_argument("--keys", choices=["uniform", "recent"], default="uniform")
    parser.add_argument(
        "--pairs", type=int, default=4, help="of warm merges, ours and MERGE INTO; the first is not printed"
    )
    parser.add_argument("--memory", default="2g")
    parser.add_argument("--master", default="local[*]", help="where Spark runs its tasks")
    parser.add_argument("--events", help="folder of Spark's event log, without it there is none")
    options = parser.parse_args()
    base = options.folder / "base"
    conf = {"spark.executor.memory": "768m", "spark.driver.host": "127.0.0.1"} if options.master != "local[*]" else {}
    if options.events:
        log = {"enabled": "true", "dir": f"file://{options.events}", "compress": "false", "rolling.enabled": "false"}
        conf |= {f"spark.eventLog.{name}": value for name, value in log.items()}
    settings = {"driver_memory": options.memory, "spark_master": options.master, "conf": conf}
    config = lake_config(options.folder, merge=settings)
    with spark_session(config) as spark:
        # A new store: in a used one, a merge would find its cut and do nothing.
        lake = Lake(spark, config, LocalStore(options.folder / f"store-{secrets.token_hex(4)}"))
        if options.way == "make":
            make_table(spark, lake, options.rows)
            base.write_text(str(lake.state(TABLE).snapshot_id))
            return 0
        if options.way in LOADS:
            print(json.dumps(asdict(_loaded(spark, lake, options.way, options.rows))))
            return 0
        if options.way == "pairs":
            for number in range(options.pairs):
                for way in PAIR:
                    _set_back(spark, lake, base)
                    fresh = Lake(spark, config, LocalStore(options.folder / f"store-{secrets.token_hex(4)}"))
                    taken = measured(spark, fresh, way, options.rows, options.changes, options.keys)
                    if number:
                        print(json.dumps({"way": way, **asdict(taken)}), flush=True)
            return 0
        _set_back(spark, lake, base)
        if conf:
            spark.range(100).count()  # executors start with the first job
        taken = measured(spark, lake, options.way, options.rows, options.changes, options.keys)
    print(json.dumps(asdict(taken)))
    return 0


def _loaded(spark: SparkSession, lake: Lake, way: str, rows: int) -> Cost:
    """Bring new rows into a table without any: by a merge, or by one INSERT INTO a table that is made before."""
    chunks, stop = write_rows(lake.batches, rows)
    if way == "insert":
        make_table(spark, lake, 0)
    plan, clock = lake.batches.plan(stop, *chunks), _Clock(spark)
    if way == "load":
        ours(spark, lake, plan)
    else:
        columns = ", ".join(_columns(spark, lake, plan))
        spark.sql(f"INSERT INTO {lake.name(TABLE)} SELECT {columns} FROM changes")
    return _cost(spark, lake, clock)


def measured(spark: SparkSession, lake: Lake, way: str, rows: int, changes: int, keys: Keys) -> Cost:
    """Merge the changes, and measure and check the result."""
    manifest, stop = write_changes(lake.batches, rows, changes, keys)
    plan = lake.batches.plan(stop, manifest)
    clock = _Clock(spark)
    WAYS[way](spark, lake, plan)
    return _cost(spark, lake, clock)


def _cost(spark: SparkSession, lake: Lake, clock: _Clock) -> Cost:
    wall, cpu, read = clock.taken()
    sums = "count(*), sum(id), sum(points), sum(CAST(total * 100 AS BIGINT)), count(DISTINCT status)"
    [sums_row] = spark.sql(f"SELECT {sums} FROM {lake.name(TABLE)}").collect()
    return Cost(wall, cpu, clock.peak(), read, sums_row[0], hash(tuple(int(value) for value in sums_row)))


def ours(spark: SparkSession, lake: Lake, plan: MergePlan) -> None:
    """Merge the plan as the merge job does."""
    merge(spark, lake.config, plan, lake.store, lambda _: None, batches=load_plan(lake.store, plan))


def merge_into(spark: SparkSession, lake: Lake, plan: MergePlan) -> None:
    """Merge as Iceberg's guide shows it: one MERGE INTO with merge-on-read, of changes with one row per key."""
    columns = _columns(spark, lake, plan)
    values = ", ".join(f"s.{name}" for name in columns)
    spark.sql(
        f"MERGE INTO {lake.name(TABLE)} AS t USING changes AS s ON t.id = s.id"
        " WHEN MATCHED AND s._op = 'd' THEN DELETE"
        f" WHEN MATCHED THEN UPDATE SET {', '.join(f't.{name} = s.{name}' for name in columns)}"
        f" WHEN NOT MATCHED AND s._op <> 'd' THEN INSERT ({', '.join(columns)}) VALUES ({values})"
    )


def rewrite(spark: SparkSession, lake: Lake, plan: MergePlan) -> None:
    """Write the whole table again."""
    columns = ", ".join(_columns(spark, lake, plan))
    spark.sql(
        f"INSERT OVERWRITE {lake.name(TABLE)} SELECT {columns} FROM {lake.name(TABLE)} AS t"
        f" WHERE NOT EXISTS (SELECT 1 FROM changes AS s WHERE s.id = t.id)"
        f" UNION ALL SELECT {columns} FROM changes WHERE _op <> 'd'"
    )


WAYS: dict[str, Callable[[SparkSession, Lake, MergePlan], None]] = {
    "ours": ours,
    "merge-into": merge_into,
    "rewrite": rewrite,
}


LOADS = ("load", "insert")
"""Ways to bring the first rows of a table."""

PAIR = ("ours", "merge-into")
"""Ways that are compared warm."""


def _columns(spark: SparkSession, lake: Lake, plan: MergePlan) -> list[str]:
    """Make the changes a view and return the table's columns."""
    batches = load_plan(lake.store, plan)
    files = [lake.store.url(layout.beside(batch.key, file.path)) for batch in batches for file in batch.manifest.files]
    spark.read.parquet(*files).createOrReplaceTempView("changes")
    return [column.name for column in lake.state(TABLE).columns]


def _set_back(spark: SparkSession, lake: Lake, base: Path) -> None:
    """Roll the table back to its first snapshot."""
    catalog = lake.name(TABLE).split(".")[0]
    spark.sql(f"CALL {catalog}.system.set_current_snapshot(table => '{TABLE}', snapshot_id => {base.read_text()})")


class _Clock:
    def __init__(self, spark: SparkSession) -> None:
        jvm: Any = spark._jvm
        self._pid = jvm.java.lang.ProcessHandle.current().pid()
        self._began = self._now()

    def taken(self) -> tuple[float, float, float]:
        wall, cpu, read = (now - before for now, before in zip(self._now(), self._began, strict=True))
        return round(wall, 3), round(cpu, 3), round(read / 1e6, 1)

    def peak(self) -> int:
        """Return MiB."""
        return int(self._line("status", "VmHWM").split()[0]) // 1024

    def _now(self) -> tuple[float, float, float]:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        user, system = Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        cpu = (int(user) + int(system)) / os.sysconf("SC_CLK_TCK") + usage.ru_utime + usage.ru_stime
        return time.perf_counter(), cpu, float(self._line("io", "rchar"))

    def _line(self, file: str, name: str) -> str:
        lines = Path(f"/proc/{self._pid}/{file}").read_text().splitlines()
        return next(line for line in lines if line.startswith(f"{name}:")).partition(":")[2].strip()


if __name__ == "__main__":
    sys.exit(main())
