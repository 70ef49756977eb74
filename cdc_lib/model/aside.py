"""Tables that are set aside because something of them is not understood, while the others go on.

A window leaves out the rows of such a table from its start on and keeps the table's raw events instead. The drain cursor
remembers from where on the table is left out, so that later windows, whoever drained them and when, bring nothing of it.

A table whose snapshot is taken again has a record of the same kind without a fault: its windows are drained as ever, and the
lake takes nothing of them, because the snapshot brings what they did.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime

from cdc_lib.errors import TableReplaced
from cdc_lib.model.position import Position


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a table was set aside.

    Args:
        position: of an event that is at fault; of several in a window it may be any. A snapshot's: its low watermark.
        error: class of the error.
        reason: its message, without any value of a row.
        mend: what to do about it; empty when nothing can be said.
    """

    position: Position
    error: str
    reason: str
    mend: str = ""


def is_replaced(fault: Fault) -> bool:
    """Whether nothing is wrong but that the binlog does not hold the table's rows: it is released by itself."""
    return fault.error == TableReplaced.__name__


@dataclass(frozen=True, slots=True)
class KeptEvents:
    """The raw events of one table in one window, in a file of their own (see ``store/raw_events.py``).

    Args:
        path: key below the manifest's own folder.
        events: how many, table maps and statements included.
        bytes: size of the file.
        sha256: hex digest of the file.
        first: where the first event starts.
        last: where the last event starts.
    """

    path: str
    events: int
    bytes: int
    sha256: str
    first: Position
    last: Position


@dataclass(frozen=True, slots=True)
class SetAside:
    """A table whose rows a batch leaves out.

    Args:
        table: ``database.table`` at the source.
        fault: what was found in this batch; None when the table was set aside before.
        events: the table's raw events; None when there are none, or none may be kept (left out columns, masks).
    """

    table: str
    fault: Fault | None
    events: KeptEvents | None = None


@dataclass(frozen=True, slots=True)
class Aside:
    """A stretch of the binlog in which nothing of one table reaches the lake.

    Args:
        table: ``database.table`` at the source.
        epoch: of ``start``.
        start: where it begins, a transaction boundary.
        stands: the lake table stands as of this position: ``start``, or where an earlier stretch began that this one goes on.
            Without a fault it stands there at least: a merge that was under way may have brought it further.
        unread: windows that start here or later were planned knowing of it, and do not decode the table at all; with a fault
            alone.
        fault: why; None when nothing is wrong, and somebody wants a new snapshot of the table.
        behind: commit time of the first change that may be missing; None when it is not known.
        at: when it was recorded (UTC).
        by: who recorded it.
        until: where it ends: the table was released there; None while it is set aside.
        until_epoch: of ``until``.
        snapshot_id: the snapshot that was asked for at the release; empty when the table was gone by then.
        released_at: when it was released (UTC).
        released_by: who released it.
        why: without a fault: why there is to be a new snapshot.
        unread_epoch: of ``unread``; 0 for that of ``start``.
    """

    table: str
    epoch: int
    start: Position
    stands: Position
    unread: Position
    fault: Fault | None
    behind: datetime | None
    at: datetime
    by: str = ""
    until: Position | None = None
    until_epoch: int = 0
    snapshot_id: str = ""
    released_at: datetime | None = None
    released_by: str = ""
    why: str = ""
    unread_epoch: int = 0

    @property
    def open(self) -> bool:
        """Whether it has no end yet: the table is set aside still, or the next plan asks for its new snapshot."""
        return self.until is None

    def covers(self, epoch: int, start: Position) -> bool:
        """Whether rows of windows that start here are left out."""
        ends = _point(self.until_epoch, self.until) if self.until is not None else None
        return self.begins_by(epoch, start) and (ends is None or _point(epoch, start) < ends)

    def begins_by(self, epoch: int, position: Position) -> bool:
        """Whether it begins there or before."""
        return _point(self.epoch, self.start) <= _point(epoch, position)

    def spares(self, epoch: int, start: Position) -> bool:
        """Whether a window that starts here does not decode the table; never changes for a planned window."""
        unread = _point(self.unread_epoch or self.epoch, self.unread)
        known = self.fault is not None and unread <= _point(epoch, start)
        return known and self.covers(epoch, start)


def left_out(records: Iterable[Aside], epoch: int, start: Position) -> frozenset[str]:
    """Return the tables of which nothing counts in a window that starts here."""
    return frozenset(one.table for one in records if one.covers(epoch, start))


def to_reach(records: Iterable[Aside], table: str, snapshot_id: str, epoch: int, position: Position) -> Aside | None:
    """Return the record that a lake which stands at a position must come to before it may take a snapshot; None if it may.

    What the snapshot replaces begins there. A row that comes with a change in front of that, and goes behind it, would stay
    if the change were merged together with the snapshot or later: its delete does not count.

    Args:
        records: of a cursor.
        table: ``database.table``.
        snapshot_id: of the snapshot.
        epoch: of the position.
        position: where the lake stands.
    """
    asked = (one for one in records if one.table == table and one.snapshot_id == snapshot_id)
    return next((one for one in asked if not one.begins_by(epoch, position)), None)


def _point(epoch: int, position: Position) -> tuple[int, int, int]:
    return epoch, position.file_number, position.offset


@dataclass(frozen=True, slots=True)
class Standing:
    """A lake table that stands as of an earlier position than the others, or waits for a new snapshot.

    Args:
        table: ``database.table`` at the source.
        position: everything of the table before it is in the lake, nothing behind it; see :attr:`Aside.stands`.
        last: the last record of the table.
    """

    table: str
    position: Position
    last: Aside


def standing(records: Iterable[Aside], merged: Collection[str]) -> tuple[Standing, ...]:
    """Return the tables that are set aside, and those that are released and wait for their snapshot, by name.

    Args:
        records: of a cursor, in the order in which they were made.
        merged: ids of the snapshots that are in the lake, or are brought there.
    """
    found: dict[str, Standing] = {}
    for one in records:
        if one.open or (one.snapshot_id and one.snapshot_id not in merged):
            before = found.get(one.table)
            # A new snapshot may be wanted from before an earlier stretch on.
            goes_on = before is not None and not one.begins_by(before.last.epoch, before.last.start)
            found[one.table] = Standing(one.table, before.position if before and goes_on else one.stands, one)
        else:
            found.pop(one.table, None)
    return tuple(found[table] for table in sorted(found))
