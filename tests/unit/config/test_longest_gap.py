"""The longest time between two moments of a cron expression."""

from __future__ import annotations

from datetime import timedelta

import pytest

from cdc_lib.config.schedule import longest_gap, problem


@pytest.mark.parametrize(
    ("expression", "gap"),
    [
        ("* * * * *", timedelta(minutes=1)),
        ("*/7 * * * *", timedelta(minutes=7)),
        ("5/20 * * * *", timedelta(minutes=20)),
        ("0 9-17 * * *", timedelta(hours=16)),
        ("0 4 * * *", timedelta(days=1)),
        ("30 4 * * mon-fri", timedelta(days=3)),
        ("0 0 * * 7", timedelta(days=7)),
        ("0 0 1 * *", timedelta(days=31)),
        ("0 0 1 * mon", timedelta(days=7)),
        ("0 0 29 2 *", timedelta(days=4 * 365 + 1)),
        ("0 0 30 2 mon", timedelta(days=350)),
        ("0 22-2 * * *", timedelta(hours=20)),
        ("50-10/10 * * * *", timedelta(minutes=40)),
        ("0 0 * * fri-mon", timedelta(days=4)),
        ("0 0 * nov-feb *", timedelta(days=246)),
        ("*/60 * * * *", timedelta(hours=1)),
        ("@hourly", timedelta(hours=1)),
        ("@weekly", timedelta(days=7)),
        ("@yearly", timedelta(days=366)),
    ],
)
def test_the_longest_gap_is_that_of_the_calendar(expression, gap):
    """As cron reads days: either of two restricted fields is enough."""
    assert problem(expression) is None
    assert longest_gap(expression) == gap
