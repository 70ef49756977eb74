"""Lake tables of one format, as the contract suite of :class:`cdc_lib.ports.MergeTarget` writes and reads them."""

from __future__ import annotations

import os
import secrets
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import udf
from pyspark.sql.types import IntegerType

from cdc_lib.config.source import SourceConfig
from cdc_lib.model.lake_table import LakeColumn, LakeName, LakeTable, Marker
from cdc_lib.model.lexer import quoted
from cdc_lib.model.manifest import ABSENT, BINLOG, CELL_ABSENT, CELL_HERE, EPOCH, OFFSET, OP, ROW, TS
from cdc_lib.model.position import Point
from cdc_lib.model.table_commit import Changes, Filled, Superseded, TableCommit
from cdc_lib.model.table_mode import VALID_FROM
from cdc_lib.model.table_name import TableName
from cdc_lib.ports import Reselect
from spark_jobs.lake_format import LakeFormat
from spark_jobs.runtime.session import table_session
from spark_jobs.sql import full_name
from tests.harness.lake.batches import START_TIME, Row

_TYPES = {
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "decimal(12,2)": pa.decimal128(12, 2),
    "string": pa.string(),
    "timestamp": pa.timestamp("us", "UTC"),
    "boolean": pa.bool_(),
}
PATIENCE = 60.0
"""Timeout of a held write, and of the test that waits for it, in seconds."""


def marker_at(offset: int) -> Marker:
    """Return the marker of a table that is merged up to an offset of the first binlog file."""
    return Marker(Point(1, 1, offset), source_uuid="life")


@dataclass(frozen=True)
class FormatTable:
    """A lake table of a format, which need not exist yet.

    Args:
        spark: the reader's session; writers have sessions of their own.
        config: the source.
        lake_format: the format.
        name: the lake table.
        tables: the source tables, and whether a route maps them.
        source: name of the source.
    """

    spark: SparkSession
    config: SourceConfig
    lake_format: LakeFormat
    name: LakeName
    tables: Mapping[TableName, bool]
    source: str = "shop"

    @classmethod
    def new(
        cls,
        spark: SparkSession,
        config: SourceConfig,
        lake_format: LakeFormat,
        called: str = "orders",
        database: str = "shop",
    ) -> FormatTable:
        """Return a table in a new namespace."""
        name = LakeName(config.lake.catalog, (f"{database}_{secrets.token_hex(4)}",), called)
        lake_format.ensure_namespaces(spark, [name])
        return cls(spark, config, lake_format, name, {TableName(database, called): False})

    def writer(self) -> Writer:
        """Return a job that writes the table."""
        return Writer(self)

    def state(self) -> LakeTable:
        """Load the table's current state in a new session."""
        state = self.writer().target.load()
        assert state is not None
        return state

    def rows(self, *columns: str, where: str = "true") -> list[tuple[Any, ...]]:
        """Return columns of all rows that a new reader sees, sorted."""
        statement = f"SELECT {', '.join(map(quoted, columns))} FROM {full_name(self.name)} WHERE {where}"
        return sorted((tuple(row) for row in self.spark.sql(statement).collect()), key=repr)

    def everything(self) -> list[tuple[Any, ...]]:
        """Return all columns of all rows."""
        return self.rows(*(column.name for column in self.state().columns))

    def delete_foreign(self, where: str) -> None:
        """Delete rows as a foreign writer does, without a marker."""
        self.spark.sql(f"DELETE FROM {full_name(self.name)} WHERE {where}")


