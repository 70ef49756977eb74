from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_lib.errors import MergeError
from cdc_lib.merge.load import load_batches, load_plan, replayed_batches
from cdc_lib.merge.plan import replayed_windows, work_on
from cdc_lib.model.binlog_checkpoint import BinlogCheckpoint
from cdc_lib.model.cursor import DRAIN, Cursor
from cdc_lib.model.lake_table import Marker
from cdc_lib.model.position import Point
from cdc_lib.model.quarantine import QuarantineRecord
from cdc_lib.model.row_selection import RowSelection
from cdc_lib.store.objects.local import LocalStore
from tests.harness.lake.batches import BIGINT, IDENTITY, START_TIME, BatchWriter, Row, at, table

ORDERS = table("shop.orders", {"id": BIGINT})
VIEWS = table("shop.views", {"id": BIGINT}, key=())


@pytest.fixture
def writer(tmp_path):
    return BatchWriter(LocalStore(tmp_path))


def work(writer, schema, plan, marker=Marker()):  # noqa: B008 - it is frozen
    mode = "mirror" if schema.primary_key else "append"
    return work_on(schema.name, mode, load_batches(writer.store, plan.batches), marker, plan)


def test_a_window_up_to_the_marker_is_left_out(writer):
    """The table already has it."""
    key = writer.window(4, 100, {ORDERS: [Row("c", 10, {"id": 1})]})
    plan = writer.plan(100, key)
    assert work(writer, ORDERS, plan, Marker(Point(1, 1, 100))).inputs == ()
    assert len(work(writer, ORDERS, plan, Marker(Point(1, 1, 99))).inputs) == 1


def test_a_marker_remembers_where_the_newest_rows_were(writer):
    """Not those of other tables, or of a chunk from before."""
    rows, others = (
        writer.window(4, 100, {ORDERS: [Row("c", 10, {"id": 1})]}),
        writer.window(100, 200, {VIEWS: [Row("c", 110, {"id": 1})]}),
    )
    marker = work(writer, ORDERS, writer.plan(200, rows, others)).marker
    assert (marker.merged_to, marker.defined_at) == (Point(1, 1, 200), Point(1, 1, 100))
    for read_at, defined_at in ((50, 100), (150, 150)):
        chunk = BatchWriter(writer.store, str(read_at)).chunk(ORDERS, read_at, [{"id": 1}])
        assert work(writer, ORDERS, writer.plan(200, chunk), marker).marker.defined_at == Point(1, 1, defined_at)


def test_a_window_of_a_new_epoch_is_merged_although_its_file_has_a_lower_number(writer):
    """Another server may start with the first file number."""
    key = writer.window(4, 100, {ORDERS: [Row("c", 10, {"id": 1})]}, epoch=2)
    assert work(writer, ORDERS, writer.plan(100, key, epoch=2), Marker(Point(1, 900, 4))).inputs


def test_windows_in_order_need_no_guard(writer):
    """The table has no newer row."""
    key = writer.window(100, 200, {ORDERS: [Row("c", 110, {"id": 1})]})
    assert not work(writer, ORDERS, writer.plan(200, key), Marker(Point(1, 1, 100))).guard


def test_windows_older_than_a_merged_chunk_need_a_guard(writer):
    """The chunk's rows are newer."""
    chunk = writer.chunk(ORDERS, 500, [{"id": 1}])
    first = work(writer, ORDERS, writer.plan(4, chunk))
    assert not first.guard
    key = writer.window(100, 200, {ORDERS: [Row("u", 110, {"id": 1})]})
    assert work(writer, ORDERS, writer.plan(200, key), first.marker).guard


def test_a_chunk_without_its_predecessor_is_refused(writer):
    """The marker could not show what is missing."""
    chunk = writer.chunk(ORDERS, 500, [{"id": 1}], number=1)
    with pytest.raises(MergeError, match="chunk 1"):
        work(writer, ORDERS, writer.plan(4, chunk))


