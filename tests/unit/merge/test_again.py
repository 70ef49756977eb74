from __future__ import annotations

import shlex
from dataclasses import replace
from datetime import timedelta

import pytest

from cdc_lib.backfill.decide import BackfillDecision
from cdc_lib.backfill.other_key import OneKey, left_out_line, left_out_windows, refusal, refuse_kept_key
from cdc_lib.errors import IncompatibleSchema, MergeConflict, MergeError
from cdc_lib.merge.load import load_batches
from cdc_lib.merge.plan import StoredBatch
from cdc_lib.model.backfill import BackfillRequest, Period
from cdc_lib.model.lake_table import LakeTable, Marker, SnapshotMark
from cdc_lib.model.position import Point
from cdc_lib.model.quarantine import QuarantineRecord
from cdc_lib.model.row_selection import RowSelection
from cdc_lib.model.table_name import TableName
from cdc_lib.store.objects.local import LocalStore
from tests.harness.lake.batches import BIGINT, START_TIME, BatchWriter, Row, at, table

ORDERS = table("shop.orders", {"id": BIGINT})
VIEWS = table("shop.views", {"id": BIGINT}, key=())
PART = RowSelection(("id",), where="id = 1")
BEGIN, END = Point(1, 1, 4), Point(1, 1, 300)
AGAIN = BackfillDecision(BEGIN, END, (BEGIN, END), is_copy=False, from_start=False)


@pytest.fixture
def writer(tmp_path):
    return BatchWriter(LocalStore(tmp_path))


def windows(writer, schema, **statements):
    return [
        writer.window(low, low + 100, {schema: [Row("c", low + 10, {"id": low})]}, **statements) for low in (100, 200)
    ]


def work(writer, schema, keys, marker, again=AGAIN, quarantined=()):
    plan = replace(writer.plan(300, *keys), quarantine=quarantined)
    mode = "mirror" if schema.primary_key else "append"
    return again(schema.name, mode, load_batches(writer.store, keys), marker, plan)


def test_a_table_that_has_all_changes_gets_them_again(writer):
    """With the guard, and its marker is unchanged."""
    marker = Marker(END)
    found = work(writer, ORDERS, windows(writer, ORDERS), marker)
    assert [piece.batch.manifest.window.start.offset for piece in found.inputs] == [100, 200]
    assert found.guard
    assert found.marker == replace(marker, defined_at=END)


def test_a_table_without_batches_is_not_changed(writer):
    """No commit is made."""
    assert work(writer, VIEWS, windows(writer, ORDERS), Marker(END)).inputs == ()


def test_a_missing_lake_table_is_not_created_from_a_part_of_its_rows(writer):
    """Unless it is a copy, the range has its CREATE TABLE, or the source began there."""
    keys = windows(writer, ORDERS)
    with pytest.raises(MergeError, match="do not hold all of its rows"):
        work(writer, ORDERS, keys, Marker())
    for again in (replace(AGAIN, is_copy=True), replace(AGAIN, from_start=True)):
        assert work(writer, ORDERS, keys, Marker(), again).marker == Marker(END, defined_at=END)
    created = [writer.window(50, 100, {}, statements=[("create", "shop.orders", 60)]), *keys]
    assert work(writer, ORDERS, created, Marker()).reset_before == Point(1, 1, 60)
    chunk = writer.chunk(ORDERS, 150, [{"id": 1}])
    assert work(writer, ORDERS, [chunk, *keys], Marker()).marker.snapshots[0].complete


def test_an_append_table_replaces_the_merged_range(writer):
    """Rows of its snapshot are kept unless its chunks are merged too; then earlier changes are left out."""
    keys = windows(writer, VIEWS)
    assert work(writer, VIEWS, keys, Marker(END)).rewrite == (BEGIN, END)
    low = Point(1, 1, 150)
    marker = Marker(END, (SnapshotMark("s", 1, True, low, low, low),))
    found = work(writer, VIEWS, keys, marker)
    assert (found.rewrite, found.rewrite_reads) == ((low, END), False)
    assert {piece.floor for piece in found.inputs} == {low}
    chunk = writer.chunk(VIEWS, 150, [{"id": 1}])
    assert work(writer, VIEWS, [chunk, *keys], Marker(END)).rewrite_reads


def test_an_append_table_gets_its_snapshot_once_without_later_changes(writer):
    """The rows have the table's last position, and are replaced too."""
    chunk, low = writer.chunk(VIEWS, 300, [{"id": 1}]), Point(1, 1, 300)
    marker = Marker(
        END, (SnapshotMark(load_batches(writer.store, [chunk])[0].manifest.chunk.snapshot_id, 1, True, low, low, low),)
    )
    found = work(writer, VIEWS, [chunk], marker)
    assert (found.rewrite, found.rewrite_reads) == ((low, Point(1, 1, 301)), True)


