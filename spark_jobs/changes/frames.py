"""Reads batches of the object store as Spark frames with the columns of their lake table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from cdc_lib.apply.rows import BEFORE_READ, READ_AHEAD, WHILE_READ
from cdc_lib.merge.plan import MergeInput, StoredBatch
from cdc_lib.merge.renames import NamesAt, names_at, renamed_columns, renames_after
from cdc_lib.model.column_rename import ColumnRename
from cdc_lib.model.lake_table import CHANGE_TYPES, LakeColumn
from cdc_lib.model.lexer import quoted
from cdc_lib.model.manifest import ABSENT, BINLOG, CELL_HERE, EPOCH, OFFSET, OP, TS, DataFile
from cdc_lib.model.position import Point
from cdc_lib.model.schema import TableSchema
from cdc_lib.model.table_mode import VALID_FROM
from cdc_lib.model.table_name import TableName
from cdc_lib.model.xa_settlement import XaCommit
from cdc_lib.ports import ObjectStore
from cdc_lib.store import layout
from spark_jobs.changes.xa import committed_rows
from spark_jobs.sql import point, struct, text_literal


@dataclass(frozen=True, slots=True)
class RowMapping:
    """How rows of a source table are mapped to one lake table.

    Args:
        keeps: whether the lake table keeps a column of this name.
        constants: added columns and their values.
        reads: range in which the snapshots of the table were read, see :attr:`cdc_lib.model.lake_table.Marker.reads`.
        ahead_until: re-selected rows, and rows of partial snapshots, may already include changes before this point.
        renames: of the table's columns, in order; older rows are written under the new names.
    """

    keeps: Callable[[str], bool]
    constants: Mapping[str, str]
    reads: tuple[Point, Point] | None = None
    ahead_until: Point | None = None
    renames: Sequence[ColumnRename] = ()

    def columns(self, schema: TableSchema, names_at: NamesAt) -> Columns:
        """Return the kept columns of rows, under their names in the lake."""
        named = renamed_columns(schema, renames_after(names_at, self.renames))
        return tuple((name, column.name) for name, column in named if self.keeps(name))


Columns = tuple[tuple[str, str], ...]
"""Names in the lake table and in a file."""

ONE_TASK_ROWS = 20_000
"""Up to this row count one task collapses the rows: a shuffle would take longer than it saves."""


def changes(
    session: SparkSession,
    store: ObjectStore,
    table: TableName,
    inputs: Sequence[MergeInput],
    columns: Sequence[LakeColumn],
    mapping: RowMapping | None = None,
) -> DataFrame:
    """Return the changes of one table: ``_op`` and the lake table's columns.

    Rows before an input's floor are left out; columns that a file does not have, or that the lake table does not keep, are
    null. If some rows lack cells, the frame also has ``_absent``: a character for each column of the lake table, followed by
    one of :data:`BEFORE_READ`, :data:`WHILE_READ` and :data:`READ_AHEAD` if a SELECT may already have returned the change.

    Args:
        session: session to read in.
        store: holds the batches.
        table: ``database.table``.
        inputs: batches to read.
        columns: the lake table's columns.
        mapping: mapping of the rows to the lake table; all columns unchanged without it.
    """
    mapping = mapping or RowMapping(lambda _: True, {})
    groups: dict[tuple[str, Point | None, bool, Columns], tuple[TableSchema, list[str]]] = {}
    for item in inputs:
        manifest = item.batch.manifest
        for file in manifest.files:
            if file.table == table:
                schema = manifest.schemas[file.schema_id]
                named = mapping.columns(schema, names_at(manifest, file))
                kind = (file.schema_id, item.floor, file.partial_rows > 0, named)
                group = groups.setdefault(kind, (schema, []))
                group[1].append(store.url(layout.beside(item.batch.key, file.path)))
    committed = _committed(table, inputs)
    some_partial = any(partial for _, _, partial, _ in groups) or any(file.partial_rows for _, file, _ in committed)
    whole_marks = [f"CAST(NULL AS STRING) AS {ABSENT}"] if some_partial else []
    frames = []
    for (_, floor, partial, named), (schema, paths) in groups.items():
        marks = [_marks(schema, named, columns, mapping)] if partial else whole_marks
        frames.append(_read(session, schema, paths, floor, named, columns, marks, mapping))
    for held, file, commits in committed:
        schema, url = held.manifest.schemas[file.schema_id], store.url(layout.beside(held.key, file.path))
        named = mapping.columns(schema, names_at(held.manifest, file))
        marks = [_marks(schema, named, columns, mapping)] if file.partial_rows else whole_marks
        rows_of_file = committed_rows(_open(session, schema, [url], partial=some_partial), commits)
        frames.append(_in_shape(rows_of_file, named, columns, marks, mapping))
    if not frames:
        cells = [f"CAST(NULL AS {column.type}) AS {quoted(column.name)}" for column in _shape(columns)]
        return session.range(0).selectExpr(*cells)
    union, *others = frames
    for frame in others:
        union = union.unionByName(frame)
    rows = sum(file.rows for item in inputs for file in item.batch.manifest.files if file.table == table)
    rows += sum(file.rows for _, file, _ in committed)
    return union.coalesce(1) if rows <= ONE_TASK_ROWS else union


def _read(
    session: SparkSession,
    schema: TableSchema,
    paths: list[str],
    floor: Point | None,
    named: Columns,
    columns: Sequence[LakeColumn],
    marks: list[str],
    mapping: RowMapping,
) -> DataFrame:
    frame = _open(session, schema, paths, partial=bool(marks))
    if floor is not None:
        frame = frame.where(f"{struct((EPOCH, BINLOG, OFFSET))} >= {point(floor)}")
    return _in_shape(frame, named, columns, marks, mapping)


def _committed(table: str, inputs: Sequence[MergeInput]) -> list[tuple[StoredBatch, DataFile, list[XaCommit]]]:
    """Return the files of prepared XA transactions that the inputs commit, with their batches and commits."""
    found: dict[tuple[str, str], tuple[StoredBatch, DataFile, dict[Point, XaCommit]]] = {}
    for item in inputs:
        for commit, held in item.batch.commits:
            if table not in commit.prepared.tables or (item.floor is not None and commit.point < item.floor):
                continue
            for file in held.manifest.prepared_files:
                if file.table == table:
                    found.setdefault((held.key, file.path), (held, file, {}))[2][commit.point] = commit
    return [(held, file, list(commits.values())) for held, file, commits in found.values()]


def _open(session: SparkSession, schema: TableSchema, paths: list[str], *, partial: bool = False) -> DataFrame:
    """Return the frame of files: change columns, ``_absent`` if cells may be absent, and the table's columns."""
    table_types = {column.name: column.type.lake_type for column in schema.columns}
    types = {**CHANGE_TYPES, **({ABSENT: "string"} if partial else {}), **table_types}
    declared = [LakeColumn(name, kind) for name, kind in types.items()]
    return session.read.schema(", ".join(_declared(declared))).parquet(*paths)