def test_the_chunks_of_ranges_are_taken_in_the_order_in_which_they_were_read(writer):
    """So a later schema comes last; the mark begins with the least watermark, and counts the chunks of all ranges."""
    keys = [
        writer.chunk(ORDERS, 300, [{"id": 1}], of_range=(0, 2), last=False),
        writer.chunk(ORDERS, 500, [{"id": 2}], of_range=(0, 2), number=1),
        writer.chunk(ORDERS, 200, [{"id": 8}], of_range=(1, 2), last=False, high=600),
        writer.chunk(ORDERS, 400, [], of_range=(1, 2), number=1),
    ]
    plan = writer.plan(4, *keys)
    assert [batch.key for batch in load_plan(writer.store, plan)] == [keys[2], keys[0], keys[3], keys[1]]
    first = work(writer, ORDERS, plan)
    assert [one.batch.key for one in first.inputs] == [keys[2], keys[0], keys[3], keys[1]]
    (mark,) = first.marker.snapshots
    assert (mark.chunks, mark.complete) == (4, True)
    assert (mark.low, mark.high, mark.read_to) == (Point(1, 1, 200), Point(1, 1, 500), Point(1, 1, 600))
    assert work(writer, ORDERS, plan, first.marker).inputs == ()


def test_a_range_without_one_of_its_chunks_is_refused(writer):
    """Another range has a chunk of the same number."""
    keys = [writer.chunk(ORDERS, 300, [], of_range=(0, 2)), writer.chunk(ORDERS, 300, [], of_range=(1, 2), number=1)]
    with pytest.raises(MergeError, match=r"chunk 1 .* before chunk 0"):
        work(writer, ORDERS, writer.plan(4, *keys))


def test_an_empty_chunk_is_merged_too(writer):
    """The table is created, and its marker shows a complete snapshot."""
    plan = writer.plan(4, writer.chunk(ORDERS, 500, []))
    mark = work(writer, ORDERS, plan).marker.snapshot("s1")
    assert (mark.chunks, mark.complete) == (1, True)


def test_changes_before_the_snapshot_are_left_out_of_a_table_without_a_key(writer):
    """The snapshot's rows include them, and no key would show that."""
    chunk = writer.chunk(VIEWS, 150, [{"id": 1}])
    key = writer.window(100, 200, {VIEWS: [Row("c", 110, {"id": 1}), Row("c", 160, {"id": 2})]})
    pieces = work(writer, VIEWS, writer.plan(200, chunk, key)).inputs
    assert [piece.floor for piece in pieces] == [None, Point(1, 1, 150)]


def test_a_late_chunk_is_merged_with_the_windows_after_its_low_watermark(writer):
    """They show which of its rows were deleted since."""
    plan = writer.plan(400, writer.chunk(ORDERS, 150, [{"id": 1}]))
    assert work(writer, ORDERS, plan, Marker(Point(1, 1, 300))).replay == (Point(1, 1, 150), Point(1, 1, 300))
    assert work(writer, ORDERS, plan, Marker(Point(1, 1, 150))).replay is None


def windows(*bounds):
    return [
        (f"{epoch}-{start}-{stop}", Point.at(epoch, at(start)), Point.at(epoch, at(stop)))
        for epoch, start, stop in bounds
    ]


def test_only_the_windows_between_the_two_points_are_replayed():
    """In the stream's order, for any order of the listing."""
    stored = windows((1, 300, 400), (1, 100, 200), (1, 4, 100), (1, 200, 300))
    chosen = replayed_windows(stored, (Point(1, 1, 150), Point(1, 1, 300)), "shop.orders")
    assert chosen == (stored[1][0], stored[3][0])


def test_a_replay_continues_in_the_next_epoch():
    """The new server's binlog has other offsets."""
    stored = windows((1, 100, 200), (2, 4, 50))
    assert len(replayed_windows(stored, (Point(1, 1, 150), Point(2, 1, 50)), "shop.orders")) == 2


