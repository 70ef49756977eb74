"""A part of a table is read again, and a table of another life of the source is replaced: what each mode keeps."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_lib.config.modes import ModeRule
from cdc_lib.model.quarantine import QuarantineRecord
from cdc_lib.model.row_selection import RowSelection
from cdc_lib.model.table_mode import RESET
from tests.harness.lake.batches import BIGINT, START_TIME, TEXT, Row, at, table

BEFORE = [("c", 10 + key, key, "old") for key in range(1, 7)]
SEEN = {
    "mirror": ("id", "state"),
    "soft_delete": ("id", "state", "_is_deleted", "_offset"),
    "append": ("id", "state", "_op", "_offset"),
    "scd2": ("id", "state", "_offset", "_is_current", "_to_offset"),
}


@pytest.fixture
def orders(lake, mode):
    orders = table(f"{lake.database}.orders", {"id": BIGINT, "state": TEXT})
    rule = ModeRule(tables=orders.name, mode=mode)
    lake.config = lake.config.model_copy(update={"modes": (rule,)})
    return orders


def window(lake, orders, start, stop, rows, **more):
    changes = [Row(op, offset, {"id": key, "state": state}) for op, offset, key, state in rows]
    return lake.batches.window(start, stop, {orders: changes} if rows else {}, **more)


RANGE = {
    "mirror": [(1, "old"), (2, "old"), (4, "read"), (5, "later"), (6, "old")],
    "soft_delete": [
        (1, "old", False, 11),
        (2, "old", False, 12),
        (3, "old", True, 150),
        (4, "read", False, 150),
        (5, "later", False, 170),
        (6, "old", False, 16),
    ],
    "scd2": [
        (1, "old", 11, True, None),
        (2, "old", 12, True, None),
        (3, "old", 13, False, 150),
        (4, "old", 14, False, 150),
        (4, "read", 150, True, None),
        (5, "later", 170, True, None),
        (5, "old", 15, False, 150),
        (6, "old", 16, True, None),
    ],
}


@pytest.mark.parametrize("mode", RANGE)
def test_rows_of_a_range_that_the_source_no_longer_has_are_deleted(lake, orders, mode):
    """Rows outside the range stay; a row that was inserted after the read counts. A merge that runs again changes nothing."""
    lake.merge(lake.batches.plan(100, window(lake, orders, 4, 100, BEFORE)))
    part = RowSelection(("id",), ("3",), ("5",))
    read = [{"id": 4, "state": "read"}]
    chunk = lake.batches.chunk(orders, 150, read, snapshot="p", part=part, high=160)
    plan = lake.batches.plan(200, chunk, window(lake, orders, 100, 200, [("c", 170, 5, "later")]))
    lake.merge(plan)
    assert lake.rows(orders.name, *SEEN[mode]) == sorted(RANGE[mode], key=repr)
    before = lake.snapshots(orders.name)
    lake.merge(lake.batches.again(plan))
    assert lake.snapshots(orders.name) == before


ANOTHER = {
    "mirror": [(2, "new"), (7, "new")],
    "append": [(2, "new", "r"), (7, "new", "r")],
}


@pytest.mark.parametrize("mode", ANOTHER)
def test_a_snapshot_replaces_the_rows_of_another_life_of_the_source(lake, orders, mode):
    """Whose positions say nothing: they are all greater than those of the new rows."""
    late = [(op, offset + 9000, key, state) for op, offset, key, state in BEFORE]
    lake.merge(replace(lake.batches.plan(9900, window(lake, orders, 9000, 9900, late)), source_uuid="first life"))
    read = [{"id": key, "state": "new"} for key in (2, 7)]
    chunk, end = lake.batches.chunk(orders, 150, read, snapshot="whole"), at(150)
    asked = QuarantineRecord(
        orders.name, 1, end, end, end, None, None, START_TIME, released_position=end, snapshot_id="whole"
    )
    second = {"source_uuid": "second life", "quarantine": (asked,)}
    lake.merge(replace(lake.batches.plan(200, chunk), **second))
    found = [row for row in lake.rows(orders.name, *SEEN[mode][:3]) if row[-1] != RESET]
    assert found == sorted(ANOTHER[mode], key=repr)
    lake.merge(replace(lake.batches.plan(300, window(lake, orders, 200, 300, [("u", 250, 7, "now")])), **second))
    assert (7, "now") in lake.rows(orders.name, "id", "state")
    assert lake.state(orders.name).marker.source_uuid == "second life"
