"""Lake tables that keep more than the source has: rows that were deleted, every change, every version."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from cdc_lib.config.modes import ModeRule
from cdc_lib.errors import MergeError
from tests.harness.lake.batches import BIGINT, START_TIME, TEXT, Row, table


@pytest.fixture
def orders(lake):
    return table(f"{lake.database}.orders", {"id": BIGINT, "state": TEXT})


def keeping(lake, orders, mode):
    """Let the lake keep the table in a mode."""
    rule = ModeRule(tables=orders.name, mode=mode)
    lake.config = lake.config.model_copy(update={"modes": (rule,)})


def window(lake, orders, start, stop, *rows, **more):
    """Merge a window of changes, each given as op, offset, id and state."""
    changes = [Row(op, offset, {"id": key, "state": state}) for op, offset, key, state in rows]
    plan = lake.batches.plan(
        stop, lake.batches.window(start, stop, {orders: changes} if rows else {}, **more), **_of(more)
    )
    lake.merge(plan)
    return plan


def _of(more):
    return {name: more[name] for name in ("epoch", "file") if name in more}


def test_soft_delete_keeps_a_deleted_row_with_its_position_and_an_insert_unmarks_it(lake, orders):
    """Also one that a TRUNCATE took, in the window of its insert or in a later one."""
    keeping(lake, orders, "soft_delete")
    window(lake, orders, 4, 100, ("c", 10, 1, "a"), ("c", 20, 2, "b"), ("c", 30, 3, "c"))
    plan = window(lake, orders, 100, 200, ("d", 110, 1, "a"), ("d", 120, 2, "b"), ("c", 130, 2, "again"))
    seen = ("id", "state", "_is_deleted", "_offset", "_ts")
    time = [(START_TIME + timedelta(seconds=n)) for n in range(400)]
    rows = [(key, *rest, at.astimezone(START_TIME.tzinfo)) for key, *rest, at in lake.rows(orders.name, *seen)]
    assert rows == [(1, "a", True, 110, time[110]), (2, "again", False, 130, time[130]), (3, "c", False, 30, time[30])]
    before = lake.snapshots(orders.name)
    lake.merge(lake.batches.again(plan))
    assert lake.snapshots(orders.name) == before
    window(
        lake,
        orders,
        200,
        300,
        ("c", 210, 4, "short"),
        ("c", 230, 5, "new"),
        statements=[("truncate", orders.name, 220)],
    )
    expected = [
        (1, "a", True, 110),
        (2, "again", True, 220),
        (3, "c", True, 220),
        (4, "short", True, 220),
        (5, "new", False, 230),
    ]
    assert lake.rows(orders.name, *seen[:-1]) == expected


def test_history_holds_each_version_of_a_row_from_its_change_to_the_next(lake, orders):
    """A key that changed often in one window, one that moved, one that was deleted, and all again by a repeated merge."""
    keeping(lake, orders, "scd2")
    window(lake, orders, 4, 100, ("c", 10, 1, "a"), ("u", 20, 1, "b"), ("c", 30, 2, "x"))
    plan = window(
        lake, orders, 100, 200, ("u", 110, 1, "c"), ("u", 120, 1, "d"), ("d", 130, 2, "x"), ("u", 130, 3, "x")
    )
    seen = ("id", "state", "_offset", "_to_offset", "_is_current")
    expected = [
        (1, "a", 10, 20, False), (1, "b", 20, 110, False), (1, "c", 110, 120, False), (1, "d", 120, None, True),
        (2, "x", 30, 130, False), (3, "x", 130, None, True),
    ]  # fmt: skip
    assert lake.rows(orders.name, *seen) == expected
    before = lake.snapshots(orders.name)
    lake.merge(lake.batches.again(plan))
    assert (lake.rows(orders.name, *seen), lake.snapshots(orders.name)) == (expected, before)
    window(lake, orders, 200, 300, ("c", 210, 4, "y"), ("u", 230, 1, "e"), statements=[("truncate", orders.name, 220)])
    ended = [(1, "d", 120, 220, False), (3, "x", 130, 220, False), (4, "y", 210, 220, False), (1, "e", 230, None, True)]
    assert lake.rows(orders.name, *seen) == sorted([*(row for row in expected if not row[-1]), *ended], key=repr)


def test_scd2_recognizes_changes_that_a_new_epoch_replays(lake, orders):
    """After a switch of servers the changes of the last minute come twice; and a chunk of a snapshot comes late."""
    keeping(lake, orders, "scd2")
    rows = [("c", 10, 1, "a"), ("u", 20, 1, "b"), ("c", 30, 2, "x"), ("d", 40, 2, "x")]
    window(lake, orders, 4, 100, *rows)
    late = lake.batches.chunk(orders, 50, [{"id": 1, "state": "b"}, {"id": 7, "state": "old"}])
    lake.merge(lake.batches.plan(100, late))
    seen = ("id", "state", "_epoch", "_offset", "_to_offset")
    expected = [
        (1, "a", 1, 10, 20),
        (1, "b", 1, 20, 50),
        (1, "b", 1, 50, None),
        (2, "x", 1, 30, 40),
        (7, "old", 1, 50, None),
    ]
    assert lake.rows(orders.name, *seen) == expected
    window(lake, orders, 4, 35, *rows[:3], epoch=2)
    window(lake, orders, 35, 100, rows[3], ("u", 60, 7, "new"), epoch=2)
    expected[-1] = (7, "old", 1, 50, 60)
    assert lake.rows(orders.name, *seen) == [*expected[:-1], (7, "new", 2, 60, None), expected[-1]]


def test_a_table_with_a_key_can_be_kept_as_the_list_of_its_changes(lake, orders):
    """And a mirror continues as soft_delete and back, but becomes nothing else."""
    keeping(lake, orders, "append")
    plan = window(lake, orders, 4, 100, ("c", 10, 1, "a"), ("u", 20, 1, "b"), ("d", 30, 1, "b"))
    lake.merge(lake.batches.again(plan))
    assert lake.rows(orders.name, "_op", "id", "state") == [("c", 1, "a"), ("d", 1, "b"), ("u", 1, "b")]
    keeping(lake, orders, "mirror")
    with pytest.raises(MergeError, match="has the mode append, and the source file says mirror"):
        window(lake, orders, 100, 200, ("c", 110, 2, "x"))
    other = replace(orders, table="others")
    keeping(lake, other, "mirror")
    window(lake, other, 300, 400, ("c", 310, 1, "a"), ("c", 320, 2, "b"))
    keeping(lake, other, "soft_delete")
    window(lake, other, 400, 500, ("d", 410, 1, "a"))
    assert lake.rows(other.name, "id", "_is_deleted") == [(1, True), (2, None)]
    keeping(lake, other, "mirror")
    window(lake, other, 500, 600, ("u", 510, 2, "c"))
    assert lake.rows(other.name, "id", "state") == [(2, "c")]


@pytest.mark.parametrize("mode", ["soft_delete", "scd2"])
def test_what_a_change_leaves_out_comes_from_the_version_before_it(lake, mode):
    """Also what a delete leaves out, where the row stays."""
    schema = table(f"{lake.database}.orders", {"id": BIGINT, "v": BIGINT, "w": BIGINT})
    keeping(lake, schema, mode)

    def merge(start, stop, *rows):
        lake.merge(lake.batches.plan(stop, lake.batches.window(start, stop, {schema: rows})))

    def part(op, offset, key, **values):
        return Row(op, offset, {"id": key, **values}, absent=frozenset({"v", "w"} - values.keys()))

    merge(4, 100, *(Row("c", 10 * key, {"id": key, "v": key, "w": -key}) for key in (1, 2)))
    merge(100, 200, part("u", 110, 1, v=7), part("u", 120, 1, w=8), part("d", 130, 2))
    if mode == "soft_delete":
        assert lake.rows(schema.name, "id", "v", "w", "_is_deleted") == [(1, 7, 8, False), (2, 2, -2, True)]
    else:
        ended = [(1, 1, -1, 110), (1, 7, -1, 120), (1, 7, 8, None), (2, 2, -2, 130)]
        assert lake.rows(schema.name, "id", "v", "w", "_to_offset") == ended
