"""Versions of one row: the lake's row and the changes in batches as one list; what differs between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdc_lib.apply.rows import order_of
from cdc_lib.merge.collapse import DELETE, INSERT, READ
from cdc_lib.model.lake_table import ORDER
from cdc_lib.model.manifest import GTID, OP, ROW, TS
from cdc_lib.model.position import SNAPSHOT_ROW, Point
from cdc_lib.model.table_mode import IS_DELETED, RESET, STATEMENT_ROW
from cdc_lib.read.archive.reach import Reach
from cdc_lib.read.archive.rows import KeyChanges, VersionShape
from cdc_lib.read.kept_versions import CHANGED, differs_from_next

_CREATED = "created"
"""``_op`` of a statement that created the table: it is not shown, and tells that no row existed."""

_GONE = (DELETE, RESET, _CREATED)


@dataclass(frozen=True, slots=True)
class ArchivedVersions:
    """Versions of a row.

    Args:
        rows: newest first. ``_op`` (``c``, ``u``, ``d``; ``r`` for a row that was read by SELECT; ``t`` for a TRUNCATE, a DROP or a CREATE
            OR REPLACE, without values, or a row of a ``soft_delete`` table that a new snapshot lacked; null for the lake's row if its
            change is in no batch any more), ``_ts`` (commit time), ``_gtid``,
            the order key, the source's columns, and ``_changed``: the names of the columns that differ from the version before, null
            if there is none, it is not known, or the row was inserted or deleted. A deleted row has its last values.
        complete_since: commit time from which on no version is missing; None if no change is known.
        complete_from: the point in the binlog for it.
        why: why earlier ones are not known.
        chunks: id of the batch of each row that a stored snapshot read, by its low watermark.
    """

    rows: pa.Table
    complete_since: datetime | None
    complete_from: Point
    why: str
    chunks: Mapping[Point, str]


def with_lake_row(changes: KeyChanges, row: pa.Table, shape: VersionShape) -> KeyChanges:
    """Return changes with the lake's row of the key, unless the change that wrote it is among them.

    Args:
        changes: of the key.
        row: the lake's row; empty if there is none.
        shape: of versions.
    """
    shaped = shape.rows(row)
    known = set(zip(*(part.tolist() for part in order_of(changes.rows)), strict=True))
    if not shaped.num_rows or tuple(int(part[0]) for part in order_of(shaped)) in known:
        return changes
    op = _op_of(row, shaped)
    shaped = shaped.set_column(shaped.schema.get_field_index(OP), shaped.schema.field(OP), pa.array([op], pa.string()))
    if op == RESET:
        shaped = shape.rows(shaped.select([field.name for field in shape.change]))
    return KeyChanges(pa.concat_tables([changes.rows, shaped]), (*changes.columns, _all_of(shape)))


def _op_of(row: pa.Table, shaped: pa.Table) -> str | None:
    """Return what made the lake's row, as far as it shows that; a row that is marked as deleted has its last values."""
    number = shaped.column(ROW)[0].as_py()
    if IS_DELETED in row.column_names and row.column(IS_DELETED)[0].as_py():
        return RESET if number == STATEMENT_ROW else DELETE
    return READ if number == SNAPSHOT_ROW else None


def with_resets(changes: KeyChanges, reach: Reach, shape: VersionShape) -> KeyChanges:
    """Return changes with the statements after which the table was empty.

    Args:
        changes: of the key.
        reach: has the statements.
        shape: of versions.
    """
    entries: list[dict[str, Any]] = [
        {OP: RESET if one in reach.removals else _CREATED, TS: one.at, GTID: one.gtid or None}
        | dict(zip(ORDER, (one.epoch, one.file, one.offset, STATEMENT_ROW), strict=True))
        for one in reach.resets
    ]
    rows = pa.Table.from_pylist(entries, shape.schema)
    return KeyChanges(pa.concat_tables([changes.rows, rows]), (*changes.columns, *[_all_of(shape)] * len(entries)))


def last_with_row(changes: KeyChanges) -> Point | None:
    """Return the position of the last change if a row exists after it; None if no change is known, or the row was deleted."""
    if not changes.rows.num_rows:
        return None
    newest = _newest_first(changes)[0].slice(0, 1)
    place = (int(part[0]) for part in order_of(newest)[:3])
    return None if newest.column(OP)[0].as_py() in _GONE else Point(*place)


def with_delete(changes: KeyChanges, at: Point, time: datetime | None, shape: VersionShape) -> KeyChanges:
    """Return changes with the delete of a row that a range of keys, read again, did not have any more.

    Args:
        changes: of the key; a row exists after the last one.
        at: low watermark of the snapshot.
        time: when it was read.
        shape: of versions.
    """
    newest, columns = _newest_first(changes)
    place = dict(zip(ORDER, (*at, SNAPSHOT_ROW), strict=True))
    entry = newest.slice(0, 1).to_pylist()[0] | {OP: DELETE, TS: time, GTID: None} | place
    row = pa.Table.from_pylist([entry], shape.schema)
    return KeyChanges(pa.concat_tables([changes.rows, row]), (*changes.columns, columns[0]))


def compared(changes: KeyChanges, shape: VersionShape) -> pa.Table:
    """Return changes newest first, with the columns that each one changed.

    A statement that removed all rows is left out if the row was deleted before, and a row that was read by SELECT if it shows what
    the version before it shows.
    """
    rows, columns = _newest_first(changes)
    ops = rows.column(OP).to_pylist()
    differ = {one.name: differs_from_next(rows.column(one.name)) for one in shape.source}
    changed: list[list[str] | None] = []
    kept = []
    for number, (op, before) in enumerate(zip(ops, [*ops, None][1:], strict=True)):
        if op == _CREATED or (op == RESET and before in _GONE):
            continue
        is_first = number + 1 == len(ops) or before in _GONE
        if op == READ and not is_first and not any(one[number] for one in differ.values()):
            continue
        kept.append(number)
        if is_first or op in (INSERT, *_GONE):
            changed.append(None)
        else:
            both = columns[number] & columns[number + 1]
            changed.append([name for name in differ if differ[name][number] and name.lower() in both])
    names = pa.array(changed, pa.list_(pa.string()))
    return rows.take(pa.array(kept, pa.int64())).append_column(pa.field(CHANGED, names.type), names)


def _newest_first(changes: KeyChanges) -> tuple[pa.Table, list[frozenset[str]]]:
    """Of two changes with one order key, the one that is no delete is the later one."""
    kept = pc.fill_null(pc.not_equal(changes.rows.column(OP), DELETE), True).to_numpy()
    numbers = np.lexsort((kept, *reversed(order_of(changes.rows))))[::-1]
    return changes.rows.take(pa.array(numbers)), [changes.columns[number] for number in numbers.tolist()]


def _all_of(shape: VersionShape) -> frozenset[str]:
    return frozenset(one.name.lower() for one in shape.source)
