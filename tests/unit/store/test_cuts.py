"""Which cut is the last one."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta

import pytest

from cdc_lib.model.lake import Point
from cdc_lib.model.merge import Cut, TableCut
from cdc_lib.model.position import Position
from cdc_lib.store import layout
from cdc_lib.store.cuts import last_cut, publish
from cdc_lib.store.local import LocalStore

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


def test_the_last_cut_is_the_furthest_whatever_the_clocks_said(store):
    """Five merges went by after the clock was set back, and their tables are not forgotten."""
    for number in range(5):
        published(store, 100 + number, "a", number, ["orders"])
    for number in range(5):
        last = published(store, 1000 + number, "a", number - 48, ["customers", "orders"])
    assert last_cut(store, "shop") == last
    switched = published(store, 4, "a", -100, ["customers", "orders"], epoch=2)
    assert last_cut(store, "shop") == switched


def test_of_cuts_at_one_position_the_last_one_has_the_most_tables(store):
    """Chunks of snapshots are merged while the position stands; a table that came is in every cut after it."""
    published(store, 100, "b", 5, ["orders"])
    last = published(store, 100, "a", 1, ["customers", "orders"])
    published(store, 100, "c", 0, ["customers", "orders"])
    assert last_cut(store, "shop") == last


def test_a_cut_says_up_to_where_rows_that_were_read_back_are_ahead(store):
    """Cuts of before do without."""
    ahead = Point(1, 9, 777)
    table = TableCut("shop.a", "lake.shop.a", 1, 0, ahead=ahead)
    publish(store, Cut("shop", "000001-000009.000000000005-a", 1, Position("binlog.000009", 5), None, NOON, (table,)))
    found = last_cut(store, "shop")
    assert found is not None
    assert found.tables[0].ahead == ahead
    assert isinstance(found.tables[0].ahead, Point)
