"""Start and end of a table's quarantine: pure decisions over the drain cursor.

Law: the lake table of a quarantined table is as of one position of the source, which the record names. So all later changes
are left out until a new snapshot replaces the table, and a snapshot whose rows need excluded changes is not merged.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from cdc_lib.errors import ConfigError
from cdc_lib.model.cursor import Cursor
from cdc_lib.model.position import Position
from cdc_lib.model.quarantine import Fault, QuarantineRecord
from cdc_lib.model.table_name import TableName
from cdc_lib.model.window import SnapshotTask


@dataclass(frozen=True, slots=True)
class FaultyTable:
    """A table with a fault in an acknowledged window or snapshot.

    Args:
        table: ``database.table``.
        fault: the reason.
        start: of the window; None if a snapshot of the table has the fault.
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
        """Whether its rows are consistent only together with the changes from a position on."""
        return start is None or self.high is None or start < self.high


def quarantine(
    cursor: Cursor,
    faulty: FaultyTable,
    unmerged: Mapping[TableName, Unmerged],
    reached: tuple[int, Position],
    *,
    at: datetime,
    by: str,
    stopped: bool = False,
) -> Cursor:
    """Return the drain cursor with a table quarantined.

    Args:
        cursor: after the windows that are acknowledged.
        faulty: the table and its fault.
        unmerged: by table, the last snapshot that the lake does not have.
        reached: epoch and position of the lake: it has all windows before it, and none after it.
        at: now (UTC).
        by: who requests it.
        stopped: whether the lake takes no change of the table from the reached position on, because a merge fails with it or
            it stopped at a statement.
    """
    last, waiting = cursor.quarantine_record(faulty.table), unmerged.get(faulty.table)
    # A record of a later window begins where the lake is: its snapshot then includes what the merge could not bring.
    later = last if last is not None and last.is_open and stopped and not last.begins_by(*reached) else None
    if later is not None:
        cursor = replace(cursor, quarantine=tuple(one for one in cursor.quarantine if one != later))
        last = cursor.quarantine_record(faulty.table)
    elif last is not None and (last.is_open or (faulty.start is not None and last.covers(cursor.epoch, faulty.start))):
        return cursor
    epoch, start = reached if faulty.start is None else (cursor.epoch, faulty.start)
    if stopped:
        epoch, start = min((epoch, start), reached)
    continued = None
    # Without a start the fault may be the snapshot's own, although it needs no window.
    if waiting is not None and waiting.needs(None if faulty.start is None else start):
        cursor = cancel_task(cursor, waiting.task)
        if last is not None and last.released_position is not None and last.snapshot_id == waiting.task.snapshot_id:
            continued = last
            if not stopped:
                epoch, start = last.released_epoch, last.released_position
        else:
            # After a failover the lake may still be in the previous epoch.
            epoch, start = min((epoch, start), reached)
    if continued is not None and continued.begins_by(epoch, start):
        state = continued.as_of
    else:
        state = state_at(cursor, faulty.table, epoch, start)
    record = later or QuarantineRecord(
        faulty.table,
        epoch,
        start,
        state,
        _planned_to(cursor),
        faulty.fault,
        faulty.oldest_missing_commit,
        at,
        by,
        skip_decode_epoch=cursor.epoch,
    )
    return replace(cursor, quarantine=(*cursor.quarantine, replace(record, epoch=epoch, start=start, as_of=state)))


def state_at(
    cursor: Cursor, table: TableName, epoch: int, position: Position, waiting: Collection[str] = ()
) -> Position:
    """Return up to where the lake has the changes of a table when it is at a position: less far if a record excludes some.

    Args:
        cursor: the drain cursor.
        table: the table.
        epoch: of the position.
        position: of the lake.
        waiting: ids of the table's snapshots that the lake does not have, and that replace what a record excludes.
    """
    records = [one for one in cursor.quarantine if one.table == table and one.begins_by(epoch, position)]
    oldest = next((one for one in records if one.snapshot_id in waiting), None)
    covering = next((one for one in reversed(records) if one.covers(epoch, position)), None)
    record = oldest or covering
    return position if record is None else record.as_of


def cancel_task(cursor: Cursor, task: SnapshotTask) -> Cursor:
    """Return the drain cursor with a snapshot marked as cancelled: it has no chunk, and nothing continues it."""
    return cursor.with_snapshot(replace(task, chunks=0, complete=True))


def open_record(cursor: Cursor, table: TableName) -> QuarantineRecord:
    """Return the record of a quarantined table.

    Args:
        cursor: the drain cursor.
        table: its name.

    Raises:
        ConfigError: the table is not quarantined; the hint has those that are.
    """
    found = {record.table: record for record in cursor.quarantined_tables}
    if table not in found:
        names = ", ".join(found) or "none"
        raise ConfigError(f"{table} is not quarantined", hint=f"Quarantined: {names}.", source=cursor.source)
    return found[table]


def resume(cursor: Cursor, table: str, until: Position, task: SnapshotTask | None, *, at: datetime, by: str) -> Cursor:
    """Return the drain cursor with a table that continues at a position; unchanged if it has no open record.

    Args:
        cursor: its windows in flight end at the position or before it.
        table: ``database.table``.
        until: the position.
        task: the new snapshot of the table; None if the source no longer has the table.
        at: now (UTC).
        by: who requests it.
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


def refuse(cursor: Cursor, table: TableName, fault: Fault, *, at: datetime, by: str) -> Cursor:
    """Return the drain cursor with a table quarantined whose requested snapshot or resume cannot begin; unchanged without an open record.

    Args:
        cursor: the drain cursor.
        table: its name.
        fault: why no snapshot is possible.
        at: now (UTC).
        by: who requests it.
    """
    record = cursor.quarantine_record(table)
    if record is None or not record.is_open:
        return cursor
    refused = replace(record, fault=fault, at=at, by=by)
    if record.fault is None:  # else windows were planned to skip the table
        refused = replace(refused, skip_decode_from=_planned_to(cursor), skip_decode_epoch=cursor.epoch)
    return replace(cursor, quarantine=tuple(refused if one == record else one for one in cursor.quarantine))


def _planned_to(cursor: Cursor) -> Position:
    """Return where the next window begins."""
    return cursor.in_flight[-1].stop if cursor.in_flight else cursor.position


def releases(cursor: Cursor) -> tuple[Position, ...]:
    """Return where windows to come must end, because a table that was left out continues there."""
    ends = {
        one.released_position
        for one in cursor.quarantine
        if one.released_position is not None and one.released_epoch == cursor.epoch
    }
    return tuple(sorted(end for end in ends if cursor.position < end))
