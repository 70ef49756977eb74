"""Batches in the form that a drain writes, made from plain rows, for tests of their readers."""

from __future__ import annotations

import hashlib
import io
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from cdc_lib.model.ddl_effect import TableStatement, TableStatementKind
from cdc_lib.model.manifest import (
    ABSENT,
    CELL_ABSENT,
    CELL_HERE,
    CELL_UNKNOWN,
    CHANGE_COLUMNS,
    DataFile,
    Manifest,
    Op,
    SnapshotChunk,
)
from cdc_lib.model.merge_plan import MergePlan
from cdc_lib.model.position import SNAPSHOT_ROW, Position
from cdc_lib.model.row_selection import RowSelection
from cdc_lib.model.schema import Column, SourceType, TableSchema
from cdc_lib.model.server_identity import ServerIdentity
from cdc_lib.model.table_name import TableName
from cdc_lib.model.window import SnapshotTask, TaskRange, Window
from cdc_lib.model.xa import Decision, Prepared
from cdc_lib.ports import ObjectStore
from cdc_lib.store import documents, layout

IDENTITY = ServerIdentity("mysql", "6f9619ff-8b86-d011-b42d-00cf4fc964ff", 1)
START_TIME = datetime(2026, 1, 1, tzinfo=UTC)

_ARROW = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp_ntz": pa.timestamp("us"),
    "timestamp": pa.timestamp("us", tz="UTC"),
}
_CHANGE_TYPES = (
    pa.string(),
    pa.int32(),
    pa.int32(),
    pa.int64(),
    pa.int32(),
    pa.timestamp("us", tz="UTC"),
    pa.string(),
)


@dataclass(frozen=True)
class Row:
    """One change.

    ``values`` has the column values, ``absent`` the names of the columns that the change lacks, ``unknown`` of those whose new value
    the binlog does not contain.
    """

    op: Op
    offset: int
    values: Mapping[str, Any]
    row: int = 0
    file: int = 1
    absent: frozenset[str] = frozenset()
    unknown: frozenset[str] = frozenset()


def table(name: str, columns: Mapping[str, SourceType], key: Sequence[str] = ("id",)) -> TableSchema:
    """Return a schema; ``name`` is ``database.table``."""
    database, plain = TableName.parse(name).pair
    return TableSchema(database, plain, tuple(Column(n, t) for n, t in columns.items()), tuple(key))


BIGINT = SourceType("int", width=8)
INT = SourceType("int", width=4)
TEXT = SourceType("string", width=255, charset="utf8mb4")


def at(offset: int, file: int = 1) -> Position:
    """Return a position."""
    return Position(f"binlog.{file:06d}", offset)


