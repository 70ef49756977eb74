"""``cdc step rollback``: the lake's merge in flight is dropped after confirmation; no server is needed."""

from __future__ import annotations

import pytest

from cdc_lib.model.cursor import LAKE, Cursor
from cdc_lib.model.window import SnapshotTask, Window
from cdc_lib.store.cursors import ObjectCursorStore
from cdc_lib.store.objects.local import LocalStore
from tests.harness.lake.batches import IDENTITY, at


@pytest.fixture
def cursors(tmp_path):
    """A lake cursor with a window and a snapshot in flight."""
    store = ObjectCursorStore(LocalStore(tmp_path / "store"))
    task = SnapshotTask("shop", 1, "s1", "shop", "orders", chunks=2)
    lake = Cursor("shop", LAKE, 0, 1, IDENTITY, at(4), in_flight_snapshots=(task,))
    store.swap(None, lake.with_windows((Window("shop", 1, at(4), at(100)),)))
    return store


def test_a_merge_is_dropped_only_after_confirmation(cdc, cursors):
    """It stays where it is; who and why are kept with the move."""
    before = cursors.load("shop", LAKE)
    asked = cdc("step", "rollback", "shop")
    assert "in flight: 3 batches from binlog.000001:4 to binlog.000001:100" in asked.stdout
    assert cursors.load("shop", LAKE) == before
    done = cdc("step", "rollback", "shop", "--yes", "--why", "an incomplete row")
    assert done.exit_code == 0
    assert "is at binlog.000001:4 with nothing in flight" in done.stdout
    after = cursors.load("shop", LAKE)
    assert (after.position, after.in_flight, after.in_flight_snapshots) == (at(4), (), ())
    move = after.moves[-1]
    assert (move.kind, move.start, move.stop, move.why) == ("rollback", at(4), at(4), "an incomplete row")
    assert "cdc step rollback by" in move.by


def test_nothing_in_flight_is_nothing_to_forget(cdc, cursors):
    """Nor is a source that never ran."""
    cdc("step", "rollback", "shop", "--yes")
    before = cursors.load("shop", LAKE)
    refused = cdc("step", "rollback", "shop", "--yes")
    assert (refused.exit_code, "no merge is in flight" in refused.stderr) == (2, True)
    assert cursors.load("shop", LAKE) == before