def test_changes_before_a_replacing_snapshot_are_ignored(writer):
    """Rows that were deleted in the excluded range would come back."""
    low = Point(1, 1, 210)
    marker = Marker(END, (SnapshotMark("s2", 1, True, low, low, low),))
    record = QuarantineRecord(
        "shop.orders",
        1,
        at(110),
        at(110),
        at(110),
        None,
        None,
        START_TIME,
        released_position=at(210),
        released_epoch=1,
        snapshot_id="s2",
    )
    keys = windows(writer, ORDERS)
    assert {piece.floor for piece in work(writer, ORDERS, keys, marker, quarantined=(record,)).inputs} == {low}
    assert {piece.floor for piece in work(writer, ORDERS, keys, marker).inputs} == {None}
    older = writer.chunk(ORDERS, 120, [{"id": 1}])
    assert all(p.batch.manifest.chunk is None for p in work(writer, ORDERS, [older, *keys], marker).inputs)


def test_a_table_moved_by_another_merge_is_a_conflict(writer):
    """Later windows are needed: they may delete the rows."""
    with pytest.raises(MergeConflict, match="another merge moved the table meanwhile"):
        work(writer, ORDERS, windows(writer, ORDERS), Marker(Point(1, 1, 301)))


@pytest.mark.parametrize("mode", ["soft_delete", "scd2"])
def test_resets_in_the_range_remove_rows_again(writer, mode):
    """Also those after it; in scd2 mode the whole range is rewritten."""
    keys = [*windows(writer, ORDERS), writer.window(300, 400, {}, statements=[("truncate", "shop.orders", 350)])]
    until = Point(1, 1, 400)
    again = BackfillDecision(BEGIN, END, (BEGIN, until), is_copy=False, from_start=False)
    found = again("shop.orders", mode, load_batches(writer.store, keys), Marker(until), writer.plan(400, *keys))
    assert [(gone.epoch, gone.file, gone.offset) for gone in found.resets] == [(1, 1, 350)]
    assert found.rewrite == ((BEGIN, until) if mode == "scd2" else None)
    assert {piece.floor for piece in found.inputs} == {None}


def test_a_partial_snapshot_is_not_a_complete_one(writer):
    """The complete snapshot before it is still used, and no table is created from a part."""
    whole, part = (
        writer.chunk(ORDERS, 120, [{"id": 1}]),
        writer.chunk(ORDERS, 150, [{"id": 1}], snapshot="s2", part=PART),
    )
    keys = [whole, part, *windows(writer, ORDERS)]
    found = work(writer, ORDERS, keys, Marker())
    assert [p.batch.manifest.chunk.snapshot_id for p in found.inputs if p.batch.manifest.chunk] == ["s1"]
    low = Point(1, 1, 150)
    marker = Marker(END, (SnapshotMark("s2", 1, True, low, low, low, partial=True),))
    assert any(p.batch.manifest.chunk for p in work(writer, ORDERS, keys, marker).inputs)
    with pytest.raises(MergeError, match="do not hold all of its rows"):
        work(writer, ORDERS, [part, *windows(writer, ORDERS)], Marker())


def test_the_end_of_an_online_schema_change_is_not_merged_again_without_its_beginning(writer):
    """The values of its added columns are known at its beginning."""
    begun = writer.window(
        50, 100, {}, statements=[("shadow", "shop.orders", 60), ("shadow_add_default", "shop.orders", 70)]
    )
    keys = windows(writer, ORDERS, statements=[("swap", "shop.orders", 150)])[:1]
    with pytest.raises(MergeError, match="began before it"):
        work(writer, ORDERS, keys, Marker(END))
    assert work(writer, ORDERS, [begun, *keys], Marker(END)).inputs
    late = BackfillDecision(Point(1, 1, 160), END, (BEGIN, END), is_copy=False, from_start=False)
    assert work(writer, ORDERS, [begun, *keys], Marker(END), late).inputs
    with pytest.raises(MergeError, match="began before it"):
        AGAIN("shop.orders", "append", load_batches(writer.store, keys), Marker(END), writer.plan(300, *keys))


