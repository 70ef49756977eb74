"""How fast a backlog is drained, by the moves of the drain cursor: only where they tell it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from cdc_lib.model.cursor import Move
from cdc_lib.model.position import Position
from cdc_lib.plan.drain_rate import drain_rate

BEGAN = datetime(2026, 11, 21, tzinfo=UTC)
FILES = [(f"binlog.{number:06d}", 1000) for number in range(1, 20)]


def moves(*acks, kind="ack"):
    """A move for each (seconds, file number, offset, who)."""
    found, start = [], Position("binlog.000001", 4)
    for seconds, file, offset, by in acks:
        stop = Position(f"binlog.{file:06d}", offset)
        found.append(Move(BEGAN + timedelta(seconds=seconds), kind, start, stop, by))
        start = stop
    return found


def test_the_rate_is_that_from_ack_to_ack_within_a_backlog():
    """The moves of one ack, which lie close together, count as one."""
    run = moves((0, 2, 4, "a"), (60, 3, 4, "b"), (60.2, 4, 4, "b"), (60.4, 6, 4, "b"))
    assert drain_rate(run, FILES) == pytest.approx(4000 / 60.4)


def test_one_long_pause_within_a_backlog_does_not_count_as_slowness():
    """The middle of three stretches."""
    run = moves((0, 2, 4, "a"), (100, 3, 4, "b"), (90_000, 4, 4, "c"), (90_050, 5, 4, "d"))
    assert drain_rate(run, FILES) == 10


@pytest.mark.parametrize(
    "run",
    [
        [],
        moves((0, 2, 4, "a")),
        moves((0, 2, 300, "a"), (60, 3, 4, "b")),
        moves((0, 2, 4, "a"), (60, 3, 300, "b")),
        moves((0, 2, 4, "a"), (0.5, 3, 4, "a"), (1, 4, 4, "a")),
        moves((0, 2, 4, "a"), (60, 5, 4, "b"), kind="rewind"),
        moves((5, 2, 4, "a"), (5, 3, 4, "b")),
    ],
    ids=["none", "one", "was at the head", "came to the head", "one ack", "no acks", "no time between"],
)
def test_moves_without_a_measurable_rate_give_none(run):
    """A drain that waits for changes, or for its schedule, is not slow."""
    assert drain_rate(run, FILES) is None


def test_an_interval_with_a_purged_file_does_not_count():
    """Nobody knows how long it was."""
    run = moves((0, 2, 4, "a"), (60, 5, 4, "b"))
    assert drain_rate(run, FILES[2:]) is None
    assert drain_rate(run, FILES[1:]) == 50
