"""Finding positions in a hundred binlog files, and moving a cursor in each kind of store: ``./dev bench positions``."""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest import mock

from rich.console import Console
from rich.table import Table

from cdc_lib.config import Credentials, ServerConfig
from cdc_lib.model.binlog_checkpoint import BinlogCheckpoint
from cdc_lib.model.cursor import Cursor
from cdc_lib.model.gtid import GtidSet
from cdc_lib.model.position import FIRST_EVENT_OFFSET, Position
from cdc_lib.model.server_identity import ServerIdentity
from cdc_lib.model.subscription import Lease
from cdc_lib.model.window import Window
from cdc_lib.mysql.binlog_stream import ServerStream, binlog_dump
from cdc_lib.mysql.connection import connect
from cdc_lib.mysql.server_facts import ServerFacts, read_facts
from cdc_lib.plan import locate
from cdc_lib.plan.locate import BinlogSearch
from cdc_lib.ports import CursorStore
from cdc_lib.store.cursors import ObjectCursorStore
from cdc_lib.store.objects.local import LocalStore
from cdc_lib.store.objects.s3 import S3Store
from cdc_lib.store.periodic import PeriodicCursorStore
from tests.bench.processes import ROOT, copy_raw, job_of, raw_program
from tests.bench.report import RAW, Figure, save, spread
from tests.bench.workloads import DATABASE, WORKLOADS, binlog_range, prepare
from tests.harness.servers import MySqlServer, S3Server
from tests.harness.store.memory_cursors import MemoryCursorStore
from tests.harness.store.stores import options as s3_options

RUNS = 3
"""Runs of each search and of the raw copy; the fastest counts."""
_WARM_ACKS = 20


@dataclass(frozen=True, slots=True)
class SearchRun:
    """One search and its cost.

    Args:
        what: title of the search.
        heads: files whose first events were read.
        walks: walks over events, headers only.
        bytes: received in both, the protocol's own included.
        wall: wall seconds, with connections.
        at: the position that was found.
        runs: wall seconds of every run.
    """

    what: str
    heads: int
    walks: int
    bytes: int
    wall: float
    at: Position
    runs: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Binlog:
    """The binlog that is searched.

    Args:
        facts: of the server after all files were written.
        files: number of binlog files.
        large: start and end of the large file.
        half_way: GTIDs that were executed when half of the files were written.
        after: a time between the large file's last commit and the next file.
        last: a time before the newest file's only commit.
    """

    facts: ServerFacts
    files: int
    large: tuple[Position, Position]
    half_way: str
    after: datetime
    last: datetime


def main() -> int:
    """Write the files, search them, move cursors, print and save."""
    parser = argparse.ArgumentParser(prog="./dev bench positions", description=__doc__)
    parser.add_argument("--files", type=int, default=100, help="binlog files (100)")
    parser.add_argument("--rows", type=int, default=85_000, help="transactions of the large one (85000: some 50 MB)")
    parser.add_argument("--acks", type=int, default=500, help="acks in each home (500)")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "bench" / "positions.json", help="the file")
    options = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 120)
    load = round(os.getloadavg()[0], 2)
    with MySqlServer(settings={"max-binlog-size": "1G", "tls-version": ""}) as server:
        searches, raw, size = _searches(server, options.files, options.rows)
        version = f"{server.flavor} {server.version}"
    acks = _acks(options.acks)
    _show(searches, raw, size, acks, console)
    about = {
        "files": options.files,
        "rows": options.rows,
        "acks": options.acks,
        "load_before": load,
        "runs": f"{RUNS} of each search and of the raw copy, the fastest counts; of the acks all count",
        "warm_up": f"one search, and {_WARM_ACKS} acks in each home, are not counted",
    }
    save([*_search_figures(searches, raw, size), *_ack_figures(acks)], version, about, options.output)
    return 0


# --- searching


