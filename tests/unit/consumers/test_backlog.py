from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_lib.consumers.backlog import earliest, following
from cdc_lib.errors import BatchesMissing
from cdc_lib.model.position import Point
from cdc_lib.model.stored_window import StoredWindow

NOW = datetime(2026, 1, 1, tzinfo=UTC)
BOUNDS = st.sets(st.integers(1, 40), min_size=2, max_size=12).map(sorted)


def window(start: int, stop: int, epoch: int = 1) -> StoredWindow:
    return StoredWindow(f"{epoch}-{start}-{stop}", Point(epoch, 1, start), Point(epoch, 1, stop), NOW)


def tiles(bounds, epoch: int = 1) -> list[StoredWindow]:
    return [window(start, stop, epoch) for start, stop in pairwise(bounds)]


def up_to(*ends: Point) -> dict[int, Point]:
    return {end.epoch: end for end in ends}


def read(windows, start: Point, *ends: Point) -> list[tuple[str, Point | None]]:
    ordered = sorted(windows, key=lambda one: (one.start, one.stop))
    return [(step.window.key, step.floor) for step in following(ordered, start, up_to(*ends), "shop")]


@given(BOUNDS, BOUNDS, st.data())
def test_every_point_is_read_once_however_the_drain_cut_the_stream_again(one, other, data):
    """A rewound drain leaves windows that overlap; what is read still tiles the stream."""
    low, high = min(one[0], other[0]), max(one[-1], other[-1])
    both = tiles(sorted({low, high, *one})) + tiles(sorted({low, high, *other}))
    at = data.draw(st.integers(low, high))
    read_points: list[int] = []
    for step in following(
        sorted(both, key=lambda w: (w.start, w.stop)), Point(1, 1, at), up_to(Point(1, 1, high)), "shop"
    ):
        begin = step.floor or step.window.start
        read_points += range(begin.offset, step.window.stop.offset)
    assert read_points == list(range(at, high))


@given(BOUNDS, st.data())
def test_a_gap_stops_the_reader_where_it_begins_and_is_never_jumped(bounds, data):
    """Whatever lies after it."""
    windows = tiles(bounds)
    removed = data.draw(st.integers(0, len(windows) - 1))
    remaining = windows[:removed] + windows[removed + 1 :]
    steps = following(remaining, windows[0].start, up_to(windows[-1].stop), "shop")
    assert [next(steps).window for _ in range(removed)] == windows[:removed]
    with pytest.raises(BatchesMissing):
        next(steps)
    assert earliest(remaining, up_to(windows[-1].stop)) == (windows[removed].stop)


def test_what_the_drain_has_not_acknowledged_is_not_seen():
    """A durable window alone is no reason to read it."""
    assert read(tiles([4, 10, 20]), Point(1, 1, 4), Point(1, 1, 10)) == [("1-4-10", None)]
    assert read(tiles([4, 10, 20]), Point(1, 1, 4), Point(1, 1, 4)) == []


def test_a_drain_that_was_rewound_to_before_a_consumer_gives_it_nothing_until_it_is_there_again():
    """Rows that the consumer has acknowledged do not come again."""
    assert read(tiles([4, 10, 20]), Point(1, 1, 20), Point(1, 1, 10)) == []


def test_the_next_epoch_begins_where_the_last_one_has_no_more_windows():
    """The server that was followed before has positions of its own."""
    windows = [*tiles([400, 500]), *tiles([4, 10], epoch=2)]
    assert read(windows, Point(1, 1, 400), Point(2, 1, 10)) == [("1-400-500", None), ("2-4-10", None)]
    assert read(windows[:1], Point(1, 1, 500), Point(2, 1, 4)) == []
    with pytest.raises(BatchesMissing):
        read([*tiles([450, 500]), *tiles([4, 10], epoch=2)], Point(1, 1, 400), Point(2, 1, 10))


def test_the_earliest_position_is_in_the_oldest_stored_epoch():
    """And after the newest gap."""
    windows = [*tiles([400, 500]), *tiles([4, 10, 20], epoch=2)]
    assert earliest(windows, up_to(Point(2, 1, 20))) == Point(1, 1, 400)
    assert earliest([], up_to(Point(2, 1, 20))) == Point(2, 1, 20)
    assert earliest([window(4, 10), window(20, 30)], up_to(Point(1, 1, 30))) == Point(1, 1, 20)


def test_batches_after_the_end_of_an_epoch_are_ignored_and_a_gap_before_it_is_reported():
    """A window that was drained, and never acknowledged before the drain went to another server."""
    windows = [*tiles([400, 500, 600]), *tiles([4, 10], epoch=2)]
    ends = (Point(1, 1, 500), Point(2, 1, 10))
    assert read(windows, Point(1, 1, 400), *ends) == [("1-400-500", None), ("2-4-10", None)]
    assert earliest(windows, up_to(*ends)) == Point(1, 1, 400)
    with pytest.raises(BatchesMissing):
        read(windows[2:], Point(1, 1, 400), *ends)
    assert earliest([windows[0], windows[2]], up_to(Point(1, 1, 600), Point(2, 1, 10))) == Point(2, 1, 4)