def test_a_replay_skips_windows_after_the_end_of_their_epoch(writer):
    """They come from the old server, and may have changes that the new one lacks."""
    counted = writer.window(100, 200, {ORDERS: [Row("c", 150, {"id": 1})]})
    writer.window(200, 300, {ORDERS: [Row("c", 250, {"id": 2})]})
    there = writer.window(4, 50, {ORDERS: [Row("d", 20, {"id": 1})]}, epoch=2)
    writer.window(50, 90, {ORDERS: [Row("c", 60, {"id": 3})]}, epoch=2)
    left, began = (BinlogCheckpoint(IDENTITY, at(offset), None, "", False, None) for offset in (200, 4))
    drain = Cursor("shop", DRAIN, 1, 1, IDENTITY, at(200)).at_checkpoint(left)
    drain = drain.with_new_epoch(began, "failover", at=START_TIME, by="test", why="it answers")
    drain = replace(drain, position=at(50))
    found = replayed_batches(writer.store, "shop", ORDERS.name, (Point(1, 1, 150), Point(2, 1, 50)), drain=drain)
    assert [batch.key for batch in found] == [counted, there]


@pytest.mark.parametrize(
    "stored", [[], windows((1, 100, 200)), windows((1, 100, 200), (1, 250, 300)), windows((1, 200, 300))]
)
def test_a_replay_with_a_gap_is_refused(stored):
    """It may contain a delete, whose row would come back."""
    with pytest.raises(MergeError, match="no longer stored"):
        replayed_windows(stored, (Point(1, 1, 150), Point(1, 1, 300)), "shop.orders")


def test_a_snapshot_that_a_newer_one_replaced_is_not_merged(writer):
    """Its rows may have been deleted since; the newer one is complete."""
    newer = work(writer, ORDERS, writer.plan(4, writer.chunk(ORDERS, 150, [{"id": 2}], snapshot="s2"))).marker
    for low in (120, 150):
        late = work(writer, ORDERS, writer.plan(4, writer.chunk(ORDERS, low, [{"id": 1}])), newer)
        assert (late.inputs, late.marker) == ((), newer)


def test_a_new_snapshot_replaces_rows_of_an_earlier_one_with_the_same_low_watermark(writer):
    """If the table already has chunks of the new one, these are kept."""
    first = work(writer, ORDERS, writer.plan(4, writer.chunk(ORDERS, 150, [{"id": 1}]))).marker
    record = QuarantineRecord(
        "shop.orders", 1, at(100), at(100), at(100), None, None, START_TIME, released_position=at(150), snapshot_id="s2"
    )
    chunks = [writer.chunk(ORDERS, 150, [{"id": n}], snapshot="s2", number=n, last=n == 1) for n in (0, 1)]
    plans = [replace(writer.plan(4, chunk), quarantine=(record,)) for chunk in chunks]
    begun = work(writer, ORDERS, plans[0], first)
    assert begun.rebuild_before == Point(1, 1, 151)
    assert work(writer, ORDERS, plans[1], begun.marker).rebuild_before == Point(1, 1, 150)


def test_a_partial_snapshot_does_not_replace_other_rows(writer):
    """Incomplete changes before it are not deletes; rows that moved in between are unknown."""
    whole = writer.chunk(ORDERS, 100, [{"id": 1}])
    before = work(writer, ORDERS, writer.plan(4, whole)).marker
    key = writer.window(100, 200, {ORDERS: [Row("u", 110, {"id": 1})]})
    batches = load_batches(writer.store, [writer.chunk(ORDERS, 150, [{"id": 2}], snapshot="s2"), key])
    part = RowSelection(("id",), ("2",), ("9",))
    chunk = replace(batches[0].manifest.chunk, selection=part, high_watermark=at(190))
    batches[0] = replace(batches[0], manifest=replace(batches[0].manifest, chunk=chunk))
    found = work_on(ORDERS.name, "mirror", batches, before, writer.plan(200, key))
    assert found.marker.reads == before.reads
    assert found.ahead_until == Point(1, 1, 190)
    assert (found.ranges[0].selection, found.ranges[0].point) == (part, Point(1, 1, 150))
    assert Marker.from_json(found.marker.to_json(), "") == found.marker
