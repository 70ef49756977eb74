"""A server whose clock is wrong is reported."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from cdc_lib.mysql.clock import judge_clock

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "level", "word"),
    [
        (0, "ok", "agree"),
        (-30, "ok", "agree"),
        (300, "warning", "300 seconds ahead"),
        (-31, "warning", "31 seconds slower"),
    ],
)
def test_a_clock_that_differs_by_more_than_half_a_minute_is_a_warning(seconds, level, word):
    """With the side on which it is wrong."""
    found = judge_clock(NOW + timedelta(seconds=seconds), NOW)
    assert (found.level, word in found.what) == (level, True)
