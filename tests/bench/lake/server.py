"""Merges on a Spark server that is warm, beside the same merge in a Java process of its own; and the server's memory over many merges."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from tests.bench.lake.memory import memory_of
from tests.bench.lake.plain import ServerWithPlain
from tests.bench.lake.rounds import CHANGES, Rounds, compared_with_plain
from tests.bench.report import Figure, spread
from tests.harness.servers import SqlServer

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

IN_TURN = 10
"""Merges of a new source and of the old one, in turn, when all other merges are done."""

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
    with ServerWithPlain(folder) as spark:
        os.environ["CDC_PASSWORD"] = server.cdc_password
        timed = Rounds(server, folder, spark, tables)
        yield from _times(timed, min(TIMED, merges))
        few = Rounds(server, folder, spark, min(FEW, tables), "served_few")
        yield from _memory_curve(few, merges, minutes)
        yield from _old_and_new(few, Rounds(server, folder, spark, few.tables, "served_new"), min(IN_TURN, merges))
        yield from compared_with_plain(timed, spark, min(IN_TURN, merges))


def _times(rounds: Rounds, merges: int) -> Iterator[Figure]:
    """Yield the seconds of a merge in both ways."""
    name = f"{_count(rounds.tables, 'table')} with {CHANGES} changes each"
    own = [rounds.cold() for _ in range(3)]
    cold, cpu = [used.wall for used in own], [used.cpu for used in own]
    yield Figure(f"{name}, a Java process of its own: wall", median(cold), "s", spread=spread(cold))
    yield Figure(f"{name}, a Java process of its own: CPU", median(cpu), "s", spread=spread(cpu))
    for _ in range(WARM_UP):
        rounds.warm()
    served = [rounds.warm() for _ in range(merges)]
    warm, cpu = [wall for wall, _ in served], [of_cpu for _, of_cpu in served]
    wall = median(warm)
    compared = {"compared_to": "a Java process of its own", "ratio": round(wall / median(cold), 3)}
    goal = {"goal": GOAL, "met": wall <= GOAL} if rounds.tables == SMALL else {}
    yield Figure(f"{name}, on a Spark server: wall", wall, "s", spread=spread(warm), **compared, **goal)  # type: ignore[arg-type]
    yield Figure(f"{name}, on a Spark server: CPU of the server", round(median(cpu), 3), "s", spread=spread(cpu))
    idle = rounds.idle()
    yield Figure("nothing to merge, on a Spark server: wall", idle, "s", goal=IDLE_GOAL, met=idle <= IDLE_GOAL)


def _memory_curve(rounds: Rounds, merges: int, minutes: float | None) -> Iterator[Figure]:
    """Yield the server's memory between merges of few tables, and the CPU seconds of the first and the last of them."""
    yield from memory_of(rounds.spark, "", f"after {_count(0, 'merge')}")
    cpu = list[float]()
    until = time.monotonic() + minutes * 60 if minutes is not None else float("inf")
    while len(cpu) < merges and time.monotonic() < until:
        cpu.append(rounds.warm()[1])
        if len(cpu) % STEP == 0:
            yield from memory_of(rounds.spark, "", f"after {_count(len(cpu), 'merge')}")
    if len(cpu) % STEP:
        yield from memory_of(rounds.spark, "", f"after {_count(len(cpu), 'merge')}")
    tenth = max(1, len(cpu) // 10)
    for what, part in (("first", slice(None, tenth)), ("last", slice(-tenth, None))):
        name = f"{_count(rounds.tables, 'table')}, {what} tenth of {_count(len(cpu), 'merge')}: CPU of the server"
        yield Figure(name, round(median(cpu[part]), 3), "s")


def _old_and_new(old: Rounds, new: Rounds, merges: int) -> Iterator[Figure]:
    """Yield the CPU seconds of merges with and without a history, on the same server: which of both ages."""
    new.warm()  # makes the tables
    before, pairs = old.number, [(old.warm()[1], new.warm()[1]) for _ in range(merges)]
    with_history, without = (median(cpu) for cpu in zip(*pairs, strict=True))
    name = f"{_count(old.tables, 'table')} on a server after {_count(before, 'merge')}"
    yield Figure(f"{name}, new tables: CPU of the server", round(without, 3), "s")
    compared = {"compared_to": "new tables", "ratio": round(with_history / without, 3)}
    yield Figure(
        f"{name}, tables with this history, in turn: CPU of the server", round(with_history, 3), "s", **compared
    )  # type: ignore[arg-type]


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
