"""Laws 1, 2 and 4: windows have ids of their own, tile the stream, and are acknowledged in order."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from cdc_lib.errors import ConfigError, CursorMoved
from cdc_lib.model.cursor import KEPT_MOVES, Cursor
from cdc_lib.model.position import SNAPSHOT_ROW, Point, Position
from cdc_lib.model.server_identity import ServerIdentity
from cdc_lib.model.window import SnapshotTask, Window
from tests.harness.binlog.windows import follows
from tests.harness.generated.strategies import positions, windows

AT = datetime(2026, 1, 1, tzinfo=UTC)
SHOP = ServerIdentity("mysql", "uuid", 1)
BOUNDS = st.lists(positions(files=1_000_005, offsets=50), min_size=2, max_size=8).map(sorted)


def cursor_at(position: Position) -> Cursor:
    return Cursor("shop", "drain", 1, 1, SHOP, position)


def tiles(bounds) -> tuple[Window, ...]:
    return tuple(Window("shop", 1, start, stop) for start, stop in pairwise(bounds))


# Positions and order keys


@given(positions(), positions())
def test_positions_compare_as_their_numbers(one, other):
    """File number first, offset second, and never as text."""
    numbers, others = (one.file_number, one.offset), (other.file_number, other.offset)
    assert (one < other) == (numbers < others)
    assert (one <= other) == (numbers <= others)
    assert (one > other) == (numbers > others)
    assert (one >= other) == (numbers >= others)
    assert (one == other) == (numbers == others)


def test_the_millionth_file_comes_after_the_one_before_it():
    """As text it would come first."""
    assert Position("binlog.999999", 4) < Position("binlog.1000000", 4)
    assert Position("binlog.000009", 100) < Position("binlog.000009", 1000)


@given(positions())
def test_a_position_is_read_as_it_is_printed(position):
    """By people in between."""
    assert Position.parse(str(position)) == position


@given(st.integers(1, 9), positions(), positions(), st.integers(0, 2**31 - 1))
def test_a_snapshot_row_is_ordered_after_the_changes_it_has_and_before_later_ones(epoch, watermark, event, row):
    """After every change before its low watermark, before every one at or after it."""
    snapshot = (*Point.at(epoch, watermark), SNAPSHOT_ROW)
    change = (*Point.at(epoch, event), row)
    assert (change < snapshot) == (event < watermark)
    assert change != snapshot


@given(positions(), positions(), st.integers(1, 9), st.integers(1, 9))
def test_a_later_epoch_is_later_with_any_file_names(one, other, epoch, later):
    """A new server may count its files from one."""
    assume(epoch < later)
    assert (*Point.at(epoch, one), 7) < (*Point.at(later, other), 0)


# Law 1


@given(windows())
def test_the_id_of_a_window_derives_from_its_bounds_alone(window):
    """The same bounds give the same id, in any process at any time, and other bounds another one."""
    again = Window(window.source, window.epoch, Position.parse(str(window.start)), Position.parse(str(window.stop)))
    assert again.id == window.id
    assert replace(window, epoch=window.epoch + 1).id != window.id
    assert replace(window, stop=Position(window.stop.file, window.stop.offset + 1)).id != window.id


@given(windows(), windows())
def test_two_windows_share_an_id_only_when_they_share_their_bounds(one, other):
    """The id names the folder of the batch."""
    assert (one.id == other.id) == ((one.epoch, one.start, one.stop) == (other.epoch, other.start, other.stop))


@given(st.lists(st.tuples(st.integers(1, 99), positions(files=999_999), positions(files=999_999)), max_size=5))
def test_ids_sort_as_the_stream_does(bounds):
    """Up to the last file number of six digits; whoever needs an order that always holds compares positions."""
    made = [Window("shop", epoch, *sorted(pair)) for epoch, *pair in bounds]
    in_order = sorted(
        made, key=lambda w: (w.epoch, w.start.file_number, w.start.offset, w.stop.file_number, w.stop.offset)
    )
    assert sorted(window.id for window in made) == [window.id for window in in_order]


@given(positions(), positions())
def test_a_window_never_ends_before_it_starts(one, other):
    """It is refused when it is made."""
    assume(one != other)
    first, last = sorted((one, other))
    assert Window("shop", 1, first, last).start == first
    with pytest.raises(ConfigError):
        Window("shop", 1, last, first)


# Law 2


@given(BOUNDS, st.integers(0, 8))
def test_windows_that_tile_the_stream_are_taken_in_any_portions(bounds, cut):
    """All at once, or some now and some later."""
    planned = tiles(bounds)
    at_once = cursor_at(bounds[0]).with_windows(planned)
    assert at_once == cursor_at(bounds[0]).with_windows(planned[:cut]).with_windows(planned[cut:])
    assert at_once.in_flight == planned
    assert all(follows(later, earlier) for earlier, later in pairwise(planned))


@given(BOUNDS, st.data())
def test_a_gap_or_an_overlap_is_refused(bounds, data):
    """Wherever a window starts elsewhere than the one before it stops."""
    planned = list(tiles(bounds))
    number = data.draw(st.integers(0, len(planned) - 1))
    moved = planned[number]
    start = data.draw(positions(files=1_000_005, offsets=50).filter(lambda p: p != moved.start and p <= moved.stop))
    planned[number] = replace(moved, start=start)
    with pytest.raises(CursorMoved):
        cursor_at(bounds[0]).with_windows(tuple(planned))


@given(BOUNDS, st.sampled_from([{"source": "other"}, {"epoch": 2}]))
def test_windows_of_another_source_or_epoch_are_refused(bounds, other):
    """Their positions mean something else."""
    with pytest.raises(CursorMoved):
        cursor_at(bounds[0]).with_windows(tuple(replace(window, **other) for window in tiles(bounds)))


# Law 4


class Acknowledging(RuleBasedStateMachine):
    """Plans and acks in any order: only those in the stream's order succeed, and the cursor only moves forward."""

    def __init__(self):
        super().__init__()
        self.cursor = cursor_at(Position("binlog.999998", 4))
        self.acked: list[Window] = []

    @rule(steps=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), min_size=1, max_size=4))
    def plan(self, steps):
        at = self.cursor.in_flight[-1].stop if self.cursor.in_flight else self.cursor.position
        bounds = [at]
        for files, octets in steps:
            number = bounds[-1].file_number + files
            bounds.append(Position(f"binlog.{number:06d}", octets + (4 if files else bounds[-1].offset)))
        self.cursor = self.cursor.with_windows(tiles(bounds))

    @precondition(lambda self: self.cursor.in_flight)
    @rule()
    def ack_the_next(self):
        window, before = self.cursor.in_flight[0], self.cursor
        self.cursor = before.acked(window, at=AT, event_time=AT + timedelta(seconds=len(self.acked)))
        assert self.cursor.position == window.stop
        assert self.cursor.generation == before.generation  # the store counts generations, a move does not
        assert before.position == window.start  # the old cursor is as it was
        self.acked.append(window)

    @precondition(lambda self: self.cursor.in_flight)
    @rule(data=st.data())
    def ack_another(self, data):
        window = data.draw(st.sampled_from(self.cursor.in_flight))
        assume(window.start != self.cursor.position)
        with pytest.raises(CursorMoved):
            self.cursor.acked(window, at=AT, event_time=None)

    @precondition(lambda self: self.acked)
    @rule(data=st.data())
    def ack_again(self, data):
        window = data.draw(st.sampled_from(self.acked))
        assume(window.start != self.cursor.position)
        with pytest.raises(CursorMoved):
            self.cursor.acked(window, at=AT, event_time=None)

    @rule(other=st.sampled_from([{"source": "other"}, {"epoch": 2}]))
    def ack_a_stranger(self, other):
        here = Window("shop", 1, self.cursor.position, self.cursor.position)
        with pytest.raises(CursorMoved):
            self.cursor.acked(replace(here, **other), at=AT, event_time=None)

    @invariant()
    def what_was_acked_tiles_the_stream_up_to_the_cursor(self):
        for earlier, later in pairwise(self.acked):
            assert follows(later, earlier)
        if self.acked:
            assert self.cursor.position == self.acked[-1].stop

    @invariant()
    def what_is_in_flight_tiles_the_stream_from_the_cursor_on(self):
        at = self.cursor.position
        for window in self.cursor.in_flight:
            assert window.start == at
            at = window.stop

    @invariant()
    def every_move_is_remembered_up_to_a_hundred(self):
        moves = self.cursor.moves
        assert len(moves) == min(len(self.acked), KEPT_MOVES)
        assert [move.stop for move in moves] == [window.stop for window in self.acked[-KEPT_MOVES:]]


