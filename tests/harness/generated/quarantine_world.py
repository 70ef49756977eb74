"""A model of one table that is drained, acknowledged, merged, quarantined, released and read again, in any order.

Each step is one window. The state of the source table after window ``n`` is the number ``n``; a lake table that has the windows
up to ``n``, and nothing of later ones, is at ``n``. A snapshot's chunks are read at two moments: it is the state of
neither, unless the windows up to the second are merged as well.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime

from cdc_lib.merge.held import next_merge
from cdc_lib.merge.planner import outdated
from cdc_lib.merge.quarantined import positions_of
from cdc_lib.model.cursor import LAKE, Cursor
from cdc_lib.model.held_table import HeldTable, StoppedAt, held_in
from cdc_lib.model.position import Point, Position
from cdc_lib.model.quarantine import Fault, QuarantineRecord, lagging_tables
from cdc_lib.model.schema_question import SchemaQuestion
from cdc_lib.model.server_identity import ServerIdentity
from cdc_lib.model.window import SnapshotTask, Window
from cdc_lib.quarantine.records import FaultyTable, Unmerged, quarantine, releases, resume
from cdc_lib.quarantine.resnapshot import ResnapshotRequest, with_new_snapshot
from cdc_lib.retention.pruning import pruned_drain

NOW = datetime(2026, 11, 21, tzinfo=UTC)
TABLE = "shop.orders"


def at(step: int) -> Position:
    return Position("binlog.000001", 4 + step)


def steps_of(window: Window) -> range:
    return range(window.start.offset - 4, window.stop.offset - 4)


def _step_of(stopped: StoppedAt) -> int:
    return stopped.question.position.offset - 4


@dataclass(frozen=True)
class Flight:
    """A merge: the lake cursor when it was planned, and up to where it goes."""

    lake: Cursor
    stop: int


class World:
    """One table, the drain cursor, and what the lake has of the table.

    Args:
        faulty: steps with a fault that quarantines the table.
        replaced: steps at which the table is replaced by another, so that its earlier rows do not count.
        stuck: steps whose rows no merge can bring.
        leaves_out: whether such a merge quarantines the table, and is planned again without it.
        asking: steps with a statement at which the table stops until somebody answers.
        first: whether the first snapshot of the table is still to be read.
    """

    def __init__(
        self,
        faulty: set[int],
        replaced: frozenset[int] = frozenset(),
        stuck: frozenset[int] = frozenset(),
        *,
        first: bool = False,
        leaves_out: bool = False,
        asking: frozenset[int] = frozenset(),
    ) -> None:
        self.stuck = stuck
        self.leaves_out = leaves_out
        self.asking = asking
        self.answered: set[int] = set()
        self.faulty = faulty
        self.replaced = replaced
        self.head = 0
        self.cursor = Cursor("shop", "drain", 0, 1, ServerIdentity("mysql", "u", 1), at(0))
        if first:
            self.cursor = self.cursor.with_snapshot(SnapshotTask("shop", 1, "s000", "shop", "orders"))
        self.lake = 0  # windows that the lake cursor has
        self.held: tuple[HeldTable, ...] = ()  # where the lake is with the table while its snapshot is read
        self.flight: Flight | None = None  # the merge that the lake cursor has in flight
        self.abandoned: list[Flight] = []  # merges that may still run
        self.state = 0  # what the lake table shows
        self.ended_late = False  # whether a merge that was withdrawn has moved it since
        self.merged: set[str] = set()  # snapshots that the lake cursor has
        self.marks: dict[str, tuple[int, int, str]] = {}  # snapshots that the table has, and when they started
        self.asked = 0  # snapshots that were asked for
        self.read: dict[str, tuple[int, int]] = {}  # when their first and last chunk were read
        self.skipped: dict[Window, tuple[str, ...]] = {}
        self.window_of: dict[int, Window] = {}

    # --- the drain

    def plan(self, most: int) -> None:
        """Plan windows of up to ``most`` steps, and start the snapshots that were requested."""
        if self.cursor.tables_to_resnapshot:
            self.resume()
        if not self.cursor.in_flight:
            start, ends = self.cursor.position, [one for one in releases(self.cursor) if one < at(self.head)]
            planned: list[Window] = []
            for stop in (*ends, at(self.head)):
                steps = range(start.offset - 4, stop.offset - 4, most)
                planned += [Window("shop", 1, at(s), min(at(s + most), stop)) for s in steps]
                start = stop
            self.cursor = self.cursor.with_windows(tuple(planned))
            self.window_of |= {step: window for window in planned for step in steps_of(window)}

    def look(self) -> None:
        """Check that a window skips the same tables whenever it is drained."""
        for window in self.cursor.in_flight:
            skipped = self.cursor.skipped_tables(window)
            assert self.skipped.setdefault(window, skipped) == skipped

    def drain_and_ack(self, count: int) -> None:
        """Acknowledge ``count`` windows and all snapshots that are complete."""
        requests: list[FaultyTable | Position] = []
        for window in self.cursor.in_flight[:count]:
            if self.faulty.intersection(steps_of(window)) and not self.cursor.skipped_tables(window):
                fault = Fault(window.start, "unknown_event", "why")
                requests.append(FaultyTable(TABLE, fault, window.start, NOW))
            elif self.replaced.intersection(steps_of(window)):
                requests.append(window.start)
            self.cursor = self.cursor.acked(window, at=NOW, event_time=NOW)
        for task in self.cursor.open_snapshots:
            if len(self.read.get(task.id, ())) == 2:
                self.cursor = self.cursor.with_snapshot(replace(task, chunks=2, complete=True))
        place = self.lake_cursor.places.get(TABLE)
        reached = place.position if place else at(self.flight.stop if self.flight else self.lake)
        for request in requests:
            if isinstance(request, Position):
                self.request_snapshot(request)
            else:
                stopped = place is not None and place.stopped is not None
                self.cursor = quarantine(
                    self.cursor, request, self.unmerged(), (1, reached), at=NOW, by="test", stopped=stopped
                )

    def unmerged(self) -> dict[str, Unmerged]:
        """Return the snapshots that neither the lake nor the merge in flight has."""
        merged = (
            self.merged | {task.id for task in self.flight.lake.in_flight_snapshots} if self.flight else self.merged
        )
        return self._unmerged(merged)

    def _unmerged(self, merged: set[str]) -> dict[str, Unmerged]:
        unmerged = {}
        for task in self.cursor.snapshots:
            if not (task.complete and (task.chunks == 0 or task.id in merged)):
                high = at(self.read[task.id][1]) if task.complete else None
                unmerged[TABLE] = Unmerged(task, high)
        return unmerged

    def resume(self) -> None:
        """Start the snapshot of a table that is quarantined or waits for a new snapshot."""
        record = self.cursor.quarantine_record(TABLE)
        if record is not None and record.is_open:
            self.asked += 1
            task = SnapshotTask("shop", 1, f"s{self.asked:03d}", "shop", "orders")
            self.cursor = resume(self.cursor, TABLE, at(self.head), task, at=NOW, by="test")

    def request_snapshot(self, start: Position | None = None) -> None:
        """Request a new snapshot from a window on, or for all that the lake does not have."""
        lake = self.lake_cursor.of_table(self.lake_cursor.places.get(TABLE))
        request = ResnapshotRequest("because", NOW, "test", start)
        self.cursor = with_new_snapshot(self.cursor, TABLE, lake, self.unmerged(), request)

    def ask(self) -> None:
        """As the command does: request a new snapshot and start it at once, unless the table is quarantined."""
        if not self.cursor.quarantined_tables:
            self.request_snapshot()
            self.resume()

    def read_chunk(self) -> None:
        """Read the first or the last chunk of a snapshot, now."""
        for task in self.cursor.open_snapshots:
            if len(self.read.get(task.id, ())) < 2:
                self.read[task.id] = (*self.read.get(task.id, ()), self.head)

    def prune(self) -> None:
        """Prune the drain cursor, as if the windows that the lake has were removed from the store."""
        floor = min([Point.at(1, at(self.lake)), *(one.point for one in self.lake_cursor.places.values())])
        self.cursor = pruned_drain(self.cursor, self.lake_cursor, floor)
        self.merged &= {task.id for task in self.cursor.snapshots}
        assert len(self.cursor.quarantine) <= 1 + sum(map(self._waits, self.cursor.quarantine))

    def _waits(self, record: QuarantineRecord) -> bool:
        position = record.released_position
        floor = min([Point.at(1, at(self.lake)), *(one.point for one in self.lake_cursor.places.values())])
        waits = record.is_open or position is None or floor < Point.at(1, position)
        return waits or any(
            task.snapshot_id == record.snapshot_id and task.id not in self.merged and not task.cancelled
            for task in self.cursor.snapshots
        )

    # --- the lake

    @property
    def lake_cursor(self) -> Cursor:
        """The lake cursor, with the merge in flight."""
        if self.flight:
            return self.flight.lake
        merged = tuple(task for task in self.cursor.snapshots if task.id in self.merged)
        return replace(self.cursor, consumer=LAKE, position=at(self.lake), snapshots=merged, held=self.held)

    def plan_merge(self) -> None:
        """Keep what is in flight, unless a new snapshot replaces it; else take what is acknowledged."""
        if self.flight is not None and outdated(self.cursor, self.flight.lake):
            self.roll_back()
        if self.flight is not None:
            return
        drained = self.cursor.position.offset - 4
        unready = [one.task for one in self._unmerged(self.merged).values() if one.needs(self.cursor.position)]
        tasks = tuple(task for task in self.cursor.snapshots if task.chunks and task.id not in self.merged)
        windows = tuple(dict.fromkeys(self.window_of[step] for step in range(self.lake, drained)))
        undecided = [one.table for one in self.held if one.stopped and _step_of(one.stopped) not in self.answered]
        found = next_merge(self.cursor, self.lake_cursor, tasks, unready, windows, undecided)
        assert found.windows == windows  # no snapshot keeps other tables waiting
        lake = replace(
            self.lake_cursor, in_flight=found.windows, in_flight_snapshots=found.chunks, quarantine=self.cursor.quarantine,
            held=found.held, catching_up=found.catching_up,
        )  # fmt: skip
        self.flight = Flight(lake, found.windows[-1].stop.offset - 4 if found.windows else self.lake)

    def roll_back(self) -> None:
        """Give up the merge in flight; its job may still run."""
        if self.flight is not None:
            self.abandoned.append(self.flight)
            self.held = self.flight.lake.without_merge().held
            self.flight = None

    def late(self) -> None:
        """Let a merge that was abandoned end late."""
        if self.abandoned and not self._is_stuck(self.abandoned[-1]):
            before = self.state
            self._apply(self.abandoned.pop())
            self.ended_late |= self.state > before

    def answer(self) -> None:
        """Answer all that was asked so far."""
        self.answered |= {step for step in self.asking if step < self.head}

    def leave_out(self, flight: Flight) -> None:
        """Leave the table out of a merge that cannot bring it: hold it at a statement, or quarantine it."""
        lake = flight.lake.without_merge()
        if (step := self._asked_in(flight)) is not None:
            question = SchemaQuestion(TABLE, "truncate", 1, at(step))
            self.roll_back()
            self.held = lake.stopped_at({TABLE: StoppedAt(question, "ask")}).held
        elif self.leaves_out:
            here = lake.reached(TABLE)
            faulty = FaultyTable(TABLE, Fault(here[1], "merge_error", "why"), None, None)
            self.cursor = quarantine(
                self.cursor, faulty, self._unmerged(self.merged), here, at=NOW, by="merge", stopped=True
            )

    def finish_merge(self) -> None:
        """Finish the merge in flight and acknowledge it; one that is stuck is planned again if it leaves the table out."""
        for _ in range(3):
            if self.flight is None or not self._is_stuck(self.flight):
                break
            self.leave_out(self.flight)
            self.plan_merge()
        if self.flight is None or self._is_stuck(self.flight):
            assert self.flight is None or not self.leaves_out
            return
        flight, self.flight = self.flight, None
        self.held = flight.lake.held
        self._apply(flight)
        self.merged |= {task.id for task in flight.lake.in_flight_snapshots}
        self.lake = flight.stop
        lagging = lagging_tables(
            flight.lake.quarantine, {task.snapshot_id for task in self.cursor.snapshots if task.id in self.merged}
        )
        positions = positions_of(flight.lake.held, lagging)
        state = positions[TABLE].offset - 4 if positions else self.lake
        may_be_further = self.ended_late or any(record.fault is None for record in self.cursor.quarantine)
        assert self.state == state or (self.state > state and may_be_further)
        self.ended_late &= self.state > state

    def merge(self) -> None:
        """Plan a merge and finish it; each window must continue where the table is."""
        self.plan_merge()
        self.finish_merge()

    def _is_stuck(self, flight: Flight) -> bool:
        return self._asked_in(flight) is not None or any(step in self.stuck for step in self._due(flight))

    def _asked_in(self, flight: Flight) -> int | None:
        """Return the first step of a merge at which the table stops."""
        return next((step for step in self._due(flight) if step in self.asking - self.answered), None)

    def _due(self, flight: Flight) -> list[int]:
        """Return the steps that a merge brings; those that its snapshot includes are not among them."""
        read = max((self.read[task.id][1] for task in flight.lake.in_flight_snapshots), default=0)
        steps = (step for window in self.windows_of(flight) for step in steps_of(window))
        return [step for step in steps if not self.left_out(step, flight) and step >= max(read, self.state)]

    def _apply(self, flight: Flight) -> None:
        """Apply what the table lacks of a merge, by its marker and its snapshots."""
        for task in flight.lake.in_flight_snapshots:
            first, last = self.read[task.id]
            # A snapshot that started before another one that the table has is not merged.
            started = first, len(task.snapshot_id), task.snapshot_id
            if task.id in self.marks or any(started < other for other in self.marks.values()):
                continue
            self.marks[task.id] = started
            # The windows in between, all of which exist, bring the rows of the first chunk to the state of the last.
            assert not [s for s in range(first, last) if self.left_out(s, flight)]
            # A row from one of these may be deleted in a window that is left out: it would stay.
            steps = [step for window in self.windows_of(flight) for step in steps_of(window)]
            missing = [s for s in steps if self.state <= s < first and not self.left_out(s, flight)]
            assert not [s for s in range(min(missing, default=first), first) if self.left_out(s, flight)]
            assert last <= flight.stop
            self.state = last
        for window in self.windows_of(flight):
            for step in steps_of(window):
                if not self.left_out(step, flight) and step >= self.state:
                    assert step == self.state
                    assert not self.skipped.get(window)
                    assert step not in self.faulty
                    assert step not in self.replaced
                    self.state = step + 1

    def windows_of(self, flight: Flight) -> list[Window]:
        """Return the windows that a merge takes, with those for which the table catches up."""
        before = range(flight.lake.position.offset - 4)
        missed = dict.fromkeys(self.window_of[step] for step in before)
        places = [one.point for one in flight.lake.catching_up]
        return [
            *(one for one in missed if any(place < Point.at(1, one.stop) for place in places)),
            *flight.lake.in_flight,
        ]

    def left_out(self, step: int, flight: Flight) -> bool:
        """Whether a merge takes nothing of the table in a step's window."""
        start = self.window_of[step].start
        return bool(held_in(flight.lake.held, 1, start)) or any(one.covers(1, start) for one in flight.lake.quarantine)
