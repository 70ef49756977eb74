"""Cells that changes lack: from earlier changes of their key, from the lake's row, and from the old key of a row that moved.

The timeline of a key holds its changes and the lake's rows, in the order of the order key. A missing cell takes the last earlier
value; nothing is taken from before a delete, a statement that removed the row, or a complete row. An update that moved a row to
another key takes cells of the old key: from the delete next to it, which is completed first.

A snapshot's row is in the timeline at its low watermark, but may have been read later. For a row that kept its key this is
harmless: later changes are applied to it again. But if a row got its key in between, the row that was read under its old key
may be the next row with that key. So it takes cells from its old key only if the old row was inserted in the binlog, and else
stays incomplete. The same holds for a row that got its key before the end of a re-selection.
A row that was inserted without all columns while the snapshot was read stays incomplete too: its key range may have been read
before the insert.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cdc_lib.apply.removals import removed_by, statement_numbers
from cdc_lib.apply.rows import BEFORE_READ, READ_AHEAD, WHILE_READ, Numbers, in_key_order, order_of, with_column
from cdc_lib.errors import MergeError
from cdc_lib.merge.collapse import DELETE, INSERT, MISSING, READ
from cdc_lib.merge.plan import INCOMPLETE, rows_not_logged
from cdc_lib.model.lake_table import ORDER
from cdc_lib.model.manifest import ABSENT, CELL_HERE, CELL_UNKNOWN, OP
from cdc_lib.model.table_commit import Superseded
from cdc_lib.model.table_mode import IS_CURRENT, IS_DELETED, TO_ORDER, Mode
from cdc_lib.model.table_name import TableName

_MAX_NAMED_KEYS = 5
"""Most keys that an error names."""

_NOTHING, _UNKNOWN = -1, -2
"""In place of the number of the row that a cell is from: there is none, or it is one that the binlog does not contain."""


def completed(
    changes: pa.Table,
    old: pa.Table,
    key: Sequence[str],
    mode: Mode,
    rules: Sequence[Superseded] = (),
    *,
    to_come: bool = False,
) -> pa.Table:
    """Return changes in the same order, without ``_absent`` and with :data:`cdc_lib.merge.collapse.MISSING`.

    A change of a row that a snapshot's read did not return is a delete if it comes before the end of that read: the row was deleted,
    unless it was inserted during the read.

    Args:
        changes: in the columns of the lake table, with ``_op`` and ``_absent``; its characters are those of the other columns, and one
            more for when the row was read. They have all columns of the key.
        old: the lake's rows of the keys of incomplete changes; in scd2 the versions that changes may touch.
        key: names of the key's columns.
        mode: of the lake table.
        rules: rows of the lake that are removed in the same commit.
        to_come: whether all incomplete rows are deletes, because a snapshot will bring them.
    """
    rows = changes.drop_columns([ABSENT])
    names = [name for name in rows.column_names if name != OP]
    before = _as_changes(old, rows.schema, mode, rules)
    by, is_last = in_key_order(pa.concat_tables([before, rows]), key)
    timeline = _Timeline.of(before, changes, by, is_last, rules if mode in ("soft_delete", "scd2") else ())
    taken: list[pa.Array | pa.ChunkedArray] = []
    lacks, known = dict[str, NDArray[np.bool_]](), np.ones(len(by), np.bool_)
    for number, name in enumerate(names):
        source = timeline.sources(number)
        column = timeline.rows.column(name)
        if source is not None:
            column = column.take(pa.array(source, mask=source < 0))
            known &= source != _UNKNOWN
            lacks[name] = (source < 0) & ~timeline.deletes
        taken.append(column)
    missing = _names_of(lacks, len(by))
    is_deleted = timeline.has_phase(BEFORE_READ) | (timeline.has_phase(WHILE_READ) & known & ~timeline.born)
    turned = pc.and_(pc.not_equal(missing, ""), pa.array(is_deleted | to_come))
    arrays = dict(zip(names, taken, strict=True)) | {OP: pc.if_else(turned, DELETE, timeline.rows.column(OP))}
    made = pa.table([arrays[name] for name in rows.column_names], schema=rows.schema)
    made = made.append_column(MISSING, pc.if_else(turned, "", missing))
    return made.take(pa.array(np.argsort(by)[before.num_rows :]))


def needing(changes: pa.Table, *, keeps_deleted: bool) -> NDArray[np.bool_]:
    """Return which changes may take cells of the lake's row of their key.

    Args:
        changes: with ``_absent``.
        keeps_deleted: whether deleted rows stay, with their cells.
    """
    partial = pc.is_valid(changes.column(ABSENT)).to_numpy()
    if keeps_deleted or not partial.any():
        return np.asarray(partial)
    shown = partial & pc.not_equal(changes.column(OP), DELETE).to_numpy()
    _, left = moves(changes)
    shown[left] = partial[left]
    return np.asarray(shown)


def moves(changes: pa.Table) -> tuple[Numbers, Numbers]:
    """Return the numbers of the incomplete updates that moved a row to another key, and of the delete next to each."""
    order, deletes = order_of(changes), pc.equal(changes.column(OP), DELETE).to_numpy()
    updates = pc.equal(changes.column(OP), "u").to_numpy() & pc.is_valid(changes.column(ABSENT)).to_numpy()
    by = np.lexsort((~deletes, *reversed(order)))
    left, moved = by[:-1], by[1:]
    is_move = deletes[left] & updates[moved] & (order[3][moved] == order[3][left] + 1)
    for part in order[:3]:
        is_move &= part[moved] == part[left]
    return moved[is_move], left[is_move]


class MovedKeys:
    """Finds the keys between which incomplete rows move, in changes that come one table after another.

    Args:
        key: names of the key's columns.
    """

    def __init__(self, key: Sequence[str]) -> None:
        self._key = list(key)
        self._last: list[pa.Table] = []

    def __call__(self, changes: pa.Table) -> pa.Table:
        """Return the old and new keys of rows that move in these changes, or between them and those before."""
        columns = [OP, ABSENT, *ORDER, *(name for name in self._key if name not in ORDER)]
        rows = pa.concat_tables([*self._last, changes.select(columns)])
        self._last = [rows.slice(max(rows.num_rows - 1, 0))]
        if changes.column(ABSENT).null_count == changes.num_rows:
            return rows.select(self._key).slice(0, 0)
        return rows.select(self._key).take(pa.array(np.concatenate(moves(rows))))


def refuse_partial_keys(changes: pa.Table, key: Sequence[str], table: str) -> None:
    """Refuse rows that lack a part of their key.

    Raises:
        ValuesNotLogged: there are such rows.
    """
    marks = changes.column(ABSENT)
    if marks.null_count == changes.num_rows:
        return
    names = [name for name in changes.column_names if name not in (OP, ABSENT)]
    cells = (pc.utf8_slice_codeunits(marks, number, number + 1) for number in map(names.index, key))
    lacks = [pc.fill_null(pc.not_equal(cell, CELL_HERE), False).to_numpy() for cell in cells]
    if keyless := int(np.any(lacks, axis=0).sum()):
        raise rows_not_logged(table, "rows lack columns of the key, which took their defaults", rows=keyless)


def refuse_missing(rows: pa.Table, key: Sequence[str], table: str, why: str = "") -> None:
    """Refuse rows that stay incomplete.

    Args:
        rows: with :data:`cdc_lib.merge.collapse.MISSING`.
        key: names of the key's columns.
        table: the source table.
        why: why they could not be read from the source.

    Raises:
        MergeError: a row is incomplete.
    """
    lacking = rows.filter(pc.not_equal(rows.column(MISSING), ""))
    if not lacking.num_rows:
        return
    first = lacking.slice(0, _MAX_NAMED_KEYS)
    named = first.select(key).to_pylist()
    keys = "; ".join(", ".join(f"{name}={_text(value)}" for name, value in row.items()) for row in named)
    what = "rows lack columns that neither the batches nor the lake hold"
    raise incomplete(table, what, column=first.column(MISSING)[0].as_py(), key=keys, reselect=why or None)


def refuse_absent(changes: pa.Table, table: str, *, has_key: bool) -> None:
    """Refuse incomplete changes for a table that keeps every change, which no existing row can complete.

    Raises:
        ValuesNotLogged: a change of a table without a key is incomplete.
        MergeError: a change of another table is incomplete: the source file wants all of them, which no snapshot has.
    """
    if count := changes.num_rows - changes.column(ABSENT).null_count:
        what = "every change of the table is kept as it is, and no existing row has the rest"
        raise (incomplete if has_key else rows_not_logged)(table, what, rows=count)


def incomplete(table: str, what: str, **context: str | int | None) -> MergeError:
    """Return the error of incomplete rows.

    Args:
        table: their source table.
        what: which rows, and why they stay incomplete.
        context: of the error.
    """
    return MergeError(
        f"{INCOMPLETE}: {what}",
        hint="With reselect.mode: auto a merge reads such rows of tables with a key from the source. Otherwise set "
        "binlog_row_image=FULL and binlog_row_value_options='' at the source, also in "
        f"sessions. Then: cdc snapshot {{source}} {TableName.parse(table).in_shell}",
        table=table,
        **context,
    )


@dataclass(frozen=True, slots=True)
class _Timeline:
    """Changes and the lake's rows by key and from the oldest to the newest.

    Args:
        rows: without ``_absent``.
        marks: ``_absent`` of each.
        begins: the first row of whose cells each may take.
        deletes: whether each is a delete.
        born: whether each row was inserted since.
        phase: when each was read.
        moved: incomplete rows that moved to another key, whose old one may complete them.
        left: the delete next to each of these.
        stuck: moved rows whose old key may be that of another row.
    """

    rows: pa.Table
    marks: pa.ChunkedArray
    begins: Numbers
    deletes: NDArray[np.bool_]
    born: NDArray[np.bool_]
    phase: pa.ChunkedArray
    moved: Numbers
    left: Numbers
    stuck: Numbers

    @classmethod
    def of(
        cls,
        before: pa.Table,
        changes: pa.Table,
        by: Numbers,
        is_last: NDArray[np.bool_],
        rules: Sequence[Superseded],
    ) -> _Timeline:
        """Put rows into order.

        Args:
            before: the lake's rows as changes.
            changes: with ``_absent``.
            by: numbers of both by key and order.
            is_last: which is the last one of its key, in that order.
            rules: statements that removed rows.
        """
        rows = pa.concat_tables([before, changes.drop_columns([ABSENT])]).take(pa.array(by))
        marks = pa.chunked_array([pa.nulls(before.num_rows, pa.string()), *changes.column(ABSENT).chunks])
        marks = marks.take(pa.array(by))
        phase = _cells(marks, changes.num_columns - 2, "")
        op = rows.column(OP)
        deletes, whole = pc.equal(op, DELETE).to_numpy(), pc.is_null(marks).to_numpy()
        # A delete right after a delete is the same one, replayed in a later epoch.
        again = ~deletes & np.append(False, deletes[:-1])
        removed = ~deletes & (np.diff(statement_numbers(rows, rules), prepend=0) != 0)
        begins = np.maximum.accumulate(
            np.where(np.append(True, is_last[:-1]) | whole | again | removed, np.arange(len(by)), 0)
        )
        is_change = by >= before.num_rows
        born = _since(begins, is_change & pc.equal(op, INSERT).to_numpy())
        traced = _since(begins, is_change & whole & pc.not_equal(op, READ).to_numpy())
        place = np.argsort(by)
        moved, left = (place[numbers + before.num_rows] for numbers in moves(changes))
        while np.any(traced[left] & ~traced[moved]):
            traced[moved] |= traced[left]
            traced = _since(begins, traced)
        usable = _is(phase, "")[moved] | traced[left]
        stuck = moved[(_is(phase, WHILE_READ) | _is(phase, READ_AHEAD))[moved]]
        return cls(rows, marks, begins, deletes, born, phase, moved[usable], left[usable], stuck)

    def has_phase(self, phase: str) -> NDArray[np.bool_]:
        """Return which rows were read then."""
        return _is(self.phase, phase)

    def sources(self, number: int) -> Numbers | None:
        """Return the number of the row that has the cell of each in a column; None if each has its own."""
        cells = _cells(self.marks, number, CELL_HERE)
        is_here = _is(cells, CELL_HERE)
        if is_here.all():
            return None
        own = np.where(is_here, np.arange(len(cells)), np.where(_is(cells, CELL_UNKNOWN), _UNKNOWN, _NOTHING))
        found = self._filled(own)
        while True:
            lacks = (found[self.moved] == _NOTHING) & (found[self.left] != _NOTHING)
            if not lacks.any():
                break
            own[self.moved[lacks]] = found[self.left[lacks]]
            found = self._filled(own)
        stuck = self.stuck[found[self.stuck] == _NOTHING]
        if not len(stuck):
            return found
        own[stuck] = _UNKNOWN
        return self._filled(own)

    def _filled(self, own: Numbers) -> Numbers:
        """Fill cells from the rows before."""
        last = np.maximum.accumulate(np.where(own != _NOTHING, np.arange(len(own)), -1))
        found: Numbers = np.where(last >= self.begins, own[last], _NOTHING)
        return found


def _since(begins: Numbers, holds: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return for which rows something holds of them or of a row before them, of whose cells they may take."""
    last = np.maximum.accumulate(np.where(holds, np.arange(len(begins)), -1))
    return np.asarray(last >= begins)