def test_the_start_entry_of_a_snapshot_is_kept_if_the_snapshot_is_not_merged_again(writer):
    """It is written with the chunks; without it, older rows would be valid again."""
    low = Point(1, 1, 210)
    marker = Marker(END, (SnapshotMark("s2", 1, True, low, low, low),))
    record = QuarantineRecord(
        "shop.views",
        1,
        at(110),
        at(110),
        at(110),
        None,
        None,
        START_TIME,
        released_position=at(210),
        released_epoch=1,
        snapshot_id="s2",
    )
    keys = windows(writer, VIEWS)
    found = work(writer, VIEWS, keys, marker, quarantined=(record,))
    assert (found.rewrite, found.list_start) == ((low.just_after(), END), None)
    assert {piece.floor for piece in found.inputs} == {low}
    chunk = writer.chunk(VIEWS, 210, [{"id": 1}], snapshot="s2")
    name = load_batches(writer.store, [chunk])[0].manifest.chunk.snapshot_id
    record = replace(record, snapshot_id=name)
    marker = Marker(END, (SnapshotMark(name, 1, True, low, low, low),))
    found = work(writer, VIEWS, [chunk, *keys], marker, quarantined=(record,))
    assert found.rewrite[0] == low
    assert found.list_start is not None


def test_windows_of_another_key_are_left_out_up_to_the_newest_complete_snapshot(writer):
    """Also with only some chunks in the lake: the first one replaced the table. A partial snapshot replaces nothing."""
    former, rows = (
        table("shop.orders", {"id": BIGINT, "k": BIGINT}, key=("k", "id")),
        [Row("c", 110, {"id": 1, "k": 1})],
    )
    now = table("shop.orders", {"id": BIGINT, "k": BIGINT})
    old = writer.window(100, 200, {former: rows})
    new = writer.window(200, 300, {now: [Row("c", 250, {"id": 1, "k": 1})]})
    earlier = writer.chunk(former, 90, [{"id": 1, "k": 1}], snapshot="s1")
    batches = load_batches(writer.store, [earlier, old, new])

    def keys_of(batch):
        return frozenset(schema.primary_key for schema in batch.manifest.schemas.values())

    def found(low, *, complete=True, partial=False, key=("id",)):
        mark = SnapshotMark("s2", 1, complete, low, low, low, partial=partial)
        return AGAIN.under_one_key(batches, now.name, Marker(END, (mark,)), key, keys_of)

    for complete in (True, False):
        at_hand = found(Point(1, 1, 200), complete=complete)
        assert ([one.key for one in at_hand.batches], [one.key for one in at_hand.windows]) == ([new], [old])
        assert at_hand.former == {("k", "id")}
    assert found(Point(1, 1, 199)).others == {("k", "id")}
    assert not found(Point(1, 1, 250), partial=True).windows
    late = BackfillDecision(Point(1, 1, 200), END, (BEGIN, END), is_copy=False, from_start=False)
    assert late.under_one_key(batches[1:], now.name, Marker(END), ("id",), keys_of).batches == tuple(batches[2:])


def test_a_refusal_names_a_possible_time():
    """Or the snapshot that is needed before; the command is valid in a shell."""
    name = TableName("shop", "or ders")
    found = OneKey(("id",), (), others=frozenset({("k", "id")}))
    until = START_TIME + timedelta(hours=2)
    request = BackfillRequest(Period(None, until), (), "copy", "__mine", "file:///data/again")
    error = refusal(name, found, "shop", request, START_TIME)
    assert (
        "has rows with the primary key (k, id), and a table beside the lake table keeps rows by the primary key (id)"
        in error.message
    )
    command = error.hint.partition(": ")[2]
    assert shlex.split(command) == [
        "cdc", "backfill", "shop", "shop.`or ders`", "--since", "2026-01-01T00:00:00Z", "--until", "2026-01-01T02:00:00Z", "--into",
        "copy", "--copy-suffix", "__mine", "--batches", "file:///data/again",
    ]  # fmt: skip
    assert "--until" not in refusal(name, found, "shop", request, until).hint
    plain = refusal(name, found, "shop", BackfillRequest(Period(None, None)), None)
    assert plain.hint.endswith("cdc snapshot shop 'shop.`or ders`'")
    one = replace(found, others=frozenset(), windows=(StoredBatch("w", None),), former=frozenset({()}))
    assert left_out_line(left_out_windows(name, one)).startswith(
        "shop.`or ders`: 1 window of rows with no primary key left out: "
    )


def test_a_copy_that_keeps_old_rows_under_another_key_is_refused():
    """Another mode gets the new key; the same key is none."""
    copy = LakeTable((), ("id",), "soft_delete", Marker(), 1, records=1)
    with pytest.raises(
        IncompatibleSchema, match=r"the table beside the lake table keeps rows by .*, and the rows of this time have"
    ):
        refuse_kept_key(TableName("shop", "orders"), copy, ("k", "id"))
    refuse_kept_key(TableName("shop", "orders"), copy, ("id",))
    refuse_kept_key(TableName("shop", "orders"), replace(copy, mode="mirror"), ("k", "id"))
