"""Rows of batches in the columns of a lake table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cdc_lib.apply.key_rows import comparable
from cdc_lib.errors import IncompatibleSchema
from cdc_lib.merge.collapse import DELETE
from cdc_lib.merge.plan import MergeInput
from cdc_lib.merge.renames import names_at, renamed_columns, renames_after
from cdc_lib.model.column_rename import ColumnRename
from cdc_lib.model.lake_table import ORDER
from cdc_lib.model.manifest import (
    ABSENT,
    BINLOG,
    CELL_HERE,
    CHANGE_COLUMNS,
    EPOCH,
    GTID,
    OFFSET,
    OP,
    ROW,
    TS,
    DataFile,
    Manifest,
)
from cdc_lib.model.position import Point
from cdc_lib.model.schema import TableSchema
from cdc_lib.model.table_mode import RESET, STATEMENT_ROW, TO_ORDER, VALID_FROM, TableReset
from cdc_lib.model.xa_settlement import XaCommit
from cdc_lib.ports import ObjectStore
from cdc_lib.store import layout
from cdc_lib.store.batch_rows import committed, from_point, read_groups

Numbers = NDArray[np.int64]
Order = tuple[Numbers, ...]
"""Epoch, file number, offset and row of each row."""


_FIRST = -1
"""Less than each part of an order key."""

BEFORE_READ, WHILE_READ, READ_AHEAD = "<", "~", "*"
"""Last character of ``_absent``: the change comes before the snapshot's read, during it, or before the end of a re-selection."""

Named = Mapping[str, str]
"""Columns of a file by the lower-case names that they have in the lake table."""


