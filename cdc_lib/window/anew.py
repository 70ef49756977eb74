"""A new snapshot of a table that has one, or had one: pure decisions over the drain cursor.

From a place on the lake takes nothing of the table; the snapshot, which is read behind that, brings it whole, and takes out
of the lake what the source no longer has. That is the stretch of a table that was set aside and released, without a fault.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from cdc_lib.model.aside import Aside
from cdc_lib.model.cursor import Cursor
from cdc_lib.model.position import Position
from cdc_lib.model.window import SnapshotTask
from cdc_lib.window.aside import Unmerged, given_up


def with_new_snapshot(
    cursor: Cursor,
    table: str,
    lake: Cursor,
    unmerged: Mapping[str, Unmerged],
    *,
    start: Position | None = None,
    why: str,
    at: datetime,
    by: str,
) -> Cursor:
    """Return the drain cursor that wants a new snapshot of a table; the next plan asks for it.

    Of several windows, what an earlier one tells comes first, faults that set tables aside among it. A table that is set
    aside, or wanted anew already from the place on, stays as it is, and so does one whose snapshot is read behind the place
    anyway. A snapshot that the lake does not have yet is given up when the new one begins before its last chunk.

    Args:
        cursor: behind the windows that are acknowledged.
        table: ``database.table``.
        lake: the lake's cursor; what it has in flight may be planned anew.
        unmerged: by table, the last snapshot that the lake neither has nor has in flight.
        start: of a window: nothing of the table in it or behind it counts. None for all that the lake does not have.
        why: the reason, for people.
        at: now (UTC).
        by: who asks.
    """
    last = cursor.aside_of(table)
    if last is not None and _begins_too_late(last, lake, start):
        cursor = replace(cursor, aside=tuple(one for one in cursor.aside if one != last))
        last = cursor.aside_of(table)
    if last is not None and (last.open or (start is not None and last.covers(cursor.epoch, start))):
        return cursor
    epoch, begin = (lake.epoch, lake.position) if start is None else (cursor.epoch, start)
    stands = begin
    if waiting := _waiting(cursor, table, lake, unmerged, start):
        for task in waiting:
            cursor = given_up(cursor, task)
        epoch, begin, stands = lake.epoch, lake.position, lake.position
        if last is not None and last.until is not None and last.snapshot_id in {task.snapshot_id for task in waiting}:
            # The table waits for this snapshot since an earlier stretch, which the new one goes on.
            if start is not None:
                epoch, begin = last.until_epoch, last.until
            if start is not None or last.begins_by(lake.epoch, lake.position):
                stands = last.stands
    record = Aside(table, epoch, begin, stands, begin, None, None, at, by, why=why)
    return replace(cursor, aside=(*cursor.aside, record))


def _begins_too_late(last: Aside, lake: Cursor, start: Position | None) -> bool:
    """Whether a snapshot is wanted already, and the lake first has to merge what this one is to replace."""
    return start is None and last.open and last.fault is None and not last.begins_by(lake.epoch, lake.position)


def _waiting(
    cursor: Cursor, table: str, lake: Cursor, unmerged: Mapping[str, Unmerged], start: Position | None
) -> list[SnapshotTask]:
    """Return the snapshots of a table that would need what is left out now."""
    if start is not None:
        last = unmerged.get(table)
        return [last.task] if last is not None and last.needs(start) else []
    merged = {task.id: task.chunks for task in lake.snapshots}
    mine = (task for task in cursor.snapshots if task.name == table and not task.given_up)
    return [task for task in mine if not task.complete or task.chunks > merged.get(task.id, 0)]
