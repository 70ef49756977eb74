"""Ranges of a snapshot tile the keys, whatever the bounds; what is acknowledged of them adds up."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from cdc_lib.model.window import SnapshotTask
from cdc_lib.snapshot.ranges import balanced, tiles
from cdc_lib.store.documents import to_plain, unit_from_plain
from cdc_lib.store.layout import chunk_manifest_key

TASK = SnapshotTask("shop", 1, "000001-000001.000000000004", "shop", "orders", to_divide=True)
BOUNDS = st.sets(st.tuples(st.integers(0, 30), st.integers(0, 3)), max_size=12).map(sorted)


def holds(one, key):
    return (one.after is None or key > one.after) and (one.last is None or key <= one.last)


@given(BOUNDS, st.tuples(st.integers(-1, 31), st.integers(-1, 4)))
def test_every_key_is_in_one_range(bounds, key):
    """Those beyond all bounds are in the first or the last."""
    ranges = tiles(bounds)
    assert len(ranges) == (len(bounds) + 1 if bounds else 0)
    assert sum(holds(one, key) for one in ranges) == bool(bounds)


@given(BOUNDS, st.data(), st.integers(2, 8))
def test_bounds_are_chosen_in_order_and_each_once(bounds, data, number):
    """There are no more ranges than wanted. If a piece is no larger than a share, a range is no larger than two."""
    rows = data.draw(st.lists(st.integers(0, 100), min_size=len(bounds) + 1, max_size=len(bounds) + 1))
    chosen = balanced(bounds, rows, number)
    assert chosen == sorted(set(chosen) & set(bounds))
    assert len(chosen) < number
    share = sum(rows) / number
    if bounds and max(rows) <= share:
        ends = [bounds.index(one) + 1 for one in chosen]
        sizes = [sum(rows[a:b]) for a, b in zip([0, *ends], [*ends, None], strict=True)]
        assert max(sizes) <= 2 * share


@given(BOUNDS, st.data())
def test_what_is_left_to_read_is_what_is_not_complete(bounds, data):
    """A snapshot is complete when all of its ranges are; an undivided one is a single unit."""
    task = TASK.divided(tiles(bounds), ("id int",))
    states = data.draw(
        st.lists(st.tuples(st.integers(1, 9), st.booleans()), min_size=len(task.parts), max_size=len(task.parts))
    )
    after = task.acknowledged(states)
    assert after.complete == all(done for _, done in states)
    assert after.chunks == sum(count for count, _ in states)
    assert [unit.range_number or 0 for unit in after.units] == [n for n, (_, done) in enumerate(states) if not done]
    assert len({unit.id for unit in after.parts}) == len(states)
    assert replace(after.parts[0], range_number=None).id == task.id


def test_a_snapshot_that_was_begun_without_ranges_goes_on_without():
    """As a cursor of an earlier version has it: one unit, under the names that its chunks have."""
    plain = {name: value for name, value in to_plain(TASK).items() if "range" not in name and name != "to_divide"}
    task = unit_from_plain(plain)
    assert task == replace(TASK, to_divide=False)
    assert task.units == (task,)
    assert chunk_manifest_key(task, 3).endswith("/shop.orders/000003/manifest.json")


@given(BOUNDS)
def test_a_snapshot_of_a_new_epoch_is_divided_again(bounds):
    """Nothing of its ranges or chunks is left; the next plan decides."""
    task = TASK.divided(tiles(bounds), ("id int",)).acknowledged([(3, False)] * (len(bounds) + 1))
    assert task.again(2, "000002-x") == replace(TASK, epoch=2, snapshot_id="000002-x")
