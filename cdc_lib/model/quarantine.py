"""Tables that are quarantined because something of them is not understood, while the others continue.

A window leaves out the rows of such a table from its start on. The drain cursor remembers from where on the table is left
out, so that later windows, whoever drained them and when, bring nothing of it. A new snapshot brings its rows back.

A table whose snapshot is taken again has a record of the same kind without a fault: its windows are drained as ever, and the
lake takes nothing of them, because the snapshot brings what they did.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime

from cdc_lib.errors import TableReplaced
from cdc_lib.model.position import Point, Position
from cdc_lib.model.table_name import TableName


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a table was quarantined.

    Args:
        position: of an event that is at fault; of several in a window it may be any. A snapshot's: its low watermark.
        code: of the error, see :mod:`cdc_lib.errors`; a newer release may have written one that is not known here.
        reason: its message, without any value of a row.
        hint: what to do about it; empty when nothing can be said.
    """

    position: Position
    code: str
    reason: str
    hint: str = ""


def is_replaced(fault: Fault) -> bool:
    """Whether nothing is wrong but that the binlog does not hold the table's rows: it is released automatically."""
    return fault.code == TableReplaced.code


@dataclass(frozen=True, slots=True)
class QuarantinedTable:
    """A table that is at fault in a batch, which leaves out its rows.

    Args:
        table: ``database.table`` at the source.
        fault: what was found in this batch.
    """

    table: TableName
    fault: Fault


@dataclass(frozen=True, slots=True)
class QuarantineRecord:
    """A stretch of the binlog in which nothing of one table reaches the lake.

    Args:
        table: ``database.table`` at the source.
        epoch: of ``start``.
        start: where it begins, a transaction boundary.
        as_of: the lake table is as of this position: ``start``, or where an earlier stretch began that this one continues.
            Without a fault it stands there at least: a merge that was under way may have brought it further.
        skip_decode_from: windows that start here or later were planned knowing of it, and do not decode the table at all; with a fault
            alone.
        fault: why; None when nothing is wrong, and somebody wants a new snapshot of the table.
        oldest_missing_commit: commit time of the first change that may be missing; None when it is not known.
        at: when it was recorded (UTC).
        by: who recorded it.
        released_position: where it ends: the table was released there; None while it is quarantined.
        released_epoch: of ``released_position``.
        snapshot_id: the snapshot that was asked for at the release; empty when the table was gone by then.
        released_at: when it was released (UTC).
        released_by: who released it.
        why: without a fault: why there is to be a new snapshot.
        skip_decode_epoch: of ``skip_decode_from``; 0 for that of ``start``.
    """

    table: TableName
    epoch: int
    start: Position
    as_of: Position
    skip_decode_from: Position
    fault: Fault | None
    oldest_missing_commit: datetime | None
    at: datetime
    by: str = ""
    released_position: Position | None = None
    released_epoch: int = 0
    snapshot_id: str = ""
    released_at: datetime | None = None
    released_by: str = ""
    why: str = ""
    skip_decode_epoch: int = 0

    @property
    def is_open(self) -> bool:
        """Whether it has no end yet: the table is quarantined still, or the next plan asks for its new snapshot."""
        return self.released_position is None

    def covers(self, epoch: int, start: Position) -> bool:
        """Whether rows of windows that start here are left out."""
        ends = Point.at(self.released_epoch, self.released_position) if self.released_position is not None else None
        return self.begins_by(epoch, start) and (ends is None or Point.at(epoch, start) < ends)

    def begins_by(self, epoch: int, position: Position) -> bool:
        """Whether it begins there or before."""
        return Point.at(self.epoch, self.start) <= Point.at(epoch, position)

    def skips_decode(self, epoch: int, start: Position) -> bool:
        """Whether a window that starts here does not decode the table; never changes for a planned window."""
        unread = Point.at(self.skip_decode_epoch or self.epoch, self.skip_decode_from)
        known = self.fault is not None and unread <= Point.at(epoch, start)
        return known and self.covers(epoch, start)


def excluded_tables(records: Iterable[QuarantineRecord], epoch: int, start: Position) -> frozenset[TableName]:
    """Return the tables of which nothing counts in a window that starts here."""
    return frozenset(one.table for one in records if one.covers(epoch, start))


def to_reach(
    records: Iterable[QuarantineRecord], table: str, snapshot_id: str, epoch: int, position: Position
) -> QuarantineRecord | None:
    """Return the record that a lake which is at a position must come to before it may take a snapshot; None if it may.

    What the snapshot replaces begins there. A row that comes with a change before that, and goes after it, would stay
    if the change were merged together with the snapshot or later: its delete does not count.

    Args:
        records: of a cursor.
        table: ``database.table``.
        snapshot_id: of the snapshot.
        epoch: of the position.
        position: where the lake is.
    """
    asked = (one for one in records if one.table == table and one.snapshot_id == snapshot_id)
    return next((one for one in asked if not one.begins_by(epoch, position)), None)


@dataclass(frozen=True, slots=True)
class LaggingTable:
    """A lake table that is as of an earlier position than the others, or waits for a new snapshot.

    Args:
        table: ``database.table`` at the source.
        position: everything of the table before it is in the lake, nothing after it; see :attr:`QuarantineRecord.as_of`.
        last: the last record of the table.
    """

    table: TableName
    position: Position
    last: QuarantineRecord


def lagging_tables(records: Iterable[QuarantineRecord], merged: Collection[str]) -> tuple[LaggingTable, ...]:
    """Return the tables that are quarantined, and those that are released and wait for their snapshot, by name.

    Args:
        records: of a cursor, in the order in which they were made.
        merged: ids of the snapshots that are in the lake, or are brought there.
    """
    found: dict[str, LaggingTable] = {}
    for one in records:
        if one.is_open or (one.snapshot_id and one.snapshot_id not in merged):
            before = found.get(one.table)
            # A new snapshot may be wanted from before an earlier stretch on.
            goes_on = before is not None and not one.begins_by(before.last.epoch, before.last.start)
            found[one.table] = LaggingTable(one.table, before.position if before and goes_on else one.as_of, one)
        else:
            found.pop(one.table, None)
    return tuple(found[table] for table in sorted(found))
