from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_lib.errors import MergeConflict, MergeError
from cdc_lib.merge.again import Again
from cdc_lib.model.aside import Aside
from cdc_lib.model.lake import Marker, Point, SnapshotMark
from cdc_lib.model.part import Part
from cdc_lib.store.local import LocalStore
from spark_jobs.batches import load_batches
from tests.support.batches import BIGINT, DAWN, BatchWriter, Row, at, table

ORDERS = table("shop.orders", {"id": BIGINT})
VIEWS = table("shop.views", {"id": BIGINT}, key=())
PART = Part(("id",), where="id = 1")
BEGIN, END = Point(1, 1, 4), Point(1, 1, 300)
AGAIN = Again(BEGIN, END, (BEGIN, END), side=False, whole=False)


@pytest.fixture
def writer(tmp_path):
    return BatchWriter(LocalStore(tmp_path))


def windows(writer, schema, **statements):
    return [
        writer.window(low, low + 100, {schema: [Row("c", low + 10, {"id": low})]}, **statements) for low in (100, 200)
    ]


def work(writer, schema, keys, marker, again=AGAIN, aside=()):
    plan = replace(writer.plan(300, *keys), aside=aside)
    mode = "mirror" if schema.primary_key else "append"
    return again(schema.name, mode, load_batches(writer.store, keys), marker, plan)


def test_a_table_that_has_all_of_it_gets_it_once_more(writer):
    """Guarded, and its marker stays."""
    marker = Marker(END)
    found = work(writer, ORDERS, windows(writer, ORDERS), marker)
    assert [piece.batch.manifest.window.start.offset for piece in found.pieces] == [100, 200]
    assert found.guard
    assert found.marker == marker


def test_a_table_of_which_there_is_nothing_is_left_alone(writer):
    """Not even a commit is made."""
    assert work(writer, VIEWS, windows(writer, ORDERS), Marker(END)).pieces == ()


def test_a_lake_table_that_is_gone_is_not_made_of_a_part_of_its_rows(writer):
    """Unless it is one beside it, the statement that made the table lies in the part, or the source began there."""
    keys = windows(writer, ORDERS)
    with pytest.raises(MergeError, match="do not hold all of its rows"):
        work(writer, ORDERS, keys, Marker())
    for again in (replace(AGAIN, side=True), replace(AGAIN, whole=True)):
        assert work(writer, ORDERS, keys, Marker(), again).marker == Marker(END)
    created = [writer.window(50, 100, {}, statements=[("create", "shop.orders", 60)]), *keys]
    assert work(writer, ORDERS, created, Marker()).emptied == Point(1, 1, 60)
    chunk = writer.chunk(ORDERS, 150, [{"id": 1}])
    assert work(writer, ORDERS, [chunk, *keys], Marker()).marker.snapshots[0].complete


def test_a_list_of_changes_has_the_part_taken_out_that_comes_again(writer):
    """Rows of its snapshot stay, where the chunks do not come as well; then changes of before the snapshot are not brought."""
    keys = windows(writer, VIEWS)
    assert work(writer, VIEWS, keys, Marker(END)).again == (BEGIN, END)
    low = Point(1, 1, 150)
    marker = Marker(END, (SnapshotMark("s", 1, True, low, low, low),))
    found = work(writer, VIEWS, keys, marker)
    assert (found.again, found.again_reads) == ((low, END), False)
    assert {piece.floor for piece in found.pieces} == {low}
    chunk = writer.chunk(VIEWS, 150, [{"id": 1}])
    assert work(writer, VIEWS, [chunk, *keys], Marker(END)).again_reads


def test_a_list_of_changes_gets_its_snapshot_once_when_nothing_came_behind_it(writer):
    """Its rows stand where the table ends, and are taken out as well."""
    chunk, low = writer.chunk(VIEWS, 300, [{"id": 1}]), Point(1, 1, 300)
    marker = Marker(
        END, (SnapshotMark(load_batches(writer.store, [chunk])[0].manifest.chunk.snapshot_id, 1, True, low, low, low),)
    )
    found = work(writer, VIEWS, [chunk], marker)
    assert (found.again, found.again_reads) == ((low, Point(1, 1, 301)), True)


