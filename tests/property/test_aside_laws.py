"""A source that is drained, acknowledged, merged and released in any order: each lake table stands at a state that was.

The model has a window per step. What the source table holds behind window ``n`` is the number ``n``; a lake table that has the
windows up to ``n``, and nothing of later ones, stands at ``n``. A snapshot's chunks are read at two moments: it is the state
of neither, unless the windows up to the second are merged as well.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from cdc_lib.model.aside import Fault, standing
from cdc_lib.model.cursor import Cursor
from cdc_lib.model.identity import ServerIdentity
from cdc_lib.model.position import Position
from cdc_lib.model.window import SnapshotTask, Window
from cdc_lib.window.aside import Found, Unmerged, bounded, release, set_aside

NOW = datetime(2026, 11, 21, tzinfo=UTC)
TABLE = "shop.orders"


def at(step: int) -> Position:
    return Position("binlog.000001", 4 + step)


def steps_of(window: Window) -> range:
    return range(window.start.offset - 4, window.stop.offset - 4)


class World:
    """One table, the drain cursor, and what the lake has of the table."""

    def __init__(self, faulty: set[int]) -> None:
        self.faulty = faulty
        self.head = 0
        self.cursor = Cursor("shop", "drain", 0, 1, ServerIdentity("mysql", "u", 1), at(0))
        self.lake = 0  # windows that the lake cursor has
        self.state = 0  # what the lake table shows
        self.merged: set[str] = set()  # snapshots
        self.read: dict[str, tuple[int, int]] = {}  # when their first and last chunk were read
        self.spared: dict[Window, tuple[str, ...]] = {}
        self.window_of: dict[int, Window] = {}

    def plan(self, most: int) -> None:
        """Plan windows of up to so many steps."""
        if not self.cursor.in_flight:
            start, stop = self.cursor.position.offset - 4, bounded(self.cursor, at(self.head)).offset - 4
            planned = [Window("shop", 1, at(s), at(min(s + most, stop))) for s in range(start, stop, most)]
            self.cursor = self.cursor.with_windows(tuple(planned))
            self.window_of |= {step: one for one in planned for step in steps_of(one)}

    def look(self) -> None:
        """What a window spares must be the same whenever it is drained."""
        for one in self.cursor.in_flight:
            assert self.spared.setdefault(one, self.cursor.spared(one)) == self.cursor.spared(one)

    def drain_and_ack(self, count: int) -> None:
        found = []
        for one in self.cursor.in_flight[:count]:
            if self.faulty.intersection(steps_of(one)) and not self.cursor.spared(one):
                found.append(Found(TABLE, Fault(one.start, "UnknownEvent", "why"), one.start, NOW))
            self.cursor = self.cursor.acked(one, at=NOW, event_time=NOW)
        for task in self.cursor.open_snapshots:
            if len(self.read.get(task.id, ())) == 2:
                self.cursor = self.cursor.with_snapshot(replace(task, chunks=2, complete=True))
        for one in found:
            self.cursor = set_aside(self.cursor, one, self.unmerged(), at(self.lake), at=NOW, by="test")

    def unmerged(self) -> dict[str, Unmerged]:
        found = {}
        for task in self.cursor.snapshots:
            if not (task.complete and (task.chunks == 0 or task.id in self.merged)):
                high = at(self.read[task.id][1]) if task.complete else None
                found[TABLE] = Unmerged(task, high)
        return found

    def release(self) -> None:
        record = self.cursor.aside_of(TABLE)
        if record is not None and record.open:
            task = SnapshotTask("shop", 1, f"s{len(self.cursor.aside)}", "shop", "orders")
            self.cursor = release(self.cursor, TABLE, at(self.head), task, at=NOW, by="test")

    def read_chunk(self) -> None:
        for task in self.cursor.open_snapshots:
            if len(self.read.get(task.id, ())) < 2:
                self.read[task.id] = (*self.read.get(task.id, ()), self.head)

    def merge(self) -> None:
        """Merge what is acknowledged; each window must go on where the table stands."""
        if any(one.needs(self.cursor.position) for one in self.unmerged().values()):
            return
        drained = self.cursor.position.offset - 4
        for task in self.cursor.snapshots:
            if task.chunks and task.id not in self.merged:
                self.merged.add(task.id)
                first, last = self.read[task.id]
                assert last <= drained
                # Rows of the first chunk are made those of the last by the windows in between, which all are there.
                assert not [s for s in range(first, last) if self.left_out(s)]
                self.state = last
        for step in range(self.lake, drained):
            if not self.left_out(step) and step >= self.state:
                assert step == self.state
                assert not self.spared.get(self.window_of[step])
                assert step not in self.faulty
                self.state = step + 1
        self.lake = drained
        behind = standing(self.cursor.aside, {t.snapshot_id for t in self.cursor.snapshots if t.id in self.merged})
        assert self.state == (behind[0].position.offset - 4 if behind else drained)

    def left_out(self, step: int) -> bool:
        return any(one.covers(1, self.window_of[step].start) for one in self.cursor.aside)


STEPS = st.lists(
    st.sampled_from(
        [
            ("write",),
            ("plan", "ack all"),
            ("plan",),
            ("plan long",),
            ("plan long", "ack all"),
            ("ack one",),
            ("write", "release", "read"),
            ("read",),
            ("merge",),
        ]
    ),
    min_size=10,
    max_size=60,
).map(lambda groups: [step for group in groups for step in group])
FAULTY = st.sets(st.integers(0, 12), min_size=1, max_size=6)
OFTEN = settings(max_examples=1000)


@OFTEN
@given(FAULTY, STEPS)
def test_a_table_always_stands_at_a_state_that_was(faulty, steps):
    """And no window's content depends on when it is drained; the cut names the state."""
    world = World(faulty)
    acts = {
        "write": lambda: setattr(world, "head", world.head + 1),
        "plan": lambda: world.plan(1),
        "plan long": lambda: world.plan(3),
        "ack one": lambda: world.drain_and_ack(1),
        "ack all": lambda: world.drain_and_ack(99),
        "release": world.release,
        "read": world.read_chunk,
        "merge": world.merge,
    }
    for step in steps:
        acts[step]()
        world.look()


@given(FAULTY, STEPS)
def test_a_released_table_catches_up(faulty, steps):
    """Once nothing is at fault any more, a release and two rounds bring it to the head."""
    world = World(faulty)
    for step in steps:
        if step == "write":
            world.head += 1
        elif step.startswith("plan"):
            world.plan(2)
        elif step == "release":
            world.release()
        elif step == "merge":
            world.merge()
        else:
            world.drain_and_ack(99)
    world.faulty = set()
    for _ in range(4):
        world.plan(2)
        world.read_chunk()
        world.read_chunk()
        world.drain_and_ack(99)
        world.merge()
        world.release()
    for _ in range(3):
        world.plan(2)
        world.read_chunk()
        world.read_chunk()
        world.drain_and_ack(99)
        world.merge()
    assert world.state == world.head
