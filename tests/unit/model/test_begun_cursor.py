"""Whether anything was drained since a source began."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from cdc_lib.model.cursor import DRAIN, Cursor, Move
from cdc_lib.model.position import Position
from cdc_lib.model.window import SnapshotTask
from tests.harness.lake.batches import IDENTITY

NOW, BEGIN = datetime(2026, 11, 21, tzinfo=UTC), Position("binlog.000001", 4)
BEGUN = Cursor("shop", DRAIN, 1, 1, IDENTITY, BEGIN, moves=(Move(NOW, "start", None, BEGIN),))


def test_a_source_that_was_only_planned_has_begun_only():
    """Its position is where it begins: nothing before it was read."""
    task = SnapshotTask("shop", 1, "000001-000001.000000000004", "shop", "orders")
    assert BEGUN.has_begun_only
    assert replace(BEGUN, snapshots=(task,)).has_begun_only
    assert not replace(BEGUN, snapshots=(replace(task, chunks=1),)).has_begun_only
    assert not replace(
        BEGUN, moves=(*BEGUN.moves, Move(NOW, "ack", BEGIN, Position("binlog.000001", 9)))
    ).has_begun_only