class Writer:
    """A job that writes a table: its own session and target; the target has loaded the table."""

    def __init__(self, table: FormatTable) -> None:
        self.table = table
        self.session = table_session(table.spark, table.config)
        self.target = table.lake_format.table(self.session, table.name, table.source, table.tables)
        self.loaded = self.target.load()

    def frame(self, rows: Sequence[Row]) -> DataFrame:
        """Return changes with the columns of the table."""
        state = self.target.load()
        assert state is not None
        columns = [LakeColumn(OP, "string"), *(column for column in state.columns if column.name != OP)]
        cells = [pa.array([_value(row, one.name) for row in rows], _TYPES[one.type]) for one in columns]
        names = [column.name for column in columns]
        if any(row.absent for row in rows):
            names.append(ABSENT)
            cells.append(pa.array([_marks(row, state.columns) for row in rows], pa.string()))
        # As Arrow: rows of Python would need a worker process of Python.
        return self.session.createDataFrame(pa.table(cells, names))

    def upsert(
        self,
        *rows: Row,
        to: int | None = None,
        guard: bool = True,
        at_most: int | None = None,
        snapshot_to_come: bool = False,
        supersedes: Sequence[Superseded] = (),
        fills: Sequence[Filled] = (),
        reselect: Reselect[DataFrame] | None = None,
        through: Callable[[DataFrame], DataFrame] = lambda frame: frame,
    ) -> int:
        """Apply changes; the marker is right after the last one, or at an offset."""
        frame = through(self.frame(rows))
        changes = Changes(frame, guard, len(rows) if at_most is None else at_most, snapshot_to_come)
        return self.target.upsert(changes, self.commit(rows, to, supersedes, fills), reselect)

    def append(
        self,
        *rows: Row,
        to: int | None = None,
        supersedes: Sequence[Superseded] = (),
        fills: Sequence[Filled] = (),
        through: Callable[[DataFrame], DataFrame] = lambda frame: frame,
    ) -> int:
        """Add changes as rows; the marker is right after the last one, or at an offset."""
        return self.target.append(through(self.frame(rows)), self.commit(rows, to, supersedes, fills))

    def write(self, *rows: Row, **named: Any) -> int:
        """Write changes in the way of the table's mode."""
        state = self.target.load()
        assert state is not None
        return self.append(*rows, **named) if state.mode == "append" else self.upsert(*rows, **named)

    def commit(
        self, rows: Sequence[Row], to: int | None, supersedes: Sequence[Superseded], fills: Sequence[Filled]
    ) -> TableCommit:
        """Return the facts that the commit stores besides rows."""
        marker = marker_at(max(row.offset for row in rows) + 1 if to is None else to)
        return TableCommit(dict.fromkeys(self.table.tables, marker), supersedes, fills)


def _value(row: Row, name: str) -> Any:
    time_of = START_TIME + timedelta(seconds=row.offset)
    order = {
        OP: row.op,
        EPOCH: 1,
        BINLOG: row.file,
        OFFSET: row.offset,
        ROW: row.row,
        TS: time_of,
        VALID_FROM: time_of,
    }
    return order.get(name, row.values.get(name))


def _marks(row: Row, columns: Sequence[LakeColumn]) -> str | None:
    marks = "".join(CELL_ABSENT if column.name in row.absent else CELL_HERE for column in columns)
    return marks if row.absent else None


class HeldWrite:
    """A write that waits while its rows are computed, until the test has looked at the table.

    Args:
        folder: for the files by which the two processes signal each other.
    """

    def __init__(self, folder: Path) -> None:
        self._reached, self._released = folder / "reached", folder / "released"

    def through(self, column: str) -> Callable[[DataFrame], DataFrame]:
        """Return a function that makes a frame wait while an integer column is computed."""
        reached, released = str(self._reached), str(self._released)

        def wait(value: int | None) -> int | None:
            Path(reached).touch()
            until = time.monotonic() + PATIENCE
            while not os.path.exists(released) and time.monotonic() < until:  # noqa: PTH110 - in a worker, often
                time.sleep(0.02)
            return value

        held = udf(wait, IntegerType(), useArrow=False)  # else Spark infers it from the type hints

        def waiting(frame: DataFrame) -> DataFrame:
            frame.sparkSession.sparkContext.pythonExec = sys.executable  # the worker needs what these tests have
            # One task waits; the others are left to the test.
            return frame.coalesce(1).withColumn(column, held(quoted(column)))

        return waiting

    @contextmanager
    def begun(self, write: Callable[[], int]) -> Iterator[Future[int]]:
        """Run the block while a write waits at its rows; the write continues when the block ends."""
        with ThreadPoolExecutor(1) as pool:
            future = pool.submit(write)
            try:
                self._wait_for(future)
                yield future
            finally:
                self._released.touch()

    def _wait_for(self, future: Future[int]) -> None:
        until = time.monotonic() + PATIENCE
        while not self._reached.exists():
            assert not future.done(), f"the write ended before its rows were computed: {future.exception()}"
            assert time.monotonic() < until, "the write never computed its rows"
            time.sleep(0.02)
