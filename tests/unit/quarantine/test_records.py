"""Start of a quarantine after a failover: pure decisions over the drain cursor."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from cdc_lib.model.cursor import DRAIN, Cursor
from cdc_lib.model.position import Position
from cdc_lib.model.quarantine import Fault
from cdc_lib.model.server_identity import ServerIdentity
from cdc_lib.model.window import SnapshotTask, Window
from cdc_lib.quarantine.records import FaultyTable, Unmerged, quarantine, resume

NOW = datetime(2026, 11, 22, tzinfo=UTC)
TABLE = "shop.orders"
FAULT = Fault(Position("binlog.000002", 400), "unknown_event", "why")
TASK = SnapshotTask("shop", 1, "s1", "shop", "orders", chunks=1, complete=True)


def at(file, offset):
    return Position(f"binlog.{file:06d}", offset)


@pytest.fixture
def cursor():
    """In epoch 2, whose files begin again, with a window in flight."""
    state = Cursor("shop", DRAIN, 1, 2, ServerIdentity("mysql", "u", 1), at(1, 900), snapshots=(TASK,))
    return state.with_windows((Window("shop", 2, at(1, 900), at(2, 500)),))


def faulty(cursor, *, lake, needed=True):
    """The table is at fault in epoch 2 at 1:700, and the lake has no row of its snapshot."""
    waiting = {TABLE: Unmerged(TASK, at(1, 800) if needed else at(1, 600))}
    found = quarantine(cursor, FaultyTable(TABLE, FAULT, at(1, 700), None), waiting, lake, at=NOW, by="test")
    return found, found.quarantine[-1]


def test_a_table_whose_snapshot_is_cancelled_is_left_out_from_the_lake_cursor_on(cursor):
    """In the lake's epoch, for any file names; windows that are already planned are read as before."""
    found, record = faulty(cursor, lake=(1, at(7, 200)))
    assert (record.epoch, record.start, record.as_of) == (1, at(7, 200), at(7, 200))
    assert record.covers(1, at(9, 4))
    assert not record.covers(1, at(7, 100))
    assert record.covers(2, at(1, 4))
    assert not found.skipped_tables(cursor.in_flight[0])
    assert not record.skips_decode(1, at(9, 4))
    assert record.skips_decode(2, at(2, 500))


def test_a_table_whose_snapshot_is_complete_is_left_out_from_the_window_on(cursor):
    """The lake continues up to there, from an ended epoch."""
    _, record = faulty(cursor, lake=(1, at(7, 200)), needed=False)
    assert (record.epoch, record.start, record.as_of) == (2, at(1, 700), at(1, 700))


def test_a_continued_record_begins_at_the_end_of_the_previous_one(cursor):
    """In that epoch: the windows in between were left out, and their snapshot is never merged."""
    before, _ = faulty(replace(cursor, epoch=1, snapshots=()), lake=(1, at(1, 300)), needed=False)
    before = resume(before, TABLE, at(3, 4), TASK, at=NOW, by="test")
    found, record = faulty(replace(before, epoch=2), lake=(1, at(1, 300)))
    assert (record.epoch, record.start, record.as_of) == (1, at(3, 4), at(1, 700))
    assert all(one.cancelled for one in found.snapshots)


def test_a_merge_that_fails_with_a_complete_snapshot_cancels_it(cursor):
    """Its last chunk is where the lake is, so no window is lost without it: but each plan would bring it again."""
    waiting = {TABLE: Unmerged(TASK, at(1, 300))}
    failed = FaultyTable(TABLE, FAULT, None, None)
    found = quarantine(cursor, failed, waiting, (1, at(1, 300)), at=NOW, by="merge", stopped=True)
    assert [one.cancelled for one in found.snapshots] == [True]
    assert (found.quarantine[-1].start, found.quarantine[-1].as_of) == (at(1, 300), at(1, 300))