def _cells(marks: pa.ChunkedArray, number: int, without: str) -> pa.ChunkedArray:
    """Return a character of all marks, and what complete rows have for it."""
    return pc.fill_null(pc.utf8_slice_codeunits(marks, number, number + 1), without)


def _is(cells: pa.ChunkedArray, character: str) -> NDArray[np.bool_]:
    return np.asarray(pc.equal(cells, character).to_numpy())


def _names_of(lacks: dict[str, NDArray[np.bool_]], rows: int) -> pa.Array:
    """Return the names of the columns that each row lacks, joined."""
    found: pa.Array = pa.repeat("", rows)
    for name, where in lacks.items():
        if where.any():
            more = pc.if_else(pc.equal(found, ""), name, pc.binary_join_element_wise(found, name, ", "))
            found = pc.if_else(pa.array(where), more, found)
    return found


def _as_changes(old: pa.Table, schema: pa.Schema, mode: Mode, rules: Sequence[Superseded]) -> pa.Table:
    """Return the lake's rows as changes."""
    ops: pa.Array | pa.ChunkedArray = pa.repeat(READ, old.num_rows)
    if mode == "soft_delete" and IS_DELETED in old.column_names:
        ops = pc.if_else(pc.fill_null(old.column(IS_DELETED), False), DELETE, ops)
    elif mode == "mirror" and rules:
        old = old.filter(pa.array(removed_by(rules, old, mode) < 0))
        ops = ops.slice(0, old.num_rows)
    if OP in old.column_names:
        old = old.drop_columns([OP])
    rows = old.append_column(OP, ops)
    if mode == "scd2":
        ends = rows.filter(pc.invert(pc.fill_null(rows.column(IS_CURRENT), False)))
        for name, to in zip(ORDER, TO_ORDER, strict=True):
            ends = with_column(ends, name, ends.column(to))
        ends = with_column(ends, OP, pa.repeat(DELETE, ends.num_rows))
        rows = pa.concat_tables([rows, ends])
    return rows.select(schema.names).cast(schema)


def _text(value: object) -> str:
    return value.hex().upper() if isinstance(value, bytes) else str(value)