def _in_shape(
    frame: DataFrame, named: Columns, columns: Sequence[LakeColumn], marks: list[str], mapping: RowMapping
) -> DataFrame:
    kept = {name.lower(): quoted(column) for name, column in named}
    # Only scd2 reserves _valid_from: in other modes a column of the source may have this name.
    present = {VALID_FROM: quoted(TS)} | kept | {name: quoted(name) for name in CHANGE_TYPES}
    present |= {name: text_literal(value) for name, value in mapping.constants.items()}
    return frame.selectExpr(*(_projected(column, present) for column in _shape(columns)), *marks)


def _marks(schema: TableSchema, named: Columns, columns: Sequence[LakeColumn], mapping: RowMapping) -> str:
    """Return the marks of a file's columns in the order of the lake's columns; columns that the file lacks are null."""
    numbers = {column.name: i for i, column in enumerate(schema.columns, 1)}
    indexes = {name.lower(): numbers[column] for name, column in named}
    marks = [
        f"substring({ABSENT}, {indexes[name]}, 1)" if (name := column.name.lower()) in indexes else f"'{CELL_HERE}'"
        for column in columns
    ]
    return f"concat({', '.join((*marks, _phase(mapping)))}) AS {ABSENT}"


def _phase(mapping: RowMapping) -> str:
    ends = [*zip((BEFORE_READ, WHILE_READ), mapping.reads or (), strict=False)]
    ends += [(READ_AHEAD, mapping.ahead_until)] if mapping.ahead_until is not None else []
    at = struct((EPOCH, BINLOG, OFFSET))
    cases = " ".join(f"WHEN {at} < {point(end)} THEN '{phase}'" for phase, end in ends)
    return f"CASE {cases} ELSE '' END" if cases else "''"


def _shape(columns: Sequence[LakeColumn]) -> list[LakeColumn]:
    """Return the columns of a frame of changes: ``_op`` is needed even if the lake does not keep it."""
    kept = [column for column in columns if column.name != OP]
    return [LakeColumn(OP, CHANGE_TYPES[OP]), *kept]


def _projected(column: LakeColumn, present: dict[str, str]) -> str:
    value = present.get(column.name.lower(), "NULL")
    return f"CAST({value} AS {column.type}) AS {quoted(column.name)}"


def _declared(columns: Iterable[LakeColumn]) -> list[str]:
    return [f"{quoted(column.name)} {column.type}" for column in columns]
