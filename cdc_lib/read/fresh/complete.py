"""Cells that waiting changes lack, from the changes before them and from the lake's rows, as the merge takes them.

A missing cell takes the last earlier value of its key, and nothing from before a delete. What the merge takes from elsewhere (the old key
of a row that moved, the defaults of an insert, the source) is not known here.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cdc_lib.apply.rows import Numbers, in_key_order
from cdc_lib.merge.collapse import DELETE
from cdc_lib.model.manifest import ABSENT, CELL_HERE, CELL_UNKNOWN, OP
from cdc_lib.model.table_mode import IS_DELETED
from cdc_lib.read.fresh.decide import not_fresh
from cdc_lib.read.lookup import Many
from cdc_lib.read.snapshot import PinnedSnapshot

_IN_LAKE = "lake"
"""``_op`` of the lake's row of a key among the changes."""


def completed(base: PinnedSnapshot, changes: pa.Table, key: Sequence[str]) -> pa.Table:
    """Return changes without ``_absent``: the last one of each key has all cells.

    Args:
        base: the lake table, in ``mirror`` or ``soft_delete`` mode.
        changes: in the columns of the lake table, with ``_op`` and ``_absent``; the characters are those of the other columns.
        key: names of the key's columns.

    Raises:
        MergeError: a cell is not known, or a row lacks a part of its key.
    """
    marks, rows = changes.column(ABSENT), changes.drop_columns([ABSENT])
    partial = pc.is_valid(marks)
    if not pc.any(partial).as_py():
        return rows
    names = [name for name in rows.schema.names if name != OP]
    _refuse_partial_keys(marks, [names.index(name) for name in key], base.name)
    before = _in_lake(base, rows.filter(partial), rows.schema, key)
    rows = pa.concat_tables([before, rows])
    marks = pa.chunked_array([pa.nulls(before.num_rows, pa.string()), *marks.chunks])
    by, is_last = in_key_order(rows, key)
    rows, marks = rows.take(pa.array(by)), marks.take(pa.array(by))
    deletes = pc.equal(rows.column(OP), DELETE).to_numpy()
    shown = is_last if base.mode == "soft_delete" else is_last & ~deletes
    begins = _begins(is_last, deletes)
    for number, name in enumerate(names):
        mark = pc.fill_null(pc.utf8_slice_codeunits(marks, number, number + 1), CELL_HERE)
        source = np.maximum.accumulate(np.where(pc.equal(mark, CELL_HERE).to_numpy(), np.arange(len(by)), -1))
        unknown = np.maximum.accumulate(np.where(pc.equal(mark, CELL_UNKNOWN).to_numpy(), np.arange(len(by)), -1))
        if np.any(shown & ((source < begins) | (unknown > source))):
            raise not_fresh(f"a row has no value of column {name} (binlog_row_image is not FULL)", base.name)
        column = rows.column(name).take(pa.array(np.maximum(source, 0)))
        rows = rows.set_column(rows.schema.get_field_index(name), rows.schema.field(name), column)
    return rows.filter(pa.array(by >= before.num_rows))


def _refuse_partial_keys(marks: pa.ChunkedArray, numbers: Sequence[int], table: str) -> None:
    for number in numbers:
        cells = pc.utf8_slice_codeunits(marks, number, number + 1)
        if pc.any(pc.not_equal(cells, CELL_HERE)).as_py():
            raise not_fresh("a row lacks a part of its key", table)


def _begins(is_last: NDArray[np.bool_], deletes: NDArray[np.bool_]) -> Numbers:
    """Return for each row the first one of whose cells it may take: after a delete, and of its own key."""
    fresh = np.append(True, is_last[:-1] | deletes[:-1])
    begins: Numbers = np.maximum.accumulate(np.where(fresh, np.arange(len(fresh)), 0))
    return begins


def _in_lake(base: PinnedSnapshot, partial: pa.Table, schema: pa.Schema, key: Sequence[str]) -> pa.Table:
    """Return the lake's rows of the keys of incomplete changes, as changes."""
    keys = {
        one.order: one
        for one in map(base.key.parse, zip(*(partial.column(name).to_pylist() for name in key), strict=True))
    }
    found, _ = Many(base, list(keys.values()), everything=True).read(base.columns.choose(None))
    ops = pa.repeat(_IN_LAKE, found.num_rows)
    if base.mode == "soft_delete" and IS_DELETED in found.schema.names:
        ops = pc.if_else(pc.fill_null(found.column(IS_DELETED), False), DELETE, ops)
    if OP in found.schema.names:
        found = found.drop_columns([OP])
    return found.append_column(OP, ops).select(schema.names).cast(schema)
