"""A table that is held misses windows, and the merge that brings its snapshot brings these windows for it alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_lib.errors import MergeError
from cdc_lib.merge.held import held_too_long, next_merge
from cdc_lib.merge.load import load_plan
from cdc_lib.merge.planner import outdated, plan_of
from cdc_lib.model.binlog_checkpoint import BinlogCheckpoint
from cdc_lib.model.cursor import DRAIN, LAKE, Cursor
from cdc_lib.model.held_table import HeldTable
from cdc_lib.model.position import Point
from cdc_lib.model.quarantine import QuarantineRecord
from cdc_lib.model.table_name import TableName
from cdc_lib.model.window import SnapshotTask, Window
from cdc_lib.retention.policy import needed_from
from cdc_lib.store.objects.local import LocalStore
from tests.harness.lake.batches import BIGINT, IDENTITY, START_TIME, BatchWriter, Row, at, table

BIG = table("shop.big", {"id": BIGINT})
SMALL = table("shop.small", {"id": BIGINT})
NAME = TableName("shop", "big")


@pytest.fixture
def writer(tmp_path):
    return BatchWriter(LocalStore(tmp_path))


def cursor(consumer, offset, **more):
    return Cursor("shop", consumer, 1, 1, IDENTITY, at(offset), **more)


def held(offset, epoch=1):
    return HeldTable(NAME, epoch, at(offset))


def both(*ids):
    """Changes of both tables."""
    return {schema: [Row("c", offset, {"id": number}) for number, offset in ids] for schema in (BIG, SMALL)}


def contents(batches):
    return [[file.table for file in batch.manifest.files] for batch in batches]


def test_a_plan_leaves_out_a_table_from_its_place_on_and_brings_it_with_its_snapshot(writer):
    """The others are not merged again; XA transactions that were prepared before and are committed meanwhile are there."""
    writer.window(4, 100, {}, prepared={"x": (10, {BIG: [Row("c", 10, {"id": 7})], SMALL: [Row("c", 10, {"id": 7})]})})
    first = writer.window(100, 200, both((1, 150)), decided={"x": (160, True)})
    second = writer.window(200, 300, both((2, 250)))
    third = writer.window(300, 400, both((3, 350)))
    plan = replace(writer.plan(300, second), start=at(200), held=(held(200),))
    assert contents(load_plan(writer.store, plan)) == [["shop.small"]]
    chunk = writer.chunk(BIG, 120, [{"id": 1}])
    plan = replace(writer.plan(400, chunk, third), start=at(300), catching_up=(held(100),))
    found = load_plan(writer.store, plan)
    assert [batch.key for batch in found] == [chunk, first, second, third]
    assert contents(found) == [["shop.big"], ["shop.big"], ["shop.big"], ["shop.big", "shop.small"]]
    ((commit, _),) = found[1].commits
    assert commit.prepared.tables == ("shop.big",)


def test_a_table_that_waits_for_another_snapshot_catches_up_to_where_that_was_requested(writer):
    """What comes after the request is held."""
    writer.window(4, 100, both((1, 50)))
    writer.window(100, 200, both((2, 150)))
    plan = replace(writer.plan(200), start=at(200), catching_up=(held(4),), held=(held(100),))
    assert contents(load_plan(writer.store, plan)) == [["shop.big"], []]


def test_a_missing_window_stops_the_tables_that_need_it(writer):
    """And so does the missing batch of an XA transaction; one that was committed before the snapshot is in its rows."""
    writer.window(4, 100, both((1, 50)), decided={"x": (60, True)})
    chunk = writer.chunk(BIG, 70, [{"id": 1}])
    plan = replace(writer.plan(100, chunk), start=at(100), catching_up=(held(4),))
    assert len(load_plan(writer.store, plan)) == 2
    early = writer.chunk(BIG, 50, [{"id": 1}], snapshot="s2")
    with pytest.raises(
        MergeError, match="lack changes that were merged meanwhile, and the batches with the rows of XA"
    ):
        load_plan(writer.store, replace(plan, batches=(early,)))
    with pytest.raises(MergeError, match="lack changes that were merged meanwhile, and a batch of them"):
        load_plan(writer.store, replace(plan, start=at(200)))


def test_the_windows_of_a_held_table_are_kept(writer):
    """By the lake cursor, until the merge that takes them is acknowledged."""
    lake = cursor(LAKE, 300, held=(held(100),))
    assert needed_from(lake) == Point(1, 1, 100)
    flight = replace(lake, held=(), catching_up=(held(100),))
    assert needed_from(flight) == Point(1, 1, 100)
    assert flight.is_merging
    assert plan_of(flight).merge_id != plan_of(replace(flight, catching_up=(held(200),))).merge_id
    assert flight.rolled_back(at=START_TIME, by="test", why="it was planned again").held == lake.held


def test_a_snapshot_that_an_epoch_ends_is_requested_again():
    """Its table's changes of two epochs do not fit into one merge: it stays held until the new snapshot is complete."""
    left, began = (BinlogCheckpoint(IDENTITY, at(offset), None, "", False, None) for offset in (400, 4))
    reading = SnapshotTask("shop", 1, "000001-000001.000000000100", "shop", "big", chunks=2)
    drain = cursor(DRAIN, 400, snapshots=(reading,)).at_checkpoint(left)
    lake = cursor(LAKE, 400, held=(held(100),))
    assert held_too_long(drain, lake) == []
    drain = drain.with_new_epoch(began, "failover", at=START_TIME, by="test", why="it answers")
    assert held_too_long(drain, lake) == [NAME]
    lake = lake.following(drain)
    windows = [Window("shop", 2, at(4), at(90))]
    complete = replace(drain.snapshots[0], chunks=3, complete=True)
    waits = next_merge(drain.with_snapshot(complete), lake, [complete], [], windows)
    assert (waits.chunks, waits.held, waits.catching_up) == ((), lake.held, ())
    record = QuarantineRecord(
        NAME, 1, at(100), at(100), at(100), None, None, START_TIME, released_position=at(50), released_epoch=2, snapshot_id="s2"
    )  # fmt: skip
    again = SnapshotTask("shop", 2, "s2", "shop", "big", chunks=1, complete=True)
    drain = replace(drain, snapshots=(again,), quarantine=(record,))
    assert held_too_long(drain, lake) == []
    found = next_merge(drain, replace(lake, position=at(90)), [again], [], [])
    assert (found.chunks, found.held, found.catching_up) == ((again,), (), (held(50, epoch=2),))


def test_a_merge_that_catches_up_is_planned_again_for_a_new_snapshot():
    """One that leaves the table out in any case goes on."""
    record = QuarantineRecord(NAME, 1, at(100), at(100), at(100), None, None, START_TIME)
    drain = cursor(DRAIN, 400, quarantine=(record,))
    windows = (Window("shop", 1, at(300), at(400)),)
    assert outdated(drain, cursor(LAKE, 300, catching_up=(held(100),))) == {NAME}
    assert outdated(drain, cursor(LAKE, 300, in_flight=windows, held=(held(100),))) == frozenset()
    assert outdated(drain, cursor(LAKE, 300, in_flight=windows)) == {NAME}
