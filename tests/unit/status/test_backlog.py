"""What is not drained yet and how long that takes, by the store alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from cdc_lib.model.backlog import Backlog
from cdc_lib.model.cursor import DRAIN, Cursor
from cdc_lib.model.observation import ServerObservation
from cdc_lib.model.position import Position
from cdc_lib.status.backlog import backlog_of
from tests.harness.lake.batches import IDENTITY

AT = datetime(2026, 11, 21, tzinfo=UTC)
SEEN = ServerObservation(
    "shop", AT, IDENTITY, Position("binlog.000004", 500),
    (("binlog.000002", 1000), ("binlog.000003", 1000), ("binlog.000004", 500)), None, drain_rate=20.0,
)  # fmt: skip


def drained_to(file: int, offset: int) -> Cursor:
    return Cursor("shop", DRAIN, 1, 1, IDENTITY, Position(f"binlog.{file:06d}", offset))


def test_the_backlog_ends_at_the_end_of_the_binlog_that_was_seen():
    """At the rate that was known then."""
    assert backlog_of(drained_to(3, 400), SEEN) == Backlog(1100, 55.0)
    assert backlog_of(drained_to(4, 500), SEEN) == Backlog(0, 0.0)
    assert backlog_of(drained_to(3, 400), replace(SEEN, drain_rate=None)) == Backlog(1100, None)


@pytest.mark.parametrize(
    ("drain", "seen"),
    [
        (None, SEEN),
        (drained_to(3, 400), None),
        (drained_to(4, 600), SEEN),
        (drained_to(1, 400), SEEN),
        (drained_to(3, 400), replace(SEEN, identity=replace(IDENTITY, server_uuid="0" * 8))),
    ],
    ids=["before the first plan", "never seen", "drained further since", "purged", "another server"],
)
def test_what_nobody_knows_is_no_backlog(drain: Cursor | None, seen: ServerObservation | None):
    """None, never 0."""
    assert backlog_of(drain, seen) is None


@pytest.mark.parametrize(
    ("backlog", "text"),
    [
        (Backlog(3 * 2**30, 3000.0), "3.0 GiB of binlog are not drained, about 50 min at the rate of the last backlog"),
        (Backlog(900, None), "900 bytes of binlog are not drained"),
    ],
)
def test_a_line_says_how_much_and_how_long(backlog: Backlog, text: str):
    """Without a rate there is no promise."""
    assert str(backlog) == text