def test_changes_of_before_a_snapshot_that_replaced_the_table_count_for_nothing(writer):
    """What was deleted while they were left out would come back."""
    low = Point(1, 1, 210)
    marker = Marker(END, (SnapshotMark("s2", 1, True, low, low, low),))
    record = Aside(
        "shop.orders", 1, at(110), at(110), at(110), None, None, DAWN, until=at(210), until_epoch=1, snapshot_id="s2"
    )
    keys = windows(writer, ORDERS)
    assert {piece.floor for piece in work(writer, ORDERS, keys, marker, aside=(record,)).pieces} == {low}
    assert {piece.floor for piece in work(writer, ORDERS, keys, marker).pieces} == {None}
    older = writer.chunk(ORDERS, 120, [{"id": 1}])
    assert all(p.batch.manifest.chunk is None for p in work(writer, ORDERS, [older, *keys], marker).pieces)


def test_a_table_that_moved_on_meanwhile_is_a_conflict(writer):
    """Windows behind those at hand are needed: they may delete what comes again."""
    with pytest.raises(MergeConflict, match="another merge moved the table meanwhile"):
        work(writer, ORDERS, windows(writer, ORDERS), Marker(Point(1, 1, 301)))


@pytest.mark.parametrize("mode", ["soft_delete", "history"])
def test_statements_in_the_part_take_the_rows_again_where_they_stay_marked(writer, mode):
    """Those that the table has behind it as well; of a history the whole stretch is made anew."""
    keys = [*windows(writer, ORDERS), writer.window(300, 400, {}, statements=[("truncate", "shop.orders", 350)])]
    until = Point(1, 1, 400)
    again = Again(BEGIN, END, (BEGIN, until), side=False, whole=False)
    found = again("shop.orders", mode, load_batches(writer.store, keys), Marker(until), writer.plan(400, *keys))
    assert [(gone.epoch, gone.file, gone.offset) for gone in found.gone] == [(1, 1, 350)]
    assert found.again == ((BEGIN, until) if mode == "history" else None)
    assert {piece.floor for piece in found.pieces} == {None}


def test_a_part_of_a_table_that_was_read_is_not_taken_for_all_of_it(writer):
    """Neither the whole snapshot before it is given up for it, nor is a table made of its rows alone."""
    whole, part = (
        writer.chunk(ORDERS, 120, [{"id": 1}]),
        writer.chunk(ORDERS, 150, [{"id": 1}], snapshot="s2", part=PART),
    )
    keys = [whole, part, *windows(writer, ORDERS)]
    found = work(writer, ORDERS, keys, Marker())
    assert [p.batch.manifest.chunk.snapshot_id for p in found.pieces if p.batch.manifest.chunk] == ["s1"]
    low = Point(1, 1, 150)
    marker = Marker(END, (SnapshotMark("s2", 1, True, low, low, low, part=True),))
    assert any(p.batch.manifest.chunk for p in work(writer, ORDERS, keys, marker).pieces)
    with pytest.raises(MergeError, match="do not hold all of its rows"):
        work(writer, ORDERS, [part, *windows(writer, ORDERS)], Marker())


def test_the_end_of_an_online_schema_change_is_not_merged_again_without_its_beginning(writer):
    """What it gave to the rows is told where it began; a list of changes does without."""
    begun = writer.window(50, 100, {}, statements=[("shadow", "shop.orders", 60), ("shadow_fill", "shop.orders", 70)])
    keys = windows(writer, ORDERS, statements=[("swap", "shop.orders", 150)])[:1]
    with pytest.raises(MergeError, match="began it before"):
        work(writer, ORDERS, keys, Marker(END))
    assert work(writer, ORDERS, [begun, *keys], Marker(END)).pieces
    late = Again(Point(1, 1, 160), END, (BEGIN, END), side=False, whole=False)
    assert work(writer, ORDERS, [begun, *keys], Marker(END), late).pieces
    assert AGAIN("shop.orders", "append", load_batches(writer.store, keys), Marker(END), writer.plan(300, *keys)).pieces