def _searches(server: MySqlServer, files: int, rows: int) -> tuple[list[SearchRun], float, int]:
    """Return the searches, the seconds of a raw copy of the large file, and its bytes."""
    config = ServerConfig(host=server.host, port=server.port, user=server.cdc_user, password_env="UNUSED")
    credentials = Credentials(server.cdc_user, server.cdc_password)
    written = _write(server, files, rows, config, credentials)
    start, stop = written.large
    flavor = written.facts.identity.flavor
    searches: list[tuple[str, Callable[[BinlogSearch], BinlogCheckpoint]]] = [
        ("position, end of the large file", lambda seeker: seeker.at(stop)),
        ("GTIDs, half of the files", lambda seeker: seeker.by_gtid(GtidSet.parse(flavor, written.half_way))),
        ("time, after the large file", lambda seeker: seeker.by_time(written.after)),
        ("time, newest file", lambda seeker: seeker.by_time(written.last)),
    ]
    _search(written, config, credentials, "warm-up", lambda seeker: seeker.first())
    runs = [_search(written, config, credentials, what, how) for what, how in searches]
    job = job_of(server, start, stop)
    copies = [copy_raw(raw_program(job.flavor), job) for _ in range(RUNS)]
    return runs, min(copy.wall for copy in copies), stop.offset


def _write(server: MySqlServer, files: int, rows: int, config: ServerConfig, credentials: Credentials) -> Binlog:
    """Write half of the files, the large one, and the other half; the newest has one transaction, some seconds later."""
    prepare(server)
    workload = WORKLOADS[1]
    for statement in workload.tables:
        server.execute(statement, database=DATABASE)
    workload.load(server, rows)
    server.execute("CREATE TABLE small (id INT PRIMARY KEY AUTO_INCREMENT, at DATETIME(6))", database=DATABASE)
    large_at = files // 2
    _small(server, large_at - _files(server))
    half_way = str(server.execute("SELECT @@GLOBAL.gtid_executed")[0][0]).replace("\n", "")
    large = binlog_range(server, lambda: workload.run(server, rows))
    after = _later(server)
    _small(server, files - 1 - _files(server))
    last = _later(server)
    _small(server, 1)
    connection = connect(config, credentials)
    try:
        facts = read_facts(connection, config)
    finally:
        connection.close()
    return Binlog(facts, len(facts.files), large, half_way, after, last)


def _small(server: MySqlServer, files: int) -> None:
    for _ in range(files):
        server.execute("FLUSH BINARY LOGS")
        server.execute("INSERT INTO small (at) VALUES (NOW(6))", database=DATABASE)


def _files(server: MySqlServer) -> int:
    return len(server.execute("SHOW BINARY LOGS"))


def _later(server: MySqlServer) -> datetime:
    """Return a whole second between the previous and the next events; the times of file heads have no fractions."""
    time.sleep(2.1)
    at = server.execute("SELECT UNIX_TIMESTAMP()")[0][0]
    time.sleep(1.1)
    return datetime.fromtimestamp(int(at), UTC)


def _search(
    written: Binlog,
    config: ServerConfig,
    credentials: Credentials,
    what: str,
    how: Callable[[BinlogSearch], BinlogCheckpoint],
) -> SearchRun:
    """Search several times without a cache, and return the fastest run."""
    runs = []
    for _ in range(RUNS):
        dumps: Counter[str] = Counter()
        with mock.patch.object(locate, "binlog_dump", _counted(dumps)):
            began = time.perf_counter()
            place = how(BinlogSearch("bench", config, credentials, written.facts))
            wall = time.perf_counter() - began
        runs.append(SearchRun(what, dumps["header_of"], dumps["_scan"], dumps["bytes"], wall, place.position))
    return replace(min(runs, key=lambda run: run.wall), runs=tuple(run.wall for run in runs))


def _counted(dumps: Counter[str]) -> Callable[..., ServerStream]:
    """Return a function that opens streams, and counts them by their purpose and their bytes."""

    def opened(*arguments: Any) -> ServerStream:
        dumps[sys._getframe(1).f_code.co_name] += 1
        stream = binlog_dump(*arguments)
        receive = stream.read_into

        def read_into(view: memoryview) -> int:
            got = receive(view)
            dumps["bytes"] += got
            return got

        stream.read_into = read_into  # type: ignore[method-assign]
        return stream

    return opened


# --- acknowledging


