"""A new snapshot of a table that has one, or had one: pure decisions over the drain cursor.

From a place on the lake takes nothing of the table; the snapshot, which is read after that, brings it whole, and takes out
of the lake what the source no longer has. That is the stretch of a table that was quarantined and released, without a fault.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from cdc_lib.model.cursor import Cursor
from cdc_lib.model.position import Position
from cdc_lib.model.quarantine import QuarantineRecord
from cdc_lib.model.table_name import TableName
from cdc_lib.model.window import SnapshotTask
from cdc_lib.quarantine.records import Unmerged, given_up


@dataclass(frozen=True, slots=True)
class ResnapshotRequest:
    """Why tables are to get new snapshots.

    Args:
        why: the reason, for people.
        at: now (UTC).
        by: who asks.
        start: of a window: nothing of the tables in it or after it counts. None for all that the lake does not have.
    """

    why: str
    at: datetime
    by: str
    start: Position | None = None


def with_new_snapshot(
    cursor: Cursor, table: TableName, lake: Cursor, unmerged: Mapping[TableName, Unmerged], request: ResnapshotRequest
) -> Cursor:
    """Return the drain cursor that wants a new snapshot of a table; the next plan asks for it.

    Of several windows, what an earlier one tells comes first, faults that quarantine tables among it. A table that is set
    quarantined, or wanted again already from the place on, stays as it is, and so does one whose snapshot is read after the place
    anyway. A snapshot that the lake does not have yet is given up when the new one begins before its last chunk.

    Args:
        cursor: after the windows that are acknowledged.
        table: ``database.table``.
        lake: the lake's cursor; what it has in flight may be planned again.
        unmerged: by table, the last snapshot that the lake neither has nor has in flight.
        request: who asks, and from where on.
    """
    start = request.start
    last = cursor.quarantine_record(table)
    if last is not None and _begins_too_late(last, lake, start):
        cursor = replace(cursor, quarantine=tuple(one for one in cursor.quarantine if one != last))
        last = cursor.quarantine_record(table)
    if last is not None and (last.is_open or (start is not None and last.covers(cursor.epoch, start))):
        return cursor
    epoch, begin = (lake.epoch, lake.position) if start is None else (cursor.epoch, start)
    state = begin
    if waiting := _waiting(cursor, table, lake, unmerged, start):
        for task in waiting:
            cursor = given_up(cursor, task)
        epoch, begin, state = lake.epoch, lake.position, lake.position
        if (
            last is not None
            and last.released_position is not None
            and last.snapshot_id in {task.snapshot_id for task in waiting}
        ):
            # The table waits for this snapshot since an earlier stretch, which the new one continues.
            if start is not None:
                epoch, begin = last.released_epoch, last.released_position
            if start is not None or last.begins_by(lake.epoch, lake.position):
                state = last.as_of
    record = QuarantineRecord(table, epoch, begin, state, begin, None, None, request.at, request.by, why=request.why)
    return replace(cursor, quarantine=(*cursor.quarantine, record))


def _begins_too_late(last: QuarantineRecord, lake: Cursor, start: Position | None) -> bool:
    """Whether a snapshot is wanted already, and the lake first has to merge what this one is to replace."""
    return start is None and last.is_open and last.fault is None and not last.begins_by(lake.epoch, lake.position)


def _waiting(
    cursor: Cursor, table: TableName, lake: Cursor, unmerged: Mapping[TableName, Unmerged], start: Position | None
) -> list[SnapshotTask]:
    """Return the snapshots of a table that would need what is left out now."""
    if start is not None:
        last = unmerged.get(table)
        return [last.task] if last is not None and last.needs(start) else []
    merged = {task.id: task.chunks for task in lake.snapshots}
    mine = (task for task in cursor.snapshots if task.name == table and not task.given_up)
    return [task for task in mine if not task.complete or task.chunks > merged.get(task.id, 0)]
