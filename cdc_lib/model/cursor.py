"""The persisted position of one consumer, and the only moves that it can make.

Law 4: a cursor moves by compare-and-swap on its generation, only to the stop of a batch that starts where it stands, never
into a transaction, and never backward except by an explicit, recorded rewind. The functions here are pure: they take a
cursor and give the next one; a cursor store swaps the two.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from cdc_lib.errors import CursorMoved
from cdc_lib.model.aside import Aside
from cdc_lib.model.identity import ServerIdentity
from cdc_lib.model.position import Position
from cdc_lib.model.subscription import Interest, Lease
from cdc_lib.model.window import SnapshotTask, Window
from cdc_lib.model.xa import OpenTransaction

KEPT_MOVES = 100
"""How many moves a cursor document remembers."""

DRAIN = "drain"
"""Consumer name of the cursor that moves when a batch is durable."""

LAKE = "lake"
"""Consumer name of the cursor that moves when batches are merged."""


@dataclass(frozen=True, slots=True)
class Move:
    """One change of a cursor's position.

    Args:
        at: wall clock (UTC) of the move; for people only, nothing is decided by it.
        kind: ``start``, ``ack``, ``rewind`` or ``restore``.
        start: where the cursor stood; None for the first move.
        stop: where it stands after it.
        by: who moved it: a task, a command, a person.
        why: a reason, for rewinds.
    """

    at: datetime
    kind: str
    start: Position | None
    stop: Position
    by: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Cursor:
    """What a consumer of a source has acknowledged, and what it has in flight.

    Args:
        source: name of the source.
        consumer: ``drain``, ``lake``, or the name of another consumer of the batches.
        generation: counts the swaps of this document, from 1.
        epoch: counts the source's switches to another server, from 1.
        identity: server that the position belongs to.
        position: everything before it is acknowledged.
        gtid_set: executed GTIDs at the position, where they are known; else empty.
        event_time: commit time of the last acknowledged event; None before the first.
        in_flight: windows that are planned and not yet acknowledged; they tile the stream from the position on.
        snapshots: per table, the chunks that are acknowledged.
        in_flight_snapshots: lake only: per table, the chunks that the merge in flight reaches.
        moves: the last hundred moves, oldest first.
        prepared: lake only: XA transactions that are prepared before the position and not decided, by their xids.
        aside: tables that are or were set aside, in the order in which it was recorded; the lake's cursor has what the drain
            cursor had when its merge in flight was planned.
        writer: random text of the task that wrote this generation; tells one's own write after a lost answer.
        lease: other consumers only: who holds the subscription.
        interest: other consumers only: what the consumer asked for.
    """

    source: str
    consumer: str
    generation: int
    epoch: int
    identity: ServerIdentity
    position: Position
    gtid_set: str = ""
    event_time: datetime | None = None
    in_flight: tuple[Window, ...] = ()
    snapshots: tuple[SnapshotTask, ...] = ()
    in_flight_snapshots: tuple[SnapshotTask, ...] = ()
    moves: tuple[Move, ...] = ()
    prepared: tuple[OpenTransaction, ...] = ()
    aside: tuple[Aside, ...] = ()
    writer: str = ""
    lease: Lease | None = None
    interest: Interest | None = None

    def with_windows(self, windows: tuple[Window, ...]) -> Cursor:
        """Put windows in flight.

        Raises:
            CursorMoved: they do not tile the stream from where the cursor stands or its windows in flight end.
        """
        at = self.in_flight[-1].stop if self.in_flight else self.position
        for window in windows:
            if window.source != self.source or window.epoch != self.epoch or window.start != at:
                raise CursorMoved(
                    f"window {window.id} does not start where the {self.consumer} cursor goes on",
                    hint="Plan again.",
                    source=self.source,
                    expected=str(at),
                )
            at = window.stop
        return replace(self, in_flight=(*self.in_flight, *windows))

    def acked(
        self, window: Window, *, at: datetime, event_time: datetime | None, by: str = "", gtid_set: str = ""
    ) -> Cursor:
        """Move over a window that starts where the cursor stands.

        Raises:
            CursorMoved: it starts elsewhere, or belongs to another source or epoch.
        """
        if (window.source, window.epoch, window.start) != (self.source, self.epoch, self.position):
            raise CursorMoved(
                f"window {window.id} does not start where the {self.consumer} cursor stands",
                hint="Another task has moved the cursor; plan again.",
                source=self.source,
                position=str(self.position),
            )
        move = Move(at=at, kind="ack", start=self.position, stop=window.stop, by=by)
        left = tuple(w for w in self.in_flight if window.stop <= w.start and w != window)
        return replace(
            self,
            position=window.stop,
            gtid_set=gtid_set or self.gtid_set,
            event_time=event_time or self.event_time,
            in_flight=left if left and left[0].start == window.stop else (),
            moves=(*self.moves, move)[-KEPT_MOVES:],
        )

    def with_snapshot(self, task: SnapshotTask) -> Cursor:
        """Add a snapshot task, or put a later state in the place of an earlier one of the same id."""
        others = tuple(s for s in self.snapshots if s.id != task.id)
        return replace(self, snapshots=tuple(sorted((*others, task), key=lambda s: s.id)))

    @property
    def open_snapshots(self) -> tuple[SnapshotTask, ...]:
        """Snapshot tasks whose last chunk is not acknowledged."""
        return tuple(s for s in self.snapshots if not s.complete)

    def aside_of(self, table: str) -> Aside | None:
        """Return the last record of a table that is or was set aside."""
        return next((one for one in reversed(self.aside) if one.table == table), None)

    @property
    def tables_aside(self) -> tuple[Aside, ...]:
        """The tables that are set aside now."""
        return tuple(one for one in self.aside if one.open)

    def spared(self, window: Window) -> tuple[str, ...]:
        """Return the tables that a window does not decode: they were set aside when it was planned."""
        return tuple(sorted({one.table for one in self.aside if one.spares(window.epoch, window.start)}))
