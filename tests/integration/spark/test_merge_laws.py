from __future__ import annotations

import pytest

from cdc_lib.errors import CorruptBatch, MergeConflict, MergeError
from cdc_lib.model.position import Point
from cdc_lib.store import layout
from spark_jobs.iceberg.row_delta import RowCommit
from tests.harness.lake.batches import BIGINT, TEXT, Row, at, table
from tests.harness.lake.killed_merges import STEPS, merge_killed_at


@pytest.fixture
def orders(lake):
    return table(f"{lake.database}.orders", {"id": BIGINT, "state": TEXT})


@pytest.fixture
def three(lake, orders):
    """Three orders, merged up to 100."""
    key = lake.batches.window(4, 100, {orders: [Row("c", i * 10, {"id": i, "state": "new"}) for i in (1, 2, 3)]})
    plan = lake.batches.plan(100, key)
    lake.merge(plan)
    return plan


def test_a_batch_merged_again_after_later_deletes_changes_nothing(lake, orders, three):
    """Law 6: neither a row nor a snapshot comes of it, and the deleted row stays deleted."""
    two = [Row("d", 110, {"id": 1, "state": "new"}), Row("u", 120, {"id": 2, "state": "paid"})]
    lake.merge(lake.batches.plan(200, lake.batches.window(100, 200, {orders: two})))
    expected = [(2, "paid"), (3, "new")]
    assert lake.rows(orders.name, "id", "state") == expected
    before = lake.snapshots(orders.name)
    lake.merge(lake.batches.again(three))
    assert lake.rows(orders.name, "id", "state") == expected
    assert lake.snapshots(orders.name) == before


@pytest.mark.parametrize("where", STEPS)
def test_a_merge_killed_in_the_middle_is_invisible_and_correct_after_the_retry(lake, orders, three, monkeypatch, where):
    """A merge that fails leaves nothing that readers see."""
    two = [Row("d", 110, {"id": 1, "state": "new"}), Row("u", 120, {"id": 2, "state": "paid"})]
    plan = lake.batches.plan(200, lake.batches.window(100, 200, {orders: two}))
    merge_killed_at(monkeypatch, where, lake, plan)
    assert lake.rows(orders.name, "id", "state") == [(1, "new"), (2, "new"), (3, "new")]
    assert lake.state(orders.name).marker.merged_to == Point(1, 1, 100)
    assert lake.store.get(layout.cut_key("shop", plan.merge_id)) is None
    before = lake.snapshots(orders.name)
    refs = lake.spark.sql(f"SELECT name FROM {lake.name(orders.name)}.refs").collect()
    assert [row[0] for row in refs] == ["main"]
    lake.merge(plan)
    assert lake.rows(orders.name, "id", "state") == [(2, "paid"), (3, "new")]
    assert lake.snapshots(orders.name) == before + 1


def test_a_snapshot_row_does_not_overwrite_a_newer_change_and_an_older_change_not_the_snapshot_row(lake, orders):
    """Law 5: the low watermark places the row among the changes."""
    window = lake.batches.window(4, 100, {orders: [Row("u", 50, {"id": i, "state": "u50"}) for i in (1, 2)]})
    lake.merge(lake.batches.plan(100, window))
    early = lake.batches.chunk(orders, 40, [{"id": 1, "state": "r40"}, {"id": 3, "state": "r40"}], last=False)
    late = lake.batches.chunk(orders, 150, [{"id": 2, "state": "r150"}], number=1)
    lake.merge(lake.batches.plan(100, early, late))
    assert lake.rows(orders.name, "id", "state") == [(1, "u50"), (2, "r150"), (3, "r40")]
    rows = [Row("u", 140, {"id": i, "state": "u140"}) for i in (2, 3)]
    lake.merge(lake.batches.plan(200, lake.batches.window(100, 200, {orders: rows})))
    assert lake.rows(orders.name, "id", "state") == [(1, "u50"), (2, "r150"), (3, "u140")]


def test_a_late_chunk_does_not_restore_a_row_deleted_after_its_low_watermark(lake, orders, three):
    """The windows after the watermark are merged with the chunk once more."""
    rows = [Row("d", 110, {"id": 1, "state": "new"}), Row("d", 120, {"id": 9, "state": "new"})]
    lake.merge(lake.batches.plan(200, lake.batches.window(100, 200, {orders: rows})))
    chunk = lake.batches.chunk(orders, 105, [{"id": i, "state": "read"} for i in (1, 2, 3, 9)])
    lake.merge(lake.batches.plan(200, chunk))
    assert lake.rows(orders.name, "id", "state") == [(2, "read"), (3, "read")]


def test_a_row_deleted_and_inserted_again_within_a_window_is_kept(lake, orders, three):
    """And one inserted and deleted again does not."""
    rows = [
        Row("d", 110, {"id": 1, "state": "new"}),
        Row("c", 120, {"id": 1, "state": "again"}),
        Row("c", 130, {"id": 7, "state": "short"}),
        Row("d", 140, {"id": 7, "state": "short"}),
    ]
    lake.merge(lake.batches.plan(200, lake.batches.window(100, 200, {orders: rows})))
    assert lake.rows(orders.name, "id", "state") == [(1, "again"), (2, "new"), (3, "new")]


