"""Cells that changes lack, from the changes before them and from the lake's rows.

A missing cell takes the last earlier value of its key, and nothing from before a delete. What else may complete a row (the old key
of a row that moved, the defaults of an insert, the source) is not known here.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cdc_lib.apply.decide import NeedsSpark
from cdc_lib.apply.rows import Numbers, in_key_order
from cdc_lib.merge.collapse import DELETE
from cdc_lib.model.manifest import ABSENT, CELL_HERE, CELL_UNKNOWN, OP
from cdc_lib.model.table_mode import IS_DELETED

_IN_LAKE = "lake"
"""``_op`` of the lake's row of a key among the changes."""


def completed(changes: pa.Table, old: pa.Table, key: Sequence[str], *, keeps_deleted: bool) -> pa.Table:
    """Return changes in the same order without ``_absent``: the last one of each key has all cells.

    Args:
        changes: in the columns of the lake table, with ``_op`` and ``_absent``; the characters are those of the other columns.
        old: the lake's rows of the keys of incomplete changes.
        key: names of the key's columns.
        keeps_deleted: whether a deleted row stays, with its mark.

    Raises:
        NeedsSpark: a cell is not known, or a row lacks a part of its key.
    """
    rows = changes.drop_columns([ABSENT])
    marks = changes.column(ABSENT)
    names = [name for name in rows.schema.names if name != OP]
    _refuse_partial_keys(marks, [names.index(name) for name in key])
    before = _as_changes(old, rows.schema, keeps_deleted=keeps_deleted)
    rows = pa.concat_tables([before, rows])
    marks = pa.chunked_array([pa.nulls(before.num_rows, pa.string()), *marks.chunks])
    by, is_last = in_key_order(rows, key)
    rows, marks = rows.take(pa.array(by)), marks.take(pa.array(by))
    deletes = pc.equal(rows.column(OP), DELETE).to_numpy()
    shown = is_last if keeps_deleted else is_last & ~deletes
    begins = _begins(is_last, deletes)
    for number, name in enumerate(names):
        mark = pc.fill_null(pc.utf8_slice_codeunits(marks, number, number + 1), CELL_HERE)
        source = np.maximum.accumulate(np.where(pc.equal(mark, CELL_HERE).to_numpy(), np.arange(len(by)), -1))
        unknown = np.maximum.accumulate(np.where(pc.equal(mark, CELL_UNKNOWN).to_numpy(), np.arange(len(by)), -1))
        if np.any(shown & ((source < begins) | (unknown > source))):
            raise NeedsSpark(f"a row has no value of column {name} (binlog_row_image is not FULL)")
        column = rows.column(name).take(pa.array(np.maximum(source, 0)))
        rows = rows.set_column(rows.schema.get_field_index(name), rows.schema.field(name), column)
    return rows.take(pa.array(np.argsort(by)[before.num_rows :]))


def _refuse_partial_keys(marks: pa.ChunkedArray, numbers: Sequence[int]) -> None:
    for number in numbers:
        cells = pc.utf8_slice_codeunits(marks, number, number + 1)
        if pc.any(pc.not_equal(cells, CELL_HERE)).as_py():
            raise NeedsSpark("a row lacks a part of its key")


def _begins(is_last: NDArray[np.bool_], deletes: NDArray[np.bool_]) -> Numbers:
    """Return for each row the first one of whose cells it may take: after a delete, and of its own key."""
    fresh = np.append(True, is_last[:-1] | deletes[:-1])
    begins: Numbers = np.maximum.accumulate(np.where(fresh, np.arange(len(fresh)), 0))
    return begins


def _as_changes(old: pa.Table, schema: pa.Schema, *, keeps_deleted: bool) -> pa.Table:
    """Return the lake's rows as changes."""
    ops: pa.Array | pa.ChunkedArray = pa.repeat(_IN_LAKE, old.num_rows)
    if keeps_deleted and IS_DELETED in old.schema.names:
        ops = pc.if_else(pc.fill_null(old.column(IS_DELETED), False), DELETE, ops)
    if OP in old.schema.names:
        old = old.drop_columns([OP])
    return old.append_column(OP, ops).select(schema.names).cast(schema)
