"""Windows that follow each other: every gap is found, and no window that leads on is taken for one."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from cdc_lib.model.position import Point
from cdc_lib.model.stored_window import StoredWindow
from cdc_lib.store.windows import chained

NOW = datetime(2026, 11, 21, tzinfo=UTC)


def window(start, stop):
    return StoredWindow(f"{start}-{stop}", Point(1, 1, start), Point(1, 1, stop), NOW)


def at(offset):
    return Point(1, 1, offset)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=12), st.data())
def test_a_window_that_is_missing_is_the_gap_and_those_before_it_are_taken(lengths, data):
    """Whatever else is missing after it."""
    ends = [sum(lengths[:n]) for n in range(len(lengths) + 1)]
    windows = [window(start, stop) for start, stop in pairwise(ends)]
    lost = data.draw(st.sets(st.integers(0, len(windows) - 1)))
    stored = data.draw(st.permutations([one for n, one in enumerate(windows) if n not in lost]))
    chain = chained(stored, at(0), at(ends[-1]))
    if not lost:
        assert (chain.windows, chain.gap) == (tuple(windows), None)
        return
    first = min(lost)
    assert chain.windows == tuple(windows[:first])
    begin, end = chain.gap
    assert begin == windows[first].start
    assert end == min((one.start for one in stored if one.start > begin), default=at(ends[-1]))
    refilled = [*stored, StoredWindow("refilled", begin, end, NOW)]
    assert len(chained(refilled, at(0), at(ends[-1])).windows) > len(chain.windows)


@given(st.sets(st.tuples(st.integers(0, 9), st.integers(1, 10)).filter(lambda w: w[0] < w[1]), max_size=25))
def test_of_windows_that_overlap_a_way_is_found_where_there_is_one(bounds):
    """As a search over all ways finds it."""
    chain = chained([window(*one) for one in bounds], at(0), at(10))
    reached = {0}
    for start, stop in sorted(bounds):
        reached |= {stop} if start in reached else set()
    assert (chain.gap is None) is (10 in reached)
    place = 0
    for one in chain.windows:
        assert one.start == at(place)
        place = one.stop.offset
    assert at(place) == (at(10) if chain.gap is None else chain.gap[0])
