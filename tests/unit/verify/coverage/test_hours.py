"""The hours of the day in which ranges are compared."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from cdc_lib.verify.coverage.hours import ALL_DAY, Hours

NIGHT, DAY = Hours.of("22:00-06:00"), Hours.of("09:30-17:00")
HOUR = timedelta(hours=1)


def at(hour, minute=0, day=10):
    return datetime(2026, 1, day, hour, minute, tzinfo=UTC)


@pytest.mark.parametrize(
    ("hours", "inside", "outside"),
    [
        (NIGHT, [at(22), at(0), at(5, 59)], [at(6), at(12), at(21, 59)]),
        (DAY, [at(9, 30), at(16, 59)], [at(9, 29), at(17), at(0)]),
        (ALL_DAY, [at(0), at(23, 59)], []),
    ],
)
def test_hours_include_their_start_and_not_their_end_also_over_midnight(hours, inside, outside):
    """In UTC, on every day."""
    assert [hours.contains(one) for one in inside] == [True] * len(inside)
    assert [hours.contains(one) for one in outside] == [False] * len(outside)


def test_only_time_within_the_hours_counts():
    """So that the first run of a night does not make up for a day in which none could be."""
    assert NIGHT.within(at(4), at(23)) == 3 * HOUR
    assert NIGHT.within(at(12), at(12, day=13)) == 3 * NIGHT.length == 24 * HOUR
    assert ALL_DAY.within(at(1), at(3, day=11)) == 26 * HOUR
    assert NIGHT.within(at(12), at(11)) == timedelta(0)


def test_the_next_run_is_after_one_gap_or_after_the_hours_begin_again():
    """At the latest: a run just before the hours would do nothing."""
    assert NIGHT.next_run(at(23), HOUR) == at(0, day=11)
    assert NIGHT.next_run(at(5, 30), HOUR) == at(23)
    assert DAY.next_run(at(16, 30), HOUR) == at(10, 30, day=11)
    assert ALL_DAY.next_run(at(23), HOUR) == at(0, day=11)
