"""Lake tables of one format, as the contract suite of :class:`cdc_lib.ports.MergeTarget` writes and reads them."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from threading import Event
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from cdc_lib.config.source import SourceConfig
from cdc_lib.model.lake_table import LakeName, LakeTable, Marker
from cdc_lib.model.lexer import quoted
from cdc_lib.model.manifest import ABSENT, BINLOG, CELL_ABSENT, CELL_HERE, EPOCH, OFFSET, OP, ROW, TS
from cdc_lib.model.position import Point
from cdc_lib.model.table_commit import Filled, Superseded, TableCommit
from cdc_lib.model.table_mode import VALID_FROM
from cdc_lib.model.table_name import TableName
from cdc_lib.ports import LakeRows, MergeChanges, RereadRows
from spark_jobs.lake_format import LakeFormat
from spark_jobs.runtime.session import table_session
from spark_jobs.sql import full_name
from tests.harness.lake.batches import START_TIME, Row

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

    def changes(self, rows: Sequence[Row], fields: Sequence[pa.Field]) -> pa.Table:
        """Return changes in the columns of the table, with ``_absent``."""
        schema = pa.schema([pa.field(OP, pa.string()), *(field for field in fields if field.name != OP)])
        cells = [pa.array([_value(row, field.name) for row in rows], field.type) for field in schema]
        marks = pa.array([_marks(row, schema.names[1:]) for row in rows], pa.string())
        return pa.table(cells, schema=schema).append_column(pa.field(ABSENT, pa.string()), marks)

    def write(
        self,
        *rows: Row,
        to: int | None = None,
        guard: bool = True,
        snapshot_to_come: bool = False,
        supersedes: Sequence[Superseded] = (),
        fills: Sequence[Filled] = (),
        reselect: RereadRows | None = None,
        through: Callable[[pa.Table], pa.Table] = lambda changes: changes,
    ) -> int:
        """Apply changes; the marker is right after the last one, or at an offset."""
        commit = self.commit(rows, to, supersedes, fills)

        def read(lake: LakeRows) -> Iterator[pa.Table]:
            yield through(self.changes(rows, lake.fields))

        return self.target.apply(MergeChanges(read, guard, snapshot_to_come, reselect), commit)

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


def _marks(row: Row, names: Sequence[str]) -> str | None:
    return "".join(CELL_ABSENT if name in row.absent else CELL_HERE for name in names) if row.absent else None


class HeldWrite:
    """A write that waits while its changes are read, until the test has looked at the table."""

    def __init__(self) -> None:
        self._reached, self._released = Event(), Event()

    def through(self, changes: pa.Table) -> pa.Table:
        """Return changes when the test has looked at the table."""
        self._reached.set()
        assert self._released.wait(PATIENCE)
        return changes

    @contextmanager
    def begun(self, write: Callable[[], int]) -> Iterator[Future[int]]:
        """Run the block while a write waits at its rows; the write continues when the block ends."""
        with ThreadPoolExecutor(1) as pool:
            future = pool.submit(write)
            try:
                assert self._reached.wait(PATIENCE), "the write never read its changes"
                yield future
            finally:
                self._released.set()