def test_a_row_whose_key_changes_moves(lake, orders, three):
    """It comes as a delete of the old key and an upsert of the new one, in one event."""
    rows = [Row("d", 110, {"id": 1, "state": "new"}), Row("u", 110, {"id": 11, "state": "moved"})]
    lake.merge(lake.batches.plan(200, lake.batches.window(100, 200, {orders: rows})))
    assert lake.rows(orders.name, "id", "state") == [(11, "moved"), (2, "new"), (3, "new")]


def test_offsets_compare_as_numbers(lake, orders):
    """As text, 23 would come after 123, and file 9 after file 10."""
    rows = [Row("u", 123, {"id": 1, "state": "late"}), Row("u", 23, {"id": 1, "state": "early"})]
    lake.merge(lake.batches.plan(200, lake.batches.window(4, 200, {orders: rows}, file=9), file=9))
    assert lake.rows(orders.name, "id", "state") == [(1, "late")]
    rows = [Row("u", 50, {"id": 1, "state": "file 10"}, file=10)]
    lake.merge(lake.batches.plan(60, lake.batches.window(4, 60, {orders: rows}, file=10), file=10))
    assert lake.rows(orders.name, "id", "state") == [(1, "file 10")]


def test_a_fallback_that_replays_changes_in_a_new_epoch_is_correct(lake, orders, three):
    """After a switch of servers a stretch of changes comes twice, in files of other names."""
    rows = [Row("d", 110, {"id": 1, "state": "new"}), Row("u", 120, {"id": 2, "state": "paid"})]
    lake.merge(lake.batches.plan(200, lake.batches.window(100, 200, {orders: rows})))
    replayed = [
        Row("c", 20, {"id": 1, "state": "new"}),
        Row("d", 30, {"id": 1, "state": "new"}),
        Row("u", 40, {"id": 2, "state": "paid"}),
        Row("u", 50, {"id": 3, "state": "sent"}),
    ]
    key = lake.batches.window(4, 90, {orders: replayed}, epoch=2)
    lake.merge(lake.batches.plan(90, key, epoch=2))
    assert lake.rows(orders.name, "id", "state") == [(2, "paid"), (3, "sent")]


def test_a_commit_of_maintenance_does_not_lose_the_marker(lake, orders, three):
    """Compaction writes a snapshot without it; the one before has it."""
    state = lake.state(orders.name)
    catalog = lake.config.lake.catalog
    lake.spark.sql(
        f"CALL {catalog}.system.rewrite_data_files(table => '{lake.name(orders.name)}', options => map('rewrite-all', 'true'))"
    ).collect()
    after = lake.state(orders.name)
    assert after.snapshot_id != state.snapshot_id
    assert after.marker == state.marker
    lake.merge(lake.batches.again(three))
    assert lake.state(orders.name).snapshot_id == after.snapshot_id


def test_a_commit_of_another_writer_during_a_merge_is_a_conflict_and_the_merge_retries(
    lake, orders, three, monkeypatch
):
    """Neither commit is lost."""
    rows = [Row("u", 120, {"id": 2, "state": "paid"})]
    plan = lake.batches.plan(200, lake.batches.window(100, 200, {orders: rows}))
    real, others = RowCommit.publish, []

    def after_another_commit(*arguments):
        if not others:
            others.append(lake.spark.sql(f"DELETE FROM {lake.name(orders.name)} WHERE id = 3"))
        return real(*arguments)

    monkeypatch.setattr(RowCommit, "publish", after_another_commit)
    lake.merge(plan)
    assert others
    assert lake.rows(orders.name, "id", "state") == [(1, "new"), (2, "paid")]


def test_a_repeated_conflict_ends_in_a_retryable_error(lake, orders, three, monkeypatch):
    """Airflow retries what is retryable."""
    plan = lake.batches.plan(200, lake.batches.window(100, 200, {orders: [Row("u", 120, {"id": 2, "state": "x"})]}))
    real = RowCommit.publish

    def after_another_commit(*arguments):
        lake.spark.sql(f"INSERT INTO {lake.name(orders.name)} SELECT * FROM {lake.name(orders.name)} WHERE id = 3")
        return real(*arguments)

    monkeypatch.setattr(RowCommit, "publish", after_another_commit)
    with pytest.raises(MergeConflict) as caught:
        lake.merge(plan)
    assert caught.value.retryable
    assert caught.value.context["table"] == orders.name


def test_a_batch_with_a_missing_file_stops_the_table(lake, orders):
    """Nothing of the batch is merged."""
    key = lake.batches.window(4, 100, {orders: [Row("c", 10, {"id": 1, "state": "new"})]})
    lake.store.delete([layout.beside(key, layout.part_path(orders.name, 0))])
    with pytest.raises(CorruptBatch):
        lake.merge(lake.batches.plan(100, key))
    assert lake.state(orders.name).snapshot_id is None