def _acks(count: int) -> dict[str, list[float]]:
    """Return the seconds of each ack, by home."""
    scratch = ROOT / "build" / "bench"
    scratch.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=scratch) as folder, S3Server() as server:
        s3 = S3Store(server.make_bucket("bench"), "cursors", s3_options(server))
        took = {
            "memory": _moved(MemoryCursorStore(), count),
            "local folder": _moved(ObjectCursorStore(LocalStore(Path(folder) / "store")), count),
            "S3 server": _moved(ObjectCursorStore(s3), count),
        }
        with PeriodicCursorStore(ObjectCursorStore(S3Store(s3.bucket, "periodic", s3_options(server)))) as periodic:
            took["periodic, in front of S3"] = _moved(periodic, count)
    return took


def _moved(cursors: CursorStore, count: int) -> list[float]:
    at = datetime.now(UTC)
    lease = Lease("bench", "bench", datetime(2099, 1, 1, tzinfo=UTC))
    start = Position("binlog.000001", FIRST_EVENT_OFFSET)
    cursor = cursors.swap(None, Cursor("bench", "audit", 0, 1, ServerIdentity("mysql", "uuid", 1), start, lease=lease))
    seconds = []
    for _ in range(_WARM_ACKS + count):
        window = Window("bench", 1, cursor.position, replace(cursor.position, offset=cursor.position.offset + 1000))
        began = time.perf_counter()
        cursor = cursors.swap(cursor, cursor.acked(window, at=at, event_time=at, by="bench"))
        seconds.append(time.perf_counter() - began)
    return seconds[_WARM_ACKS:]


def _percentiles(seconds: list[float]) -> tuple[float, float]:
    cuts = statistics.quantiles(seconds, n=100)
    return cuts[49] * 1e3, cuts[98] * 1e3


# --- output


def _search_figures(searches: list[SearchRun], raw: float, size: int) -> list[Figure]:
    figures = []
    for search in searches:
        figures += [
            Figure(f"{search.what}: file heads read", search.heads, "files"),
            Figure(f"{search.what}: bytes scanned", round(search.bytes / 1e6, 2), "MB"),
            Figure(f"{search.what}: wall", round(search.wall, 3), "s", spread=spread(search.runs)),
        ]
    rate, raw_rate = size / searches[0].wall / 1e6, size / raw / 1e6
    return [
        *figures,
        Figure("the large file", round(size / 1e6, 1), "MB"),
        Figure("walk over the large file", round(rate, 1), "MB/s", RAW, round(rate / raw_rate, 2)),
        Figure(f"{RAW} of the large file", round(raw_rate, 1), "MB/s"),
        Figure("speed of the walk x raw", round(rate / raw_rate, 2), "x", RAW),
    ]


def _ack_figures(acks: dict[str, list[float]]) -> list[Figure]:
    figures = []
    for home, seconds in acks.items():
        p50, p99 = _percentiles(seconds)
        figures += [
            Figure(f"ack, {home}: p50", round(p50, 3), "ms"),
            Figure(f"ack, {home}: p99", round(p99, 3), "ms"),
        ]
    return figures


def _show(searches: list[SearchRun], raw: float, size: int, acks: dict[str, list[float]], console: Console) -> None:
    table = Table(title="Searches")
    for heading in ("what", "heads", "walks", "MB", "wall s", "found at"):
        table.add_column(heading, justify="left" if heading == "what" else "right", no_wrap=True)
    for search in searches:
        cells = (
            str(search.heads),
            str(search.walks),
            f"{search.bytes / 1e6:.2f}",
            f"{search.wall:.3f}",
            str(search.at),
        )
        table.add_row(search.what, *cells)
    console.print(table)
    rate, raw_rate = size / searches[0].wall / 1e6, size / raw / 1e6
    console.print(f"large file: {size / 1e6:.1f} MB, walked at {rate:.0f} MB/s, {RAW} {raw_rate:.0f} MB/s")
    table = Table(title="Acks")
    for heading in ("home", "p50 ms", "p99 ms"):
        table.add_column(heading, justify="left" if heading == "home" else "right", no_wrap=True)
    for home, seconds in acks.items():
        table.add_row(home, *(f"{value:.3f}" for value in _percentiles(seconds)))
    console.print(table)


if __name__ == "__main__":
    sys.exit(main())
