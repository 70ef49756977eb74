"""What is measured of one state of the lake table, by the client of this project and by other readers."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pyarrow.parquet as pq

from cdc_lib.read import TableReader
from tests.bench.reading.readers import Client, LakeReader, Pairs
from tests.bench.report import Figure, NotMeasured, spread

GETS, MANY, RANGE, REPEATS, VERSIONS = 200, 1_000, 10_000, 5, 100
PEER_READS = {"MySQL": (GETS, 5), "Spark SQL": (10, 3), "PyIceberg": (3, 1)}
"""Gets, and other reads of each kind, of other readers; of those that are not named 10 and 3."""
THREADS, THREAD_SECONDS = 4, 3
_FEW = ["id", "status"]


@dataclass
class Results:
    """Figures, and readers that were not measured."""

    figures: list[Figure] = field(default_factory=list)
    missing: list[NotMeasured] = field(default_factory=list)


class State:
    """One state of the table.

    Args:
        name: of the state.
        open_table: opens it with the client.
        rows: of the table; every even key has a row or had one.
        keys: twice as many as there are gets.
        goals: whether the project's goals hold for it.
    """

    def __init__(
        self, name: str, open_table: Callable[[], TableReader], rows: int, keys: Sequence[int], *, goals: bool = True
    ) -> None:
        self.name = name
        self.keys = keys[GETS:]
        self._warming = keys[:GETS]
        self._open = open_table
        self._goals = goals
        chosen = random.Random(4)
        self.asked = [[2 * number for number in chosen.sample(range(rows), MANY)] for _ in range(REPEATS)]
        self.start = 2 * (rows // 3)
        self.stop = 0
        self.medians: dict[str, float] = {}
        self._client: Client | None = None

    @property
    def client(self) -> Client:
        """The client, with keys in memory."""
        assert self._client is not None
        return self._client

    def figures(self) -> list[Figure]:
        """Read with the client."""
        opened = times(lambda _: self._open(), range(REPEATS))
        table = self._open()
        client = self._client = Client(table)
        first = times(table.get, self.keys[:1])
        first_many = times(table.multi_get, self.asked[:1])
        times(table.get, self._warming)
        last = list(table.scan(self.start, limit=RANGE, columns=["id"]))[-1]
        self.stop = last.column("id")[-1].as_py() + 1
        gets = [client.get(key)[0] for key in self.keys]
        few = times(lambda key: table.get(key, _FEW), self.keys)
        miss = times(table.get, [key + 1 for key in self.keys])
        many = [client.many(asked)[0] for asked in self.asked]
        many_few = times(lambda asked: table.multi_get(asked, _FEW), self.asked)
        scans = [client.scan(self.start, self.stop)[0] for _ in range(REPEATS)]
        self.medians = {"get": _quantile(gets, 0.5), "many": _quantile(many, 0.5), "scan": _quantile(scans, 0.5)}
        return [
            self._figure("opening it for the first time", opened[:1]),
            self._figure("opening it, its manifests read once", opened[1:]),
            self._figure("the first get", first),
            self._figure("a get, p50", gets, 5),
            self._figure("a get, p99", gets, 30, part=0.99),
            self._figure("a get of two columns, p50", few),
            self._figure("a get of a key without a row, p50", miss, 3),
            self._figure(f"the first {MANY:,} random keys at once", first_many),
            self._figure(f"{MANY:,} random keys at once", many, 500),
            self._figure(f"{MANY:,} random keys at once, two columns", many_few),
            self._figure(f"{RANGE:,} rows in key order", scans, 100),
            self._throughput(table, 1),
            self._throughput(table, THREADS),
            self._figure("floor: Arrow reads one row group, all columns", times(_row_group(table), range(REPEATS))),
        ]

    def _figure(self, what: str, took: list[float], goal: float | None = None, part: float = 0.5) -> Figure:
        return figure(f"{self.name}: {what}", took, goal if self._goals else None, part=part)

    def _throughput(self, table: TableReader, threads: int) -> Figure:
        chosen = random.Random(5)
        keys = [chosen.choice(self.keys) for _ in range(GETS)]
        began = time.perf_counter()

        def reads(_: int) -> int:
            count = 0
            while time.perf_counter() < began + THREAD_SECONDS:
                table.get(keys[count % GETS])
                count += 1
            return count

        with ThreadPoolExecutor(threads) as pool:
            count = sum(pool.map(reads, range(threads)))
        rate = round(count / (time.perf_counter() - began))
        return Figure(f"{self.name}: gets a second of {threads} threads", rate, "gets/s")


def measure_peers(peer: LakeReader, state: State, results: Results) -> None:
    """Read with another reader what the client read; reads with other rows are counted as wrong."""
    gets, others = PEER_READS.get(peer.name, (10, 3))
    reads = {
        "get": ("a get, p50", [(key,) for key in state.keys[:gets]]),
        "many": (f"{MANY:,} random keys at once", [(asked,) for asked in state.asked[:others]]),
        "scan": (f"{RANGE:,} rows in key order", [(state.start, state.stop)] * others),
    }
    peer.get(state.keys[0])
    wrong = count = 0
    for kind, (what, arguments) in reads.items():
        took = []
        for argument in arguments:
            ms, pairs = getattr(peer, kind)(*argument)
            took.append(ms)
            count += 1
            wrong += not _equal(peer, pairs, getattr(state.client, kind)(*argument)[1])
        value = _quantile(took, 0.5)
        ratio = round(value / state.medians[kind], 1)
        one = Figure(
            f"{state.name}: {what}, {peer.name}",
            round(value, 2),
            "ms",
            "cdc_lib.read",
            ratio,
            None,
            None,
            spread(took, 2),
        )
        results.figures.append(one)
    results.figures.append(Figure(f"{state.name}: wrong reads of {peer.name}, of {count}", wrong, "reads"))


def _equal(peer: LakeReader, found: Pairs, expected: Pairs) -> bool:
    """Whether rows are those of the client; the source's table was not changed, and has other values."""
    return len(found) > 0 if peer.name == "MySQL" else sorted(found) == sorted(expected)


def _row_group(table: TableReader) -> Callable[[Any], Any]:
    """Return a function that reads one row group of the largest data file."""
    largest = max(table.pinned.files, key=lambda one: one.rows)
    file = pq.ParquetFile(largest.path.removeprefix("file://").removeprefix("file:"))
    return lambda _: file.read_row_group(file.num_row_groups // 2, use_threads=False)


def times(read: Callable[[Any], Any], arguments: Iterable[Any]) -> list[float]:
    """Return the milliseconds of each call."""
    took = []
    for argument in arguments:
        began = time.perf_counter()
        read(argument)
        took.append((time.perf_counter() - began) * 1_000)
    return took


def figure(name: str, took: list[float], goal: float | None = None, *, part: float = 0.5, unit: str = "ms") -> Figure:
    """Return a quantile of several reads.

    Args:
        name: of the figure.
        took: of each read.
        goal: the most that the project wants.
        part: which quantile.
        unit: of the values.
    """
    value = _quantile(took, part)
    met = None if goal is None else value <= goal
    return Figure(name, round(value, 2), unit, None, None, goal, met, spread(took, 2))


def _quantile(took: list[float], part: float) -> float:
    ordered = sorted(took)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))]
