"""The persisted position of one consumer, and the only moves that it can make.

Law 4: a cursor moves by compare-and-swap on its generation, only to the stop of a batch that starts where it is, never
into a transaction, and never backward except by an explicit, recorded rewind. The functions here are pure: they take a
cursor and give the next one; a cursor store swaps the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal

from cdc_lib.errors import CursorMoved
from cdc_lib.model.binlog_checkpoint import BinlogCheckpoint, SeenEnd
from cdc_lib.model.commit import Commit
from cdc_lib.model.gtid import NO_GTIDS, GtidSet, WindowGtids
from cdc_lib.model.held_table import HeldTable, StoppedAt, by_name
from cdc_lib.model.last_transaction import LastTransaction
from cdc_lib.model.position import Point, Position, file_number
from cdc_lib.model.quarantine import LaggingTable, QuarantineRecord, excluded_tables, lagging_tables
from cdc_lib.model.server_identity import ServerIdentity
from cdc_lib.model.subscription import Interest, Lease
from cdc_lib.model.table_name import TableName
from cdc_lib.model.window import SnapshotTask, Window
from cdc_lib.model.xa import OpenTransaction

KEPT_MOVES = 100
"""How many moves a cursor document remembers."""

KEPT_VERSIONS = 1000
"""How many keys of schema versions a cursor document remembers."""

DRAIN = "drain"
"""Consumer name of the cursor that moves when a batch is durable."""

LAKE = "lake"
"""Consumer name of the cursor that moves when batches are merged."""


@dataclass(frozen=True, slots=True)
class Move:
    """One change of a cursor's position.

    Args:
        at: wall clock (UTC) of the move; for people only, nothing is decided by it.
        kind: ``start``, ``ack``, ``failover``, ``rewind``, ``restore``, ``rollback`` or ``gap``.
        start: position before the move; None for the first move.
        stop: position after the move.
        by: who moved it: a task, a command, a person.
        why: a reason, for rewinds and the like.
    """

    at: datetime
    kind: str
    start: Position | None
    stop: Position
    by: str = ""
    why: str = ""


EpochChangeKind = Literal["failover", "rewind"]
"""Why an epoch began: a failover to another server, or a manual move of the cursor."""


@dataclass(frozen=True, slots=True)
class EpochChange:
    """How one epoch ended and the next began. Batches of the old epoch after its end are ignored.

    Args:
        epoch: the new epoch.
        kind: why it began.
        at: wall clock (UTC); for people only.
        by: who caused it.
        why: the reason, for people.
        previous_end: where the previous epoch ended.
        new_start: where the new epoch begins.
    """

    epoch: int
    kind: EpochChangeKind
    at: datetime
    by: str
    why: str
    previous_end: BinlogCheckpoint
    new_start: BinlogCheckpoint

    @property
    def is_exact(self) -> bool:
        """Whether GTIDs show that the new epoch begins with the transaction after the end of the previous one."""
        end, start = self.previous_end, self.new_start
        if not (
            end.gtids_known and start.gtids_known and end.gtid_set and end.identity.flavor == start.identity.flavor
        ):
            return False
        flavor = end.identity.flavor
        return GtidSet.parse(flavor, end.gtid_set) == GtidSet.parse(flavor, start.gtid_set)


@dataclass(frozen=True, slots=True)
class Cursor:
    """The acknowledged position of one consumer of a source, and its windows in flight.

    Args:
        source: name of the source.
        consumer: ``drain``, ``lake``, or the name of another consumer of the batches.
        generation: counts the swaps of this document, from 1.
        epoch: counts failovers and rewinds of the source, from 1.
        identity: server that the position belongs to.
        position: everything before it is acknowledged.
        gtid_set: GTIDs of all transactions before the position.
        gtids_known: whether ``gtid_set`` is exact and the last transaction before the position has a GTID.
        event_time: commit time of the last event before the position.
        last: commit of that transaction by the clock of the server that committed it first; None if unknown.
        last_transaction: the last transaction before the position; None if it is not known how it is recognized.
        file_times: creation times of binlog files, by name: files of the position and of the ends of windows in flight.
        source_id: random id from the first drain cursor of the source. Every other cursor and every marker in the lake
            repeats it. So tables of a source whose store was lost, or of another source of that name, are recognized.
        epoch_changes: drain: all epoch changes, oldest first; other consumers: those that they have passed.
        in_flight: windows that are planned and not yet acknowledged; they tile the stream from the position on.
        snapshots: per table, the chunks that are acknowledged.
        in_flight_snapshots: lake only: per table, the chunks that the merge in flight reaches.
        held: lake only: tables whose changes from a place on wait for their snapshots, or for a decision about a statement; of
            the merge in flight too.
        catching_up: lake only: tables for which the merge in flight also takes the windows from their place up to its start.
        moves: the last hundred moves, oldest first.
        prepared: lake only: XA transactions that are prepared before the position and not decided, by their xids.
        quarantine: tables that are or were quarantined, in the order in which it was recorded; the lake's cursor has what the drain
            cursor had when its merge in flight was planned.
        writer: random id of the task that wrote this generation; it recognizes its own write after a lost response.
        lease: other consumers only: who holds the subscription.
        interest: other consumers only: what the consumer asked for.
        last_merge: lake only: id of the last merge that was acknowledged, whose cut a listing may not show yet.
        versions: drain only: keys of the last schema versions that plans and acknowledged windows stored, which a listing may not show
            yet.
        seen: the end of the binlog that the last plan with windows saw; the lake's cursor has what the drain cursor had when its merge
            in flight was planned. None if an earlier version planned them.
        text_keys: drain only: tables whose key had a date that no date type holds, sorted; dates of such a key are kept as text.
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
    quarantine: tuple[QuarantineRecord, ...] = ()
    writer: str = ""
    lease: Lease | None = None
    interest: Interest | None = None
    gtids_known: bool = False
    file_times: dict[str, datetime] = field(default_factory=dict)
    epoch_changes: tuple[EpochChange, ...] = ()
    source_uuid: str = ""
    last: Commit | None = None
    held: tuple[HeldTable, ...] = ()
    catching_up: tuple[HeldTable, ...] = ()
    last_transaction: LastTransaction | None = None
    text_keys: tuple[TableName, ...] = ()
    last_merge: str = ""
    versions: tuple[str, ...] = ()
    seen: SeenEnd | None = None

    @property
    def began_at(self) -> datetime | None:
        """When its first move was, by the clock of who made it; None if that move is no longer kept."""
        return self.moves[0].at if 0 < len(self.moves) < KEPT_MOVES else None

    @property
    def checkpoint(self) -> BinlogCheckpoint:
        """The cursor's position as a checkpoint."""
        made = self.file_times.get(self.position.file)
        return BinlogCheckpoint(
            self.identity, self.position, self.event_time, self.gtid_set, self.gtids_known, made, self.last
        )

    def at_checkpoint(self, checkpoint: BinlogCheckpoint) -> Cursor:
        """Return the same cursor at another position, with nothing in flight."""
        return replace(
            self,
            identity=checkpoint.identity,
            position=checkpoint.position,
            event_time=checkpoint.time,
            last=checkpoint.last,
            last_transaction=None,
            gtid_set=checkpoint.gtid_set,
            gtids_known=checkpoint.gtids_known,
            file_times={checkpoint.position.file: checkpoint.file_time} if checkpoint.file_time else {},
            in_flight=(),
        )

    def gtids_before(self, window: Window) -> GtidSet | None:
        """Return the GTIDs of all transactions before a window; None if unknown."""
        if window.start != self.position or not self.gtids_known:
            return None
        return GtidSet.parse(self.identity.flavor, self.gtid_set)

    def with_text_keys(self, tables: Iterable[TableName]) -> Cursor:
        """Keep the dates of these tables' keys as text from now on."""
        return replace(self, text_keys=tuple(sorted({*self.text_keys, *tables})))

    def with_versions(self, keys: Iterable[str]) -> Cursor:
        """Remember keys of schema versions."""
        return replace(self, versions=tuple(dict.fromkeys((*self.versions, *keys)))[-KEPT_VERSIONS:])

    def with_file_times(self, times: dict[str, datetime]) -> Cursor:
        """Add creation times of binlog files."""
        return replace(self, file_times=dict(sorted({**self.file_times, **times}.items())))

    def with_new_epoch(
        self, checkpoint: BinlogCheckpoint, kind: EpochChangeKind, *, at: datetime, by: str, why: str
    ) -> Cursor:
        """Begin a new epoch at a position. Windows in flight are dropped; incomplete snapshots restart in the new epoch."""
        epoch_change = EpochChange(
            self.epoch + 1, kind, at, by, why, previous_end=self.checkpoint, new_start=checkpoint
        )
        at_start = f"{epoch_change.epoch:06d}-{checkpoint.position.sortable}"
        dropped = {(task.name, task.snapshot_id) for task in self.open_snapshots}
        # One table may have a partial and a full snapshot, which need different ids.
        new_ids = ((task, at_start if task.selection is None else f"{at_start}-part") for task in self.snapshots)
        tasks = {
            restarted.id: restarted
            for task, new in new_ids
            for restarted in [task if task.complete else task.again(epoch_change.epoch, new)]
        }
        quarantined = tuple(
            replace(one, snapshot_id=at_start) if (one.table, one.snapshot_id) in dropped else one
            for one in self.quarantine
        )
        snapshots = tuple(sorted(tasks.values(), key=lambda task: task.id))
        return replace(
            self._into(epoch_change),
            epoch_changes=(*self.epoch_changes, epoch_change),
            snapshots=snapshots,
            quarantine=quarantined,
        )

    def following(self, drain: Cursor) -> Cursor:
        """Move to the next epoch, if there is one and everything of this one is acknowledged.

        Args:
            drain: the drain cursor, which knows where epochs end and begin.
        """
        for epoch_change in drain.epoch_changes:
            if (
                epoch_change.epoch == self.epoch + 1
                and self.position == epoch_change.previous_end.position
                and not self.in_flight
            ):
                return self._into(epoch_change)
        return self

    @property
    def acked_windows(self) -> Iterator[tuple[Window, datetime]]:
        """The windows of the remembered moves that were acknowledged, latest first, each with the time of its ack."""
        epoch = self.epoch  # a move does not name its own
        for move in reversed(self.moves):
            if move.kind == "ack" and move.start is not None and move.start <= move.stop:
                yield Window(self.source, epoch, move.start, move.stop), move.at
            elif move.kind in ("failover", "rewind"):
                epoch -= 1

    @property
    def epoch_before_return(self) -> int | None:
        """The epoch that went on after the cursor's position, if the last move went back on the same server; else None."""
        last = self.moves[-1] if self.moves else None
        if last is None or last.start is None or not last.stop < last.start:
            return None
        if last.kind == "rewind" and self.epoch_changes:
            change = self.epoch_changes[-1]
            same = change.previous_end.identity.is_same_server(change.new_start.identity)
            return self.epoch - 1 if same else None
        return self.epoch if last.kind == "restore" else None

    def end_of_epoch(self, epoch: int) -> Position | None:
        """Return where an epoch ends as of now; None for an epoch that this cursor does not know."""
        if epoch == self.epoch:
            return self.position
        return next((s.previous_end.position for s in self.epoch_changes if s.epoch == epoch + 1), None)

    def _into(self, epoch_change: EpochChange) -> Cursor:
        move = Move(
            epoch_change.at,
            epoch_change.kind,
            self.position,
            epoch_change.new_start.position,
            epoch_change.by,
            epoch_change.why,
        )
        return replace(
            self.at_checkpoint(epoch_change.new_start),
            epoch=epoch_change.epoch,
            moves=(*self.moves, move)[-KEPT_MOVES:],
        )

    def with_windows(self, windows: tuple[Window, ...]) -> Cursor:
        """Put windows in flight.

        Raises:
            CursorMoved: they do not tile the stream from where the cursor is or its windows in flight end.
        """
        at = self.in_flight[-1].stop if self.in_flight else self.position
        for window in windows:
            if window.source != self.source or window.epoch != self.epoch or window.start != at:
                raise CursorMoved(
                    f"window {window.id} does not start where the {self.consumer} cursor continues",
                    hint="Plan again.",
                    source=self.source,
                    expected=str(at),
                )
            at = window.stop
        return replace(self, in_flight=(*self.in_flight, *windows))

    def acked(
        self,
        window: Window,
        *,
        at: datetime,
        event_time: datetime | None,
        by: str = "",
        gtids: WindowGtids = NO_GTIDS,
        last: Commit | None = None,
        last_transaction: LastTransaction | None = None,
    ) -> Cursor:
        """Move over a window that starts where the cursor is.

        Args:
            window: acknowledged.
            at: wall clock (UTC).
            event_time: commit time of its last transaction; None when it has none.
            by: who acknowledged it.
            gtids: GTIDs of its transactions.
            last: commit of its last transaction by the clock of the server that committed it first.
            last_transaction: the last one before its end; None if unknown.

        Raises:
            CursorMoved: it starts elsewhere, or belongs to another source or epoch.
        """
        if (window.source, window.epoch, window.start) != (self.source, self.epoch, self.position):
            raise CursorMoved(
                f"window {window.id} does not start where the {self.consumer} cursor is",
                hint="Another task has moved the cursor; plan again.",
                source=self.source,
                position=str(self.position),
            )
        move = Move(at=at, kind="ack", start=self.position, stop=window.stop, by=by)
        left = tuple(w for w in self.in_flight if window.stop <= w.start and w != window)
        known = GtidSet.parse(self.identity.flavor, self.gtid_set) if gtids.text else None
        more = known.union(GtidSet.parse(self.identity.flavor, gtids.text)) if known is not None else None
        return replace(
            self,
            position=window.stop,
            gtid_set=self.gtid_set if more is None else str(more),
            gtids_known=self.gtids_known and (gtids.complete or event_time is None),
            file_times={f: t for f, t in self.file_times.items() if file_number(f) >= window.stop.file_number},
            event_time=event_time or self.event_time,
            last=self.last if event_time is None else last,
            last_transaction=last_transaction,
            in_flight=left if left and left[0].start == window.stop else (),
            moves=(*self.moves, move)[-KEPT_MOVES:],
        )

    def rolled_back(self, *, at: datetime, by: str, why: str) -> Cursor:
        """Drop windows in flight. The position does not change, and the rollback is recorded as a move."""
        move = Move(at, "rollback", self.position, self.position, by, why)
        return replace(self.without_merge(), moves=(*self.moves, move)[-KEPT_MOVES:])

    def without_merge(self) -> Cursor:
        """Return the lake cursor as if its merge in flight had not been planned."""
        places = self.places
        held = tuple(places[table] for table in sorted(places))
        return replace(self, in_flight=(), in_flight_snapshots=(), held=held, catching_up=())

    def stopped_at(self, statements: Mapping[TableName, StoppedAt]) -> Cursor:
        """Return the lake cursor, with no merge in flight, with tables held where the lake is with them, each because of a statement."""
        places = self.places
        for table, statement in statements.items():
            places[table] = replace(HeldTable.at(table, self.reached(table)), stopped=statement)
        return replace(self, held=tuple(places[table] for table in sorted(places)))

    @property
    def places(self) -> dict[TableName, HeldTable]:
        """Where the lake is with each held table: it has the changes before, and none after."""
        return {**by_name(self.held), **by_name(self.catching_up)}

    def reached(self, table: TableName) -> tuple[int, Position]:
        """Return where the lake is with a table; a place after the lake's position is where the table will be held."""
        place, here = self.places.get(table), Point.at(self.epoch, self.position)
        return (
            (place.epoch, place.position) if place is not None and place.point < here else (self.epoch, self.position)
        )

    def of_table(self, place: HeldTable | None) -> Cursor:
        """Return the lake cursor at the place where the lake is with a table; unchanged if the table is not held."""
        return self if place is None else replace(self, epoch=place.epoch, position=place.position)

    def with_snapshot(self, task: SnapshotTask) -> Cursor:
        """Add a snapshot task, or replace the one with the same id. For many tasks use :meth:`with_snapshots`."""
        return self.with_snapshots((task,))

    def with_snapshots(self, tasks: Iterable[SnapshotTask]) -> Cursor:
        """Add or replace several in one pass: there may be one for each of 20,000 tables."""
        new = {task.id: task for task in tasks}
        if not new:
            return self
        merged = {**{task.id: task for task in self.snapshots}, **new}
        return replace(self, snapshots=tuple(merged[id_] for id_ in sorted(merged)))

    @property
    def is_merging(self) -> bool:
        """Whether a merge is in flight (lake cursor)."""
        return bool(self.in_flight or self.in_flight_snapshots or self.catching_up)

    @property
    def has_begun_only(self) -> bool:
        """Whether nothing was acknowledged since the position was chosen."""
        return [move.kind for move in self.moves] == ["start"] and not any(task.chunks for task in self.snapshots)

    @property
    def open_snapshots(self) -> tuple[SnapshotTask, ...]:
        """Snapshot tasks whose last chunk is not acknowledged."""
        return tuple(s for s in self.snapshots if not s.complete)

    @property
    def snapshot_units(self) -> tuple[SnapshotTask, ...]:
        """What drain tasks read of these: a unit for each table, or for each range of a divided snapshot."""
        return tuple(unit for task in self.open_snapshots for unit in task.units)

    def quarantine_record(self, table: str) -> QuarantineRecord | None:
        """Return the last record of a table that is or was quarantined."""
        return next((one for one in reversed(self.quarantine) if one.table == table), None)

    @property
    def quarantined_tables(self) -> tuple[QuarantineRecord, ...]:
        """The tables that are quarantined now."""
        return tuple(one for one in self.quarantine if one.is_open and one.fault is not None)

    @property
    def tables_to_resnapshot(self) -> tuple[TableName, ...]:
        """The tables whose requested new snapshot is not planned yet."""
        return tuple(one.table for one in self.quarantine if one.is_open and one.fault is None)

    def lagging_in(self, lake: Cursor | None) -> tuple[LaggingTable, ...]:
        """Return the tables of a drain cursor that are as of an earlier position in the lake than the lake cursor."""
        merged = {task.snapshot_id for task in lake.snapshots if task.chunks} if lake is not None else set()
        return lagging_tables(self.quarantine, merged)

    def skipped_tables(self, window: Window) -> tuple[TableName, ...]:
        """Return the tables that a window does not decode: they were quarantined when it was planned."""
        return tuple(sorted({one.table for one in self.quarantine if one.skips_decode(window.epoch, window.start)}))

    def replaced(self, window: Window) -> tuple[TableName, ...]:
        """Return the tables whose rows in a window a new snapshot replaces: the window may leave them out."""
        records = (one for one in self.quarantine if one.fault is None)
        return tuple(sorted(excluded_tables(records, window.epoch, window.start)))
