"""Resnapshot, a new snapshot that replaces a table's rows: pure decisions over the drain cursor.

From a position on, the lake merges nothing of the table. The snapshot, which is read later, replaces all rows in the lake.
The record is that of a quarantined and released table, without a fault.
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
from cdc_lib.quarantine.records import Unmerged, cancel_task, state_at


@dataclass(frozen=True, slots=True)
class ResnapshotRequest:
    """A request for new snapshots of tables.

    Args:
        why: the reason, for people.
        at: now (UTC).
        by: who requests it.
        start: of a window: its changes of the tables and all later ones are left out. None for all changes that the lake
            does not have.
        replaces: whether the lake table begins again with the snapshot, without the history that it keeps.
    """

    why: str
    at: datetime
    by: str
    start: Position | None = None
    replaces: bool = False


def with_new_snapshot(
    cursor: Cursor, table: TableName, lake: Cursor, unmerged: Mapping[TableName, Unmerged], request: ResnapshotRequest
) -> Cursor:
    """Return the drain cursor with a request for a new snapshot of a table; the next plan starts the snapshot.

    Requests of several windows, and faults that quarantine tables, come in the order of the windows. The cursor is unchanged
    if the table is quarantined, is already requested from the position on, or has a snapshot that is read after the position.
    A snapshot that the lake does not have yet is cancelled if the new one begins before its last chunk.

    Args:
        cursor: after the acknowledged windows.
        table: ``database.table``.
        lake: the lake's cursor; its merge in flight may be planned again.
        unmerged: by table, the last snapshot that the lake neither has nor has in flight.
        request: the request.
    """
    start = request.start
    last = cursor.quarantine_record(table)
    if last is not None and _begins_too_late(last, lake, start):
        cursor = replace(cursor, quarantine=tuple(one for one in cursor.quarantine if one != last))
        last = cursor.quarantine_record(table)
    if last is not None and (last.is_open or (start is not None and last.covers(cursor.epoch, start))):
        return cursor
    epoch, begin = (lake.epoch, lake.position) if start is None else (cursor.epoch, start)
    state = state_at(cursor, table, epoch, begin)
    if waiting := _waiting(cursor, table, lake, unmerged, start):
        for task in waiting:
            cursor = cancel_task(cursor, task)
        ids = {task.snapshot_id for task in waiting}
        epoch, begin = lake.epoch, lake.position
        state = state_at(cursor, table, epoch, begin, ids)
        if start is not None and last is not None and last.released_position is not None and last.snapshot_id in ids:
            # The table waits for this snapshot since an earlier record, which the new one continues.
            epoch, begin, state = last.released_epoch, last.released_position, last.as_of
    record = QuarantineRecord(
        table,
        epoch,
        begin,
        state,
        begin,
        None,
        None,
        request.at,
        request.by,
        why=request.why,
        replaces=request.replaces,
    )
    return replace(cursor, quarantine=(*cursor.quarantine, record))


def _begins_too_late(last: QuarantineRecord, lake: Cursor, start: Position | None) -> bool:
    """Whether a requested snapshot starts at a position that the lake has not reached, so it would come too late."""
    return start is None and last.is_open and last.fault is None and not last.begins_by(lake.epoch, lake.position)


def _waiting(
    cursor: Cursor, table: TableName, lake: Cursor, unmerged: Mapping[TableName, Unmerged], start: Position | None
) -> list[SnapshotTask]:
    """Return the snapshots of a table that need the changes that are now excluded."""
    if start is not None:
        last = unmerged.get(table)
        return [last.task] if last is not None and last.needs(start) else []
    merged = {task.id: task.chunks for task in lake.snapshots}
    tasks = (task for task in cursor.snapshots if task.name == table and not task.cancelled)
    return [task for task in tasks if not task.complete or task.chunks > merged.get(task.id, 0)]
