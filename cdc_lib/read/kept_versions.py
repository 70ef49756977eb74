"""Versions of a row that its lake table keeps: all versions in ``scd2`` mode, all changes in ``append`` mode."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from cdc_lib.apply.key_rows import RowKey
from cdc_lib.merge.collapse import DELETE, INSERT
from cdc_lib.model.lake_table import MODE_COLUMNS, ORDER
from cdc_lib.model.manifest import OP, TS
from cdc_lib.model.table_mode import RESET, VALID_FROM
from cdc_lib.read.columns import ReadColumn, in_order
from cdc_lib.read.lookup import find
from cdc_lib.read.snapshot import PinnedSnapshot

CHANGED = "_changed"
"""The column that names what a version changed. No column of a lake table has this name."""

TIMES = {"scd2": VALID_FROM, "append": TS}
"""By mode that keeps versions: the column with the commit time of the change that made the version."""


def kept_versions(snapshot: PinnedSnapshot, key: RowKey | None, chosen: Sequence[ReadColumn]) -> pa.Table:
    """Return the versions of a row, newest first.

    Args:
        snapshot: of a table in ``scd2`` or ``append`` mode.
        key: of the row; None for one that no row can have.
        chosen: the columns to return.

    Returns:
        These columns, the commit time, and ``_changed``: the names of the source's columns that differ from the version before, of those
        that can be read; null if there is none, or the row was inserted or deleted.

    Raises:
        StoreError: a file cannot be read.
    """
    columns = snapshot.columns.readable
    hits = find(snapshot, key, everything=True) if key is not None else ()
    rows = in_order([snapshot.read(group, found, columns) for group, found in hits], columns)
    newest = rows.sort_by([(name, "descending") for name in ORDER])
    names = dict.fromkeys([*(column.name for column in chosen), TIMES[snapshot.mode]])
    return newest.select(list(names)).append_column(CHANGED, _changed(newest, snapshot.mode))


def within(rows: pa.Table, column: str, since: datetime | None, until: datetime | None) -> pa.Table:
    """Return the rows whose time is ``since`` or later, and before ``until``."""
    if since is not None:
        rows = rows.filter(pc.greater_equal(rows.column(column), pa.scalar(since, rows.schema.field(column).type)))
    if until is not None:
        rows = rows.filter(pc.less(rows.column(column), pa.scalar(until, rows.schema.field(column).type)))
    return rows


def differs_from_next(column: pa.ChunkedArray) -> list[bool]:
    """Return for each value but the last whether it differs from the next one; NULL equals NULL."""
    values = column.combine_chunks()
    one, other = values[:-1], values[1:]
    unequal = pc.fill_null(pc.not_equal(one, other), False)
    found: list[bool] = pc.or_(unequal, pc.xor(pc.is_valid(one), pc.is_valid(other))).to_pylist()
    return found


def _changed(newest: pa.Table, mode: str) -> pa.Array:
    metadata = MODE_COLUMNS[mode]  # type: ignore[index]
    differ = {name: differs_from_next(newest.column(name)) for name in newest.column_names if name not in metadata}
    ops = newest.column(OP).to_pylist()
    first = [
        op in (INSERT, DELETE, RESET) or before in (DELETE, RESET, None)
        for op, before in zip(ops, [*ops, None][1:], strict=True)
    ]
    changed = [
        None if is_first else [name for name in differ if differ[name][number]] for number, is_first in enumerate(first)
    ]
    return pa.array(changed, pa.list_(pa.string()))
