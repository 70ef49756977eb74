"""From where on a table is left out, and up to where: pure decisions over the drain cursor.

Law: the lake table of a table that is quarantined shows a state that the source table had at one position, and the record
names it. So everything after that position is left out until a snapshot brings the table again, and a snapshot whose rows
need changes that are left out is not merged at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from cdc_lib.model.cursor import Cursor
from cdc_lib.model.position import Position
from cdc_lib.model.quarantine import Fault, QuarantineRecord
from cdc_lib.model.table_name import TableName
from cdc_lib.model.window import SnapshotTask


@dataclass(frozen=True, slots=True)
class FaultyTable:
    """A table at fault in something that is acknowledged.

    Args:
        table: ``database.table``.
        fault: why.
        start: of the window; None when a snapshot of the table is at fault.
        oldest_missing_commit: commit time of the window's first event.
    """

    table: TableName
    fault: Fault
    start: Position | None
    oldest_missing_commit: datetime | None


@dataclass(frozen=True, slots=True)
class Unmerged:
    """A snapshot that the lake does not have.

    Args:
        task: the snapshot.
        high: its last chunk's high watermark; None while it is unfinished.
    """

    task: SnapshotTask
    high: Position | None

    def needs(self, start: Position | None) -> bool:
        """Whether its rows are those of one moment only together with the changes from a position on."""
        return start is None or self.high is None or start < self.high


def quarantine(
    cursor: Cursor,
    found: FaultyTable,
    unmerged: Mapping[TableName, Unmerged],
    reached: tuple[int, Position],
    *,
    at: datetime,
    by: str,
) -> Cursor:
    """Return the drain cursor with a table quarantined.

    Args:
        cursor: after the windows that are acknowledged.
        found: the table and where it is at fault.
        unmerged: by table, the last snapshot that the lake does not have.
        reached: an epoch and a position in it: the lake has all windows before it, and none after it.
        at: now (UTC).
        by: who asks.
    """
    last, waiting = cursor.quarantine_record(found.table), unmerged.get(found.table)
    if last is not None and (last.is_open or (found.start is not None and last.covers(cursor.epoch, found.start))):
        return cursor
    epoch, start = reached if found.start is None else (cursor.epoch, found.start)
    state = start
    if waiting is not None and waiting.needs(found.start):
        cursor = given_up(cursor, waiting.task)
        if last is not None and last.released_position is not None and last.snapshot_id == waiting.task.snapshot_id:
            epoch, start, state = last.released_epoch, last.released_position, last.as_of
        else:
            # Where a server took over the lake may be in the epoch before.
            epoch, start = min((epoch, start), reached)
            state = start
    unread = cursor.in_flight[-1].stop if cursor.in_flight else cursor.position
    record = QuarantineRecord(
        found.table,
        epoch,
        start,
        state,
        unread,
        found.fault,
        found.oldest_missing_commit,
        at,
        by,
        skip_decode_epoch=cursor.epoch,
    )
    return replace(cursor, quarantine=(*cursor.quarantine, record))


def given_up(cursor: Cursor, task: SnapshotTask) -> Cursor:
    """Return the drain cursor without a snapshot: of no chunk, neither the drain nor a merge continues with it."""
    return cursor.with_snapshot(replace(task, chunks=0, complete=True))


def resume(cursor: Cursor, table: str, until: Position, task: SnapshotTask | None, *, at: datetime, by: str) -> Cursor:
    """Return the drain cursor with a table that continues at a position; as it was where the table has no open record.

    Args:
        cursor: whose windows in flight all end before it, or there.
        table: ``database.table``.
        until: the position.
        task: the snapshot that brings the table again; None when the source has no such table any more.
        at: now (UTC).
        by: who asks.
    """
    record = cursor.quarantine_record(table)
    if record is None or not record.is_open:
        return cursor
    released = replace(
        record, released_position=until, released_epoch=cursor.epoch, snapshot_id=task.snapshot_id if task else "", released_at=at,
        released_by=by,
    )  # fmt: skip
    cursor = replace(cursor, quarantine=tuple(released if one == record else one for one in cursor.quarantine))
    return cursor if task is None else cursor.with_snapshot(task)


def bounded(cursor: Cursor, binlog_end: Position) -> Position:
    """Return up to where windows may be planned: one ends where a table continues."""
    ends = [
        one.released_position
        for one in cursor.quarantine
        if one.released_position is not None and one.released_epoch == cursor.epoch
    ]
    return min([binlog_end, *(end for end in ends if cursor.position < end)])