@dataclass(frozen=True, slots=True)
class LakeShape:
    """The columns that rows get.

    Args:
        table: ``database.table`` at the source.
        fields: all columns of the lake table.
        constants: columns that a route adds, and their values.
        keeps: whether the lake table keeps a column of this name.
        renames: of the table's columns, in order; older rows are written under the new names.
        reads: range in which the snapshots of the table were read, see :attr:`cdc_lib.model.lake_table.Marker.reads`.
        ahead_until: re-selected rows, and rows of partial snapshots, may already include changes before this point.
    """

    table: str
    fields: tuple[pa.Field, ...]
    constants: Mapping[str, str]
    keeps: Callable[[str], bool]
    renames: Sequence[ColumnRename] = ()
    reads: tuple[Point, Point] | None = None
    ahead_until: Point | None = None

    @property
    def schema(self) -> pa.Schema:
        """``_op``, then the lake table's other columns."""
        return pa.schema([pa.field(OP, pa.string()), *(field for field in self.fields if field.name != OP)])

    def named(self, manifest: Manifest, file: DataFile) -> Named:
        """Return the columns of a file that the lake table keeps."""
        renames = renames_after(names_at(manifest, file), self.renames)
        columns = renamed_columns(manifest.schemas[file.schema_id], renames)
        return {name.lower(): column.name for name, column in columns if self.keeps(name)}

    def of(self, rows: pa.Table, named: Named) -> pa.Table:
        """Return rows of a file in these columns; a column that the file lacks is null.

        Raises:
            IncompatibleSchema: a column has another type than the lake table's.
        """
        # A file of deleted keys has no other columns.
        have = {name: rows.column(column) for name, column in named.items() if column in rows.column_names}
        # Only scd2 reserves _valid_from: in other modes a column of the source may have this name, or may have had it.
        began = {VALID_FROM: rows.column(TS)} if {*TO_ORDER} <= {*self.schema.names} else {}
        have = began | have | {name: rows.column(name) for name in CHANGE_COLUMNS}
        have |= {name.lower(): pa.repeat(value, rows.num_rows) for name, value in self.constants.items()}
        arrays = [
            self._as_type(have[field.name.lower()], field)
            if field.name.lower() in have
            else pa.nulls(rows.num_rows, field.type)
            for field in self.schema
        ]
        return pa.Table.from_arrays(arrays, schema=self.schema)

    def with_marks(self, rows: pa.Table, schema: TableSchema, named: Named) -> pa.Table:
        """Return rows of a file in these columns, and ``_absent`` for the columns after ``_op`` and for when they were read.

        Args:
            rows: with ``_absent`` for the columns of the file.
            schema: of the file.
            named: the columns of the file.

        Raises:
            IncompatibleSchema: as in :meth:`of`.
        """
        number = {column.name: number for number, column in enumerate(schema.columns)}
        marks = rows.column(ABSENT).combine_chunks()
        if marks.null_count < len(marks):
            columns = [named.get(field.name.lower()) for field in self.schema if field.name != OP]
            cells = [
                pa.repeat(CELL_HERE, len(marks))
                if column is None
                else pc.utf8_slice_codeunits(marks, number[column], number[column] + 1)
                for column in columns
            ]
            # A complete row has no marks: one of its cells is null, and so is what they are joined to.
            marks = pc.binary_join_element_wise(*cells, self._phase(rows), "")
        return self.of(rows, named).append_column(pa.field(ABSENT, pa.string()), marks)

    def _as_type(self, column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
        """Return a column in the lake's type, which has all its values."""
        if column.type == field.type or pa.types.is_null(column.type) or _widens(column.type, field.type):
            with suppress(pa.ArrowInvalid):  # of a value that it does not have
                return column.cast(field.type)
        raise IncompatibleSchema(
            f"column {field.name} is {column.type} in a batch and {field.type} in the lake table",
            hint="A new snapshot replaces the rows: cdc snapshot {source} {table}",
            table=self.table,
        )

    def _phase(self, rows: pa.Table) -> pa.Array | pa.ChunkedArray:
        """Return by which read each row may have been returned already; empty for none."""
        ends = [*zip((BEFORE_READ, WHILE_READ), self.reads or (), strict=False)]
        ends += [(READ_AHEAD, self.ahead_until)] if self.ahead_until is not None else []
        phase, order = pa.repeat("", rows.num_rows), order_of(rows)
        for name, end in reversed(ends):
            phase = pc.if_else(pa.array(is_before(order, end)), name, phase)
        return phase

    def reset(self, one: TableReset) -> pa.Table:
        """Return the entry of an append table that ends all rows before it, with ``_absent``."""
        values = {OP: RESET, EPOCH: one.epoch, BINLOG: one.file, OFFSET: one.offset, ROW: STATEMENT_ROW}
        values |= {TS: one.at, GTID: one.gtid or None, **self.constants}
        schema = self.schema.append(pa.field(ABSENT, pa.string()))
        return pa.Table.from_pylist([{field.name: values.get(field.name) for field in schema}], schema)


@dataclass(frozen=True, slots=True)
class ChangeFile:
    """A file of a batch with changes of a table.

    Args:
        key: of the file in the store.
        file: as its manifest describes it.
        schema: of its rows.
        named: its columns.
        floor: changes before this point do not count; None for no such point.
        commit: the XA COMMIT that the file was prepared for; None for a window's or chunk's own file.
    """

    key: str
    file: DataFile
    schema: TableSchema
    named: Named
    floor: Point | None = None
    commit: XaCommit | None = None

    def tables(self, store: ObjectStore, shape: LakeShape) -> Iterator[pa.Table]:
        """Yield the changes by row group, with ``_absent`` for the columns after ``_op``.

        Raises:
            CorruptBatch: the file is missing or damaged.
            IncompatibleSchema: a column has another type than the lake table's.
        """
        for rows in read_groups(store, self.key, self.file):
            counting = from_point(rows, self.floor) if self.commit is None else committed(rows, [self.commit])
            yield shape.with_marks(counting, self.schema, self.named)


def change_files(inputs: Sequence[MergeInput], shape: LakeShape) -> Iterator[ChangeFile]:
    """Yield the files with the changes of a table, in the order in which they were drained.

    Args:
        inputs: batches, and the points before which their rows do not count.
        shape: the columns.
    """
    for each in inputs:
        kept = [(commit, held) for commit, held in each.batch.commits if not each.floor or commit.point >= each.floor]
        own = [(each.batch, file, each.floor, None) for file in each.batch.manifest.files]
        prepared = [(held, file, None, commit) for commit, held in kept for file in held.manifest.prepared_files]
        for batch, file, floor, commit in (*own, *prepared):
            if file.table == shape.table:
                schema, named = batch.manifest.schemas[file.schema_id], shape.named(batch.manifest, file)
                yield ChangeFile(layout.beside(batch.key, file.path), file, schema, named, floor, commit)


def changes_of(store: ObjectStore, inputs: Sequence[MergeInput], shape: LakeShape) -> Iterator[pa.Table]:
    """Yield all changes of a table in the inputs of a merge; see :meth:`ChangeFile.tables`. The first table has no rows."""
    yield shape.schema.append(pa.field(ABSENT, pa.string())).empty_table()
    for file in change_files(inputs, shape):
        yield from file.tables(store, shape)


def _widens(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether a type has the same numbers, as far as they fit: an unsigned integer is a decimal in the lake, say."""
    if pa.types.is_floating(given):
        return bool(pa.types.is_floating(wanted))
    is_exact = pa.types.is_integer(given) or pa.types.is_decimal(given)
    return bool(
        is_exact and (pa.types.is_integer(wanted) or pa.types.is_decimal(wanted) or pa.types.is_floating(wanted))
    )


def order_of(rows: pa.Table) -> Order:
    """Return the order key of each row; one without, which another writer made, comes before all others."""
    return tuple(pc.fill_null(rows.column(name), _FIRST).to_numpy().astype(np.int64) for name in ORDER)


def is_before(order: Order, point: Point) -> NDArray[np.bool_]:
    """Return for each row whether its position is before a point."""
    return less(order[:3], tuple(point), or_equal=False)


def less(left: Sequence[Numbers], right: Sequence[Any], *, or_equal: bool) -> NDArray[np.bool_]:
    """Return where order keys, or their first parts, are less than others.

    Args:
        left: the parts of the one.
        right: as many parts of the other: arrays, or numbers of a point.
        or_equal: whether equal ones count as well.
    """
    found: NDArray[np.bool_] = np.full(len(left[0]), or_equal)
    for one, other in reversed(list(zip(left, right, strict=True))):
        found = (one < other) | ((one == other) & found)
    return found


def last_changes(rows: pa.Table, key: Sequence[str], *, begins: bool) -> pa.Table:
    """Return the last change of each key; of two with one order key, the one that is no delete.

    A version does not begin before an earlier change of its key: ``_valid_from`` is the greatest one of the key.

    Args:
        rows: changes.
        key: names of the key's columns.
        begins: whether they have the time from which a version is valid (scd2).
    """
    if not rows.num_rows:
        return rows
    by, is_last = in_key_order(rows, key)
    last = rows.take(pa.array(by[is_last]))
    if not begins:
        return last
    began = rows.column(VALID_FROM).cast(pa.int64()).to_numpy()[by]
    first = np.flatnonzero(np.append(True, is_last[:-1]))
    return with_column(last, VALID_FROM, pa.array(np.maximum.reduceat(began, first)))


def in_key_order(rows: pa.Table, key: Sequence[str]) -> tuple[Numbers, NDArray[np.bool_]]:
    """Return the numbers of rows by key and then from the oldest to the newest, and which of them is the last one of its key.

    Of two changes with one order key, the one that is no delete is the later one.

    Args:
        rows: changes, at least one.
        key: names of the key's columns.
    """
    codes = [_codes(rows.column(name)) for name in key]
    kept = pc.not_equal(rows.column(OP), DELETE).to_numpy()
    by = np.lexsort((kept, *reversed(order_of(rows)), *reversed(codes)))
    differ = reduce(np.logical_or, (code[by][1:] != code[by][:-1] for code in codes))
    return by, np.append(differ, True)


def numbers_of(rows: pa.Table, names: Sequence[str]) -> Numbers:
    """Return a number for each row, the same for rows with the same values in these columns."""
    numbers: Numbers = np.zeros(rows.num_rows, np.int64)
    for name in names:
        codes = _codes(rows.column(name))
        _, numbers = np.unique(numbers * (codes.max(initial=0) + 1) + codes, return_inverse=True)
    return numbers


def with_column(rows: pa.Table, name: str, values: pa.Array | pa.ChunkedArray) -> pa.Table:
    """Replace the values of a column."""
    field = rows.schema.field(name)
    return rows.set_column(rows.schema.get_field_index(name), field, values.cast(field.type))


def _codes(column: pa.ChunkedArray) -> Numbers:
    """Return a number for each value, the same for equal ones."""
    numbers: Numbers = (
        comparable(column.combine_chunks())
        .dictionary_encode(null_encoding="encode")
        .indices.to_numpy()
        .astype(np.int64)
    )
    return numbers