@dataclass
class BatchWriter:
    """Writes windows and chunks of one source into a store, and makes plans of them."""

    store: ObjectStore
    source: str = "shop"
    plans: int = field(default=0)

    def window(
        self,
        start: int,
        stop: int,
        rows: Mapping[TableSchema, Iterable[Row]],
        *,
        epoch: int = 1,
        file: int = 1,
        prepared: Mapping[str, tuple[int, Mapping[TableSchema, Iterable[Row]]]] | None = None,
        decided: Mapping[str, tuple[int, bool]] | None = None,
        statements: Sequence[tuple[TableStatementKind, str, int] | tuple[TableStatementKind, str, int, Any]] = (),
    ) -> str:
        """Write a window of one binlog file and return its manifest's key.

        Args:
            start: its first byte.
            stop: first byte after it.
            rows: changes of each table.
            epoch: its epoch.
            file: number of the binlog file.
            prepared: by xid, start offset and rows of an XA transaction; it is prepared ten bytes later.
            decided: by xid, offset of the decision, and whether it commits.
            statements: kind, table and offset of each, and what else a statement has.
        """
        window = Window(self.source, epoch, at(start, file), at(stop, file))
        key = layout.manifest_key(window)
        numbers: defaultdict[str, int] = defaultdict(int)
        files = []
        for schema, changes in rows.items():
            path = layout.part_path(schema.name, numbers[schema.name])
            numbers[schema.name] += 1
            files.append(self._part(key, path, schema, list(changes), epoch))
        apart = [
            self._part(key, layout.prepared_path(schema.name, number), schema, list(changes), epoch)
            for number, (_, tables) in enumerate((prepared or {}).values())
            for schema, changes in tables.items()
        ]
        schemas = [*rows, *(schema for _, tables in (prepared or {}).values() for schema in tables)]
        xa = {
            "prepared": tuple(
                Prepared(xid, at(began, file), at(began + 10, file), tuple(sorted(schema.name for schema in tables)))
                for xid, (began, tables) in (prepared or {}).items()
            ),
            "xa_decisions": tuple(
                Decision(xid, at(offset, file), START_TIME + timedelta(seconds=offset), f"gtid:{offset}", committed)
                for xid, (offset, committed) in (decided or {}).items()
            ),
            "prepared_files": tuple(apart),
            "statements": tuple(
                TableStatement(kind, TableName.parse(name), at(offset, file), *more)
                for kind, name, offset, *more in statements
            ),
        }
        self._manifest(key, epoch, files, schemas, window=window, xa=xa)
        return key

    def chunk(
        self,
        schema: TableSchema,
        low: int,
        values: Iterable[Mapping[str, Any]],
        *,
        snapshot: str = "s1",
        number: int = 0,
        last: bool = True,
        epoch: int = 1,
        file: int = 1,
        high: int | None = None,
        part: RowSelection | None = None,
        of_range: tuple[int, int] = (0, 1),
        last_key: tuple[str, ...] | None = None,
    ) -> str:
        """Write a chunk of a snapshot, read between two offsets, and return its manifest's key; without columns, of a missing table.

        ``of_range``: which range of how many.
        """
        task = SnapshotTask(self.source, epoch, snapshot, schema.database, schema.table)
        if of_range[1] > 1:
            ranges = (TaskRange(None, None),) * of_range[1]
            task = replace(task, ranges=ranges, range_number=of_range[0])
        key = layout.chunk_manifest_key(task, number)
        rows = [Row("r", low, value, SNAPSHOT_ROW, file) for value in values]
        files = [self._part(key, layout.chunk_part_path(0), schema, rows, epoch)] if rows else []
        read_to = at(low if high is None else high, file)
        chunk = SnapshotChunk(
            snapshot, schema.name, number, at(low, file), last_key, None, last, read_to, part, *of_range
        )
        self._manifest(key, epoch, files, [schema], chunk=chunk)
        return key

    def window_of(self, start: int, stop: int, schema: TableSchema, changes: pa.Table) -> str:
        """Write a window with one Arrow table of changes, and return its manifest's key."""
        window = Window(self.source, 1, at(start), at(stop))
        key = layout.manifest_key(window)
        self._manifest(
            key, 1, [self._file(key, layout.part_path(schema.name, 0), schema, changes)], [schema], window=window
        )
        return key

    def plan(self, stop: int, *keys: str, epoch: int = 1, file: int = 1) -> MergePlan:
        """Return a plan over manifests, with a new merge id."""
        self.plans += 1
        return MergePlan(self.source, epoch, f"merge-{self.plans:06d}", at(4), at(stop, file), keys)

    def positioned(self, stop: int, *keys: str, epoch: int = 1, file: int = 1) -> MergePlan:
        """Return a plan whose id starts with its position, as real ids do: old cuts are found by it, and removed."""
        plan = self.plan(stop, *keys, epoch=epoch, file=file)
        return replace(plan, merge_id=f"{epoch:06d}-{plan.stop.sortable}-{self.plans:06d}")

    def again(self, plan: MergePlan) -> MergePlan:
        """Return the same work under another merge id."""
        self.plans += 1
        return replace(plan, merge_id=f"merge-{self.plans:06d}")

    def _part(self, manifest: str, path: str, schema: TableSchema, rows: list[Row], epoch: int) -> DataFile:
        partial = sum(bool(row.absent | row.unknown) for row in rows)
        return self._file(manifest, path, schema, _arrow(schema, rows, epoch), partial)

    def _file(self, manifest: str, path: str, schema: TableSchema, changes: pa.Table, partial: int = 0) -> DataFile:
        sink = io.BytesIO()
        pq.write_table(changes, sink, row_group_size=131_072)  # as a drain
        data = sink.getvalue()
        self.store.put(layout.beside(manifest, path), data)
        digest = hashlib.sha256(data).hexdigest()
        return DataFile(path, schema.name, schema.id, changes.num_rows, len(data), digest, partial)

    def _manifest(
        self,
        key: str,
        epoch: int,
        files: list[DataFile],
        schemas: list[TableSchema],
        *,
        window: Window | None = None,
        chunk: SnapshotChunk | None = None,
        xa: Mapping[str, Any] | None = None,
    ) -> None:
        last = START_TIME + timedelta(seconds=window.stop.offset) if window is not None else START_TIME
        rows = sum(file.rows for file in files)
        manifest = Manifest(
            source=self.source, epoch=epoch, identity=IDENTITY, window=window, chunk=chunk, gtid_first="", gtid_last="",
            first_time=START_TIME, last_time=last, transactions=rows, events=rows, files=tuple(files),
            schemas={schema.id: schema for schema in schemas if schema.columns}, **(xa or {}),
        )  # fmt: skip
        self.store.put_if_absent(key, documents.dump(manifest))


def _arrow(schema: TableSchema, rows: list[Row], epoch: int) -> pa.Table:
    change = list(zip(CHANGE_COLUMNS, _CHANGE_TYPES, strict=True))
    marked = any(row.absent | row.unknown for row in rows)
    change += [(ABSENT, pa.string())] if marked else []
    cells = [(column.name, _arrow_type(column.type.lake_type)) for column in schema.columns]
    values = [
        (
            *(r.op, epoch, r.file, r.offset, r.row, START_TIME + timedelta(seconds=r.offset), None),
            *([_marks(schema, r)] if marked else []),
            *cell_values(schema, r),
        )
        for r in rows
    ]
    fields = [pa.field(name, kind) for name, kind in change + cells]
    arrays = [pa.array([value[i] for value in values], type=kind) for i, (_, kind) in enumerate(change + cells)]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def _marks(schema: TableSchema, row: Row) -> str | None:
    marks = dict.fromkeys(row.absent, CELL_ABSENT) | dict.fromkeys(row.unknown, CELL_UNKNOWN)
    return "".join(marks.get(column.name, CELL_HERE) for column in schema.columns) if marks else None


def cell_values(schema: TableSchema, row: Row) -> list[Any]:
    """Return the values of the source table's columns; None where the row has no value."""
    return [row.values.get(column.name) for column in schema.columns]


def _arrow_type(lake_type: str) -> pa.DataType:
    if lake_type.startswith("decimal"):
        precision, scale = lake_type.removeprefix("decimal(").removesuffix(")").split(",")
        return pa.decimal128(int(precision), int(scale))
    return _ARROW[lake_type]
