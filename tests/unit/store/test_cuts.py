"""Which cut is the last one."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta

import pytest

from cdc_lib.model.merge_plan import Cut, TableCut
from cdc_lib.model.position import Point, Position
from cdc_lib.store import layout
from cdc_lib.store.cuts import KEPT_CUTS, THIN_AT_ONCE, last_cut, last_cut_by, named_snapshots, publish, thin_cuts
from cdc_lib.store.objects.local import LocalStore

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.fixture
def store(tmp_path):
    return LocalStore(tmp_path / "store")


def published(store, offset, digest, hours, tables, epoch=1):
    """Publish a cut when the clocks of the job and of the store say so many hours before or after noon."""
    at = NOON + timedelta(hours=hours)
    position = Position("binlog.000009", offset)
    merge_id = f"{epoch:06d}-{position.file_number:06d}.{position.offset:012d}-{digest}"
    named = tuple(TableCut(f"shop.{name}", f"lake.shop.{name}", 1, 0) for name in tables)
    cut = publish(store, Cut("shop", merge_id, epoch, position, None, at, named))
    os.utime(store.root / layout.cut_key("shop", merge_id), (at.timestamp(), at.timestamp()))
    return cut


def test_a_source_without_a_cut_has_none(store):
    """Before the first merge."""
    assert last_cut(store, "shop") is None


def test_the_last_cut_is_the_one_at_the_last_position_even_if_clocks_jump(store):
    """Five merges went by after the clock was set back, and their tables are not forgotten."""
    for number in range(5):
        published(store, 100 + number, "a", number, ["orders"])
    for number in range(5):
        last = published(store, 1000 + number, "a", number - 48, ["customers", "orders"])
    assert last_cut(store, "shop") == last
    switched = published(store, 4, "a", -100, ["customers", "orders"], epoch=2)
    assert last_cut(store, "shop") == switched


def test_of_cuts_at_one_position_the_last_one_has_the_most_tables(store):
    """Chunks of snapshots are merged while the position is; a table that came is in every cut after it."""
    published(store, 100, "b", 5, ["orders"])
    last = published(store, 100, "a", 1, ["customers", "orders"])
    published(store, 100, "c", 0, ["customers", "orders"])
    assert last_cut(store, "shop") == last


def test_a_lake_that_was_rewound_is_compared_with_the_cut_of_that_time(store):
    """At a position or before it, in this epoch or an earlier one."""
    first = published(store, 100, "a", 1, ["orders"])
    fewer = published(store, 200, "b", 3, ["orders"])
    second = published(store, 200, "a", 2, ["customers", "orders"])
    later = published(store, 50, "a", 4, ["orders"], epoch=2)

    def found(epoch, offset):
        return last_cut_by(store, "shop", epoch, Position("binlog.000009", offset))

    assert fewer != second
    assert [found(1, 99), found(1, 100), found(1, 199)] == [None, first, first]
    assert [found(1, 200), found(1, 5000), found(2, 4)] == [second, second, second]
    assert [found(2, 50), found(3, 4)] == [later, later]


def test_a_cut_records_up_to_where_reselected_rows_are_ahead(store):
    """Cuts of before do without."""
    ahead = Point(1, 9, 777)
    table = TableCut("shop.a", "lake.shop.a", 1, 0, ahead_until=ahead)
    publish(store, Cut("shop", "000001-000009.000000000005-a", 1, Position("binlog.000009", 5), None, NOON, (table,)))
    found = last_cut(store, "shop")
    assert found is not None
    assert found.tables[0].ahead_until == ahead
    assert isinstance(found.tables[0].ahead_until, Point)


def test_cuts_of_a_minutes_schedule_stay_few_and_the_last_is_as_it_was(store):
    """A run lists as many after a week as after a day."""
    counts = []
    for number in range(4 * 24 * 30):
        last = published(store, 100 + number, "a", number / 30, ["orders"])
        if number % 10 == 9:
            thin_cuts(store, "shop", last.at)
            counts.append(sum(1 for _ in store.list(layout.cuts_prefix("shop"))))
    assert max(counts) <= KEPT_CUTS + THIN_AT_ONCE + 24 + 4 + 10
    assert last_cut(store, "shop") == last
    assert named_snapshots(store, "shop") == {1}
