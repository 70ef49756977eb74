from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from cdc_lib.backfill.period import TimedWindow, chosen, refuse_gaps, refuse_removed
from cdc_lib.errors import BatchesMissing
from cdc_lib.model.backfill import ArchivedWindow, Period
from cdc_lib.model.position import Point

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def window(number, first=None, last=None, epoch=1):
    found = ArchivedWindow(f"w{number}", Point(epoch, 1, number * 100), Point(epoch, 1, number * 100 + 100))
    return TimedWindow(found, first, last)


def names(windows):
    return [one.window.key for one in windows]


HOURS = [window(n, NOON + n * HOUR, NOON + n * HOUR + HOUR / 2) for n in range(4)]


def test_a_period_takes_each_window_that_has_an_event_in_it():
    """The end of the period is exclusive."""
    assert names(chosen(HOURS, Period(NOON + HOUR, NOON + 2 * HOUR))) == ["w1"]
    assert names(chosen(HOURS, Period(NOON + HOUR * 1.4, NOON + HOUR * 2.1))) == ["w1", "w2"]
    assert names(chosen(HOURS, Period(NOON + HOUR * 1.6, NOON + HOUR * 1.9))) == []
    assert names(chosen(HOURS, Period())) == ["w0", "w1", "w2", "w3"]


def test_windows_in_between_are_included_with_any_times():
    """Empty ones, and those of a clock that was set back: the merged range has no gap."""
    odd = [HOURS[0], window(1), window(2, NOON - 9 * HOUR, NOON - 9 * HOUR), HOURS[3], window(4)]
    assert names(chosen(odd, Period(NOON, None))) == ["w0", "w1", "w2", "w3"]
    assert names(chosen([window(1, NOON + HOUR, NOON)], Period(NOON, NOON + HOUR / 2))) == ["w1"]


def test_a_period_that_begins_before_the_oldest_batch_is_refused():
    """Unless no batch was removed, or the period has no start."""
    refuse_removed(Period(NOON), NOON, from_the_start=False, source="shop")
    refuse_removed(Period(NOON - HOUR), NOON, from_the_start=True, source="shop")
    refuse_removed(Period(), NOON, from_the_start=False, source="shop")
    with pytest.raises(
        BatchesMissing, match=r"11:00:00 to now is no longer stored: the oldest batch begins at .* 12:00:00"
    ):
        refuse_removed(Period(NOON - HOUR), NOON, from_the_start=False, source="shop")
    with pytest.raises(BatchesMissing, match="there is no batch"):
        refuse_removed(Period(NOON - HOUR), None, from_the_start=False, source="shop")


def test_windows_with_a_gap_are_refused():
    """Also a gap at the start or the end; another epoch may begin anywhere."""
    stored = [one.window for one in HOURS]
    refuse_gaps(stored, Point(1, 1, 50), Point(1, 1, 400), "shop")
    refuse_gaps([*stored, window(1, epoch=2).window], Point(1, 1, 0), Point(2, 1, 200), "shop")
    for left, low, high in ((stored[:1] + stored[2:], 0, 400), (stored, 0, 500), (stored[1:], 0, 400)):
        with pytest.raises(BatchesMissing, match="no longer stored"):
            refuse_gaps(left, Point(1, 1, low), Point(1, 1, high), "shop")