TestAcknowledging = Acknowledging.TestCase


@given(BOUNDS, st.data())
def test_what_stays_in_flight_tiles_the_stream_after_any_ack(bounds, data):
    """Also after one that was not planned, such as a command's: what no longer fits is planned again."""
    cursor = cursor_at(bounds[0]).with_windows(tiles(bounds))
    stop = data.draw(positions(files=1_000_005, offsets=50).filter(lambda p: p >= bounds[0]))
    moved = cursor.acked(Window("shop", 1, bounds[0], stop), at=AT, event_time=None)
    at = moved.position
    for window in moved.in_flight:
        assert window.start == at
        at = window.stop


def test_a_cursor_remembers_its_last_hundred_moves():
    """The document does not grow for ever."""
    cursor = cursor_at(Position("binlog.000001", 4))
    for number in range(2, 250):
        stop = Position(f"binlog.{number:06d}", 4)
        cursor = cursor.acked(Window("shop", 1, cursor.position, stop), at=AT, event_time=None, by=f"task {number}")
    assert len(cursor.moves) == KEPT_MOVES
    assert cursor.moves[-1].by == "task 249"
    assert cursor.moves[-1].start == cursor.moves[-2].stop


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9), st.booleans()), max_size=9))
def test_a_snapshot_task_has_one_state_the_last(states):
    """Whatever order they come in, there is one per table."""
    cursor = cursor_at(Position("binlog.000001", 4))
    for table, chunks, complete in states:
        cursor = cursor.with_snapshot(SnapshotTask("shop", 1, "s", "shop", table, chunks, complete))
    last = {table: (chunks, complete) for table, chunks, complete in states}
    assert {task.table: (task.chunks, task.complete) for task in cursor.snapshots} == last
    assert [task.table for task in cursor.snapshots] == sorted(last)
    assert {task.table for task in cursor.open_snapshots} == {t for t, (_, complete) in last.items() if not complete}
