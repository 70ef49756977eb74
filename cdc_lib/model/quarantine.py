"""Quarantined tables: a fault stops one table, and the others continue.

A window leaves out all rows of such a table. The drain cursor records from where on the table is left out. So the merge
ignores its rows in later windows, even if those were drained before. A new snapshot restores the table.

A table with a requested new snapshot has the same kind of record, without a fault: its windows are still drained, but the lake
merges none of its rows, because the snapshot includes them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime

from cdc_lib.errors import DateInKey, TableReplaced
from cdc_lib.model.position import Point, Position
from cdc_lib.model.table_name import TableName


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a table was quarantined.

    Args:
        position: position of a faulty event; any one if a window has several. For a snapshot: its low watermark.
        code: code of the error, see :mod:`cdc_lib.errors`; a newer release may have written one that is not known here.
        reason: message of the error, without row values.
        hint: what to do about it; may be empty.
        rows_of: of a lost mask: the tables whose rows the table may have; the table itself if its own columns have other names.
    """

    position: Position
    code: str
    reason: str
    hint: str = ""
    rows_of: tuple[TableName, ...] = ()


def is_replaced(fault: Fault) -> bool:
    """Whether a new snapshot cures the fault: the table is released automatically."""
    return fault.code in (TableReplaced.code, DateInKey.code)


@dataclass(frozen=True, slots=True)
class QuarantinedTable:
    """A table with a fault in a batch, which leaves out its rows.

    Args:
        table: ``database.table`` at the source.
        fault: the fault in this batch.
    """

    table: TableName
    fault: Fault


@dataclass(frozen=True, slots=True)
class QuarantineRecord:
    """A binlog range in which one table's changes do not reach the lake.

    Args:
        table: ``database.table`` at the source.
        epoch: epoch of ``start``.
        start: where it begins, a transaction boundary.
        as_of: the lake table is as of this position: ``start``, or the start of an earlier range that this one continues.
            It may be further: a merge that was withdrawn may have moved it.
        skip_decode_from: windows from here on were planned after the record was made and do not decode the table; only with a
            fault.
        fault: the fault; None if only a new snapshot of the table was requested.
        oldest_missing_commit: commit time of the first change that may be missing; None if unknown.
        at: when it was recorded (UTC).
        by: who recorded it.
        released_position: where it ends: the table was released there; None while it is quarantined.
        released_epoch: epoch of ``released_position``.
        snapshot_id: the snapshot that was requested at the release; empty if the table did not exist then.
        released_at: when it was released (UTC).
        released_by: who released it.
        why: without a fault: the reason of the new snapshot.
        skip_decode_epoch: epoch of ``skip_decode_from``; 0 for that of ``start``.
        replaces: without a fault: whether the lake table begins again with the snapshot, without the history that it keeps.
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
    replaces: bool = False

    @property
    def is_open(self) -> bool:
        """Whether it has no end yet: the table is still quarantined, or its new snapshot is not planned yet."""
        return self.released_position is None

    def covers(self, epoch: int, start: Position) -> bool:
        """Whether the table's rows are ignored in a window that starts here."""
        return self.covers_point(Point.at(epoch, start))

    def covers_point(self, start: Point) -> bool:
        """Whether the table's rows are ignored in a window that starts at a point."""
        ends = Point.at(self.released_epoch, self.released_position) if self.released_position is not None else None
        return Point.at(self.epoch, self.start) <= start and (ends is None or start < ends)

    def begins_by(self, epoch: int, position: Position) -> bool:
        """Whether it begins there or before."""
        return Point.at(self.epoch, self.start) <= Point.at(epoch, position)

    def skips_decode(self, epoch: int, start: Position) -> bool:
        """Whether a window that starts here does not decode the table; fixed once the window is planned."""
        unread = Point.at(self.skip_decode_epoch or self.epoch, self.skip_decode_from)
        known = self.fault is not None and unread <= Point.at(epoch, start)
        return known and self.covers(epoch, start)


def excluded_tables(records: Iterable[QuarantineRecord], epoch: int, start: Position) -> frozenset[TableName]:
    """Return the tables whose changes are ignored in a window that starts here."""
    return frozenset(one.table for one in records if one.covers(epoch, start))


def to_reach(
    records: Iterable[QuarantineRecord], table: str, snapshot_id: str, epoch: int, position: Position
) -> QuarantineRecord | None:
    """Return the record whose start the lake must reach before it may merge a snapshot; None if it already may.

    The snapshot replaces the changes from that start on. Take a row that is inserted before the start and deleted after it.
    If its insert were merged with the snapshot or later, the row would stay in the lake, because its delete is ignored.

    Args:
        records: quarantine records of a cursor.
        table: ``database.table``.
        snapshot_id: id of the snapshot.
        epoch: epoch of the position.
        position: position of the lake.
    """
    asked = (one for one in records if one.table == table and one.snapshot_id == snapshot_id)
    return next((one for one in asked if not one.begins_by(epoch, position)), None)


@dataclass(frozen=True, slots=True)
class LaggingTable:
    """A lake table that is as of an earlier position than the others, or waits for a new snapshot.

    Args:
        table: ``database.table`` at the source.
        position: the lake has all changes of the table before it, and none after it; see :attr:`QuarantineRecord.as_of`.
        last: the last record of the table.
    """

    table: TableName
    position: Position
    last: QuarantineRecord


def lagging_tables(records: Iterable[QuarantineRecord], merged: Collection[str]) -> tuple[LaggingTable, ...]:
    """Return the tables that are quarantined or wait for their new snapshot, sorted by name.

    Args:
        records: quarantine records of a cursor, oldest first.
        merged: ids of the snapshots that are merged, or are being merged.
    """
    lagging: dict[str, LaggingTable] = {}
    for record in records:
        if record.is_open or (record.snapshot_id and record.snapshot_id not in merged):
            before = lagging.get(record.table)
            # A new snapshot may be requested from before an earlier record on.
            goes_on = before is not None and not record.begins_by(before.last.epoch, before.last.start)
            as_of = before.position if before and goes_on else record.as_of
            lagging[record.table] = LaggingTable(record.table, as_of, record)
        else:
            lagging.pop(record.table, None)
    return tuple(lagging[table] for table in sorted(lagging))
