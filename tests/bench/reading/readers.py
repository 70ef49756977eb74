"""Readers of one lake table by key: the client of this project, PyIceberg, Spark SQL, DuckDB, and the source itself.

Each returns how long a read took, in milliseconds, and id and note of each row. All columns are read.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import pyarrow as pa
from pyiceberg.expressions import And, EqualTo, GreaterThanOrEqual, In, LessThan
from pyiceberg.table import Table
from pyspark.sql import SparkSession

from cdc_lib.read import TableReader
from tests.bench.usage import ROOT
from tests.harness.lake.duckdb_queries import installed
from tests.harness.servers import MySqlServer

DUCKDB = "1.4.4"
"""The version whose extensions are in the Python package index, and that was right in all comparisons so far."""

Pairs = list[tuple[int, str]]
Answer = tuple[float, Pairs]


class LakeReader(Protocol):
    """Reads rows by their keys."""

    name: str

    def get(self, key: int) -> Answer:
        """Return the row of a key."""

    def many(self, keys: Sequence[int]) -> Answer:
        """Return the rows of keys, in any order."""

    def scan(self, start: int, stop: int) -> Answer:
        """Return the rows from one key on, before another, in key order."""


def _timed(read: Callable[[], Any], pairs: Callable[[Any], Pairs]) -> Answer:
    began = time.perf_counter()
    found = read()
    return (time.perf_counter() - began) * 1_000, pairs(found)


def _of_arrow(rows: pa.Table) -> Pairs:
    return list(zip(rows.column("id").to_pylist(), rows.column("note").to_pylist(), strict=True))


class Client:
    """``cdc_lib.read``."""

    name = "cdc_lib.read"

    def __init__(self, table: TableReader) -> None:
        self._table = table

    def get(self, key: int) -> Answer:
        return _timed(lambda: self._table.get(key), lambda row: [] if row is None else [(row["id"], row["note"])])

    def many(self, keys: Sequence[int]) -> Answer:
        return _timed(lambda: self._table.multi_get(keys), lambda rows: _of_arrow(rows.filter(rows.column("_found"))))

    def scan(self, start: int, stop: int) -> Answer:
        return _timed(lambda: self._table.scan(start, stop).read_all(), _of_arrow)


class PyIceberg:
    """PyIceberg's own scan; it has no order."""

    name = "PyIceberg"

    def __init__(self, table: Table) -> None:
        self._table = table

    def get(self, key: int) -> Answer:
        return self._scan(EqualTo("id", key))

    def many(self, keys: Sequence[int]) -> Answer:
        return self._scan(In("id", keys))

    def scan(self, start: int, stop: int) -> Answer:
        return self._scan(And(GreaterThanOrEqual("id", start), LessThan("id", stop)))

    def _scan(self, condition: Any) -> Answer:
        return _timed(lambda: self._table.scan(condition).to_arrow(), _of_arrow)


class _Sql:
    """A reader that is asked in SQL."""

    def __init__(self, table: str) -> None:
        self._table = table

    def _query(self, statement: str) -> Answer:
        raise NotImplementedError

    def get(self, key: int) -> Answer:
        return self._query(f"SELECT * FROM {self._table} WHERE id = {key}")

    def many(self, keys: Sequence[int]) -> Answer:
        return self._query(f"SELECT * FROM {self._table} WHERE id IN ({', '.join(map(str, keys))})")

    def scan(self, start: int, stop: int) -> Answer:
        return self._query(f"SELECT * FROM {self._table} WHERE id >= {start} AND id < {stop} ORDER BY id")


class SparkSql(_Sql):
    """Spark SQL in a running session."""

    name = "Spark SQL"

    def __init__(self, spark: SparkSession, table: str) -> None:
        super().__init__(table)
        self._spark = spark

    def _query(self, statement: str) -> Answer:
        return _timed(lambda: self._spark.sql(statement).collect(), lambda rows: [(one.id, one.note) for one in rows])


class DuckDb(_Sql):
    """DuckDB's Iceberg extension, in a process of its own."""

    name = f"DuckDB {DUCKDB}"

    def __init__(self, process: subprocess.Popen[str], metadata_file: str) -> None:
        super().__init__(f"iceberg_scan('{metadata_file}')")
        self._process = process

    def _query(self, statement: str) -> Answer:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(statement), file=self._process.stdin, flush=True)
        took, pairs = json.loads(self._process.stdout.readline())
        return took, [(key, note) for key, note in pairs]


@contextmanager
def duckdb_on(metadata_file: str) -> Iterator[DuckDb]:
    """Start DuckDB.

    Raises:
        ExtensionMissing: it or its extensions cannot be installed here.
    """
    folder = installed(DUCKDB)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}
    command = [sys.executable, "-m", "tests.bench.reading.duckdb_process", str(folder)]
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield DuckDb(process, metadata_file)
        finally:
            process.kill()


class Source(_Sql):
    """The source's own table: SELECT by the primary key, over one connection."""

    name = "MySQL"

    def __init__(self, server: MySqlServer, rows: int) -> None:
        super().__init__("bench.orders")
        _fill(server, rows)
        self._connection = server.connect(database="bench", autocommit=True)

    def _query(self, statement: str) -> Answer:
        def read() -> Any:
            with self._connection.cursor() as cursor:
                cursor.execute(statement)
                return cursor.fetchall()

        return _timed(read, lambda rows: [(row[0], row[7]) for row in rows])


_COLUMNS = """id BIGINT PRIMARY KEY, customer INT, status VARCHAR(40), total DECIMAL(12, 2), weight DOUBLE, created DATETIME(6),
place VARCHAR(40), note VARCHAR(80), visits INT, points BIGINT, flag INT, code VARCHAR(40)"""
_VALUES = """2 * n, n & 1048575, ELT(n % 4 + 1, 'new', 'paid', 'sent', 'done'), n % 10000000 / 100, n / 7, '2026-01-01' + INTERVAL n SECOND,
CONCAT('street ', n & 65535), CONCAT('n', LEFT(SHA2(n, 256), 32)), n & 1023, n * 1000003, n & 1, HEX(n)"""
_STEP = 100_000


def _fill(server: MySqlServer, rows: int) -> None:
    """Make a table with the keys and the columns of the lake table; its values are others."""
    server.execute("CREATE DATABASE bench")
    server.execute(f"CREATE TABLE bench.orders ({_COLUMNS})")
    with server.connect(database="bench", autocommit=True) as session, session.cursor() as cursor:
        cursor.execute(f"SET cte_max_recursion_depth = {_STEP}, sql_log_bin = 0")
        for start in range(0, rows, _STEP):
            stop = min(rows, start + _STEP)
            numbers = f"SELECT {start} AS n UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < {stop}"
            cursor.execute(
                f"INSERT INTO bench.orders WITH RECURSIVE numbers (n) AS ({numbers}) SELECT {_VALUES} FROM numbers"
            )
