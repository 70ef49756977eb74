"""Merges on a Spark server that is warm, beside the same merge in a Java process of its own; and the server's memory over many merges."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from tests.bench.lake.memory import cpu_of, memory_of
from tests.bench.lake.rounds import CHANGES, Rounds
from tests.bench.report import Figure, spread
from tests.harness.servers import SqlServer
from tests.harness.spark_server import RunningSparkServer

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
        rounds = Rounds(server, folder, spark, tables)
        name = f"{_count(tables, 'table')} with {CHANGES} changes each"
        own = [rounds.cold() for _ in range(3)]
        cold = [used.wall for used in own]
        yield Figure(f"{name}, a Java process of its own: wall", median(cold), "s", spread=spread(cold))
        cpu = [used.cpu for used in own]
        yield Figure(f"{name}, a Java process of its own: CPU", median(cpu), "s", spread=spread(cpu))
        for _ in range(WARM_UP):
            rounds.warm()
        yield from memory_of(spark, "", f"after {_count(0, 'merge')}")
        warm, cpu = list[float](), list[float]()
        until = time.monotonic() + minutes * 60 if minutes is not None else float("inf")
        while len(warm) < merges and time.monotonic() < until:
            before = cpu_of(spark)
            warm.append(rounds.warm())
            cpu.append(cpu_of(spark) - before)
            if len(warm) % STEP == 0:
                yield from memory_of(spark, "", f"after {_count(len(warm), 'merge')}")
        if len(warm) % STEP:
            yield from memory_of(spark, "", f"after {_count(len(warm), 'merge')}")
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


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