def test_a_plan_with_a_missing_manifest_is_refused(lake):
    """The message names the key."""
    with pytest.raises(CorruptBatch) as caught:
        lake.merge(lake.batches.plan(100, "shop/batches/000001/gone/manifest.json"))
    assert caught.value.context["key"].endswith("gone/manifest.json")


def test_the_cut_names_every_table_at_the_plans_stop(lake, orders, three):
    """Also those that this merge did not touch."""
    items = table(f"{lake.database}.items", {"id": BIGINT})
    key = lake.batches.window(100, 200, {items: [Row("c", 110, {"id": 1})]})
    cut = lake.merge(lake.batches.plan(200, key))
    assert cut.position == at(200)
    assert [(t.table, t.changes) for t in cut.tables] == [(items.name, 1), (orders.name, 0)]
    assert {t.lake_snapshot for t in cut.tables} == {
        lake.state(items.name).snapshot_id,
        lake.state(orders.name).snapshot_id,
    }
    assert [t.lake_table for t in cut.tables] == [f"lake.{items.name}", f"lake.{orders.name}"]


def test_a_published_cut_is_not_replaced(lake, orders, three):
    """A retry after the cut and before the ack gives the same document."""
    key = lake.batches.window(100, 200, {orders: [Row("d", 110, {"id": 1, "state": "new"})]})
    plan = lake.batches.plan(200, key)
    assert lake.merge(plan) == lake.merge(plan)


def test_one_table_that_cannot_be_merged_does_not_stop_the_others_but_the_cut(lake, orders, three):
    """The error names it; after it is mended the same plan goes through."""
    items = table(f"{lake.database}.items", {"id": BIGINT, "_pos": BIGINT})
    rows = {orders: [Row("u", 110, {"id": 1, "state": "paid"})], items: [Row("c", 120, {"id": 1, "_pos": 1})]}
    plan = lake.batches.plan(200, lake.batches.window(100, 200, rows))
    with pytest.raises(MergeError, match="_pos") as caught:
        lake.merge(plan)
    assert caught.value.context["table"] == items.name
    assert lake.rows(orders.name, "id", "state")[0] == (1, "paid")
    assert lake.store.get(layout.cut_key("shop", plan.merge_id)) is None


def test_few_rows_of_two_key_columns_take_out_no_row_that_shares_each_of_them(lake):
    """Nor rows of keys that differ in their case alone; also by a merge that leaves nothing but deletes."""
    lines = table(f"{lake.database}.lines", {"id": BIGINT, "part": TEXT, "n": BIGINT}, ("id", "part"))
    keys = [(i, part) for i in (1, 2, 3) for part in ("a", "A", "it's \\ a")]
    rows = [Row("c", 10 + n, {"id": i, "part": part, "n": 0}) for n, (i, part) in enumerate(keys)]
    lake.merge(lake.batches.plan(100, lake.batches.window(4, 100, {lines: rows})))
    changed = {(1, "a"): 1, (2, "A"): 2, (3, "it's \\ a"): None}
    two = [
        Row("d" if n is None else "u", 110 + i, {"id": key[0], "part": key[1], "n": n or 0})
        for i, (key, n) in enumerate(changed.items())
    ]
    lake.merge(lake.batches.plan(200, lake.batches.window(100, 200, {lines: two})))
    expected = dict.fromkeys(keys, 0) | changed
    expected = sorted((*key, n) for key, n in expected.items() if n is not None)
    assert sorted(lake.rows(lines.name, "id", "part", "n")) == expected
    gone = [Row("d", 210, {"id": 1, "part": "A", "n": 0})]
    lake.merge(lake.batches.plan(300, lake.batches.window(200, 300, {lines: gone})))
    assert sorted(lake.rows(lines.name, "id", "part", "n")) == [row for row in expected if row[:2] != (1, "A")]
    assert lake.state(lines.name).marker.merged_to == Point(1, 1, 300)


def test_a_file_whose_rows_all_change_is_taken_out_whole(lake, orders, three):
    """And the marker of the merge is in the commit of the rows: Iceberg takes a file out without it."""
    all_of_them = [Row("u", 100 + i, {"id": i, "state": "paid"}) for i in (1, 2, 3)]
    lake.merge(lake.batches.plan(200, lake.batches.window(100, 200, {orders: all_of_them})))
    assert lake.rows(orders.name, "id", "state") == [(1, "paid"), (2, "paid"), (3, "paid")]
    assert lake.state(orders.name).marker.merged_to == Point(1, 1, 200)
    one = [Row("u", 210, {"id": 2, "state": "sent"})]
    lake.merge(lake.batches.plan(300, lake.batches.window(200, 300, {orders: one})))
    gone = [Row("d", 310 + i, {"id": i, "state": "sent"}) for i in (1, 2, 3)]
    lake.merge(lake.batches.plan(400, lake.batches.window(300, 400, {orders: gone})))
    assert lake.rows(orders.name, "id", "state") == []
    assert lake.state(orders.name).marker.merged_to == Point(1, 1, 400)
