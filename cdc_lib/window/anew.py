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

    A table that is set aside, or wanted anew already, stays as it is, and so does one whose snapshot is read behind the place
    anyway. A snapshot that the lake does not have yet is given up when the new one begins before its last chunk.

    Args:
        cursor: behind the windows that are acknowledged.
        table: ``database.table``.
        lake: the lake's cursor; what it has in flight may be planned anew.
        unmerged: by table, the last snapshot that the lake does not have.
        start: of a window: nothing of the table in it or behind it counts. None for all that the lake does not have.
        why: the reason, for people.
        at: now (UTC).
        by: who asks.
    """
    last, waiting = cursor.aside_of(table), unmerged.get(table)
    if last is not None and (last.open or (start is not None and last.covers(cursor.epoch, start))):
        return cursor
    epoch, begin = (lake.epoch, lake.position) if start is None else (cursor.epoch, start)
    stands = begin
    if waiting is not None and waiting.needs(start):
        cursor = given_up(cursor, waiting.task)
        if last is not None and last.until is not None and last.snapshot_id == waiting.task.snapshot_id:
            epoch, begin, stands = last.until_epoch, last.until, last.stands
        else:
            epoch, begin, stands = lake.epoch, lake.position, lake.position
    record = Aside(table, epoch, begin, stands, begin, None, None, at, by, why=why)
    return replace(cursor, aside=(*cursor.aside, record))
