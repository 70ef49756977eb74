"""Prepared transactions in the merge's harder cases: late snapshot chunks, retries after a crash, batches that are gone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_lib.errors import MergeError
from cdc_lib.merge.load import load_batches
from cdc_lib.model.xa_settlement import settle
from tests.harness.lake.batches import BIGINT, TEXT, Row, table
from tests.harness.lake.killed_merges import STEPS, merge_killed_at


@pytest.fixture
def orders(lake):
    return table(f"{lake.database}.orders", {"id": BIGINT, "state": TEXT})


def plan_of(lake, stop, opened, *keys):
    """Return a plan as the lake cursor makes it, and what is open after it."""
    plan = lake.batches.plan(stop, *keys)
    windows = [(batch.key, batch.manifest) for batch in load_batches(lake.store, keys) if batch.manifest.window]
    return replace(plan, prepared=opened), settle(opened, windows).open


@pytest.fixture
def merged(lake, orders):
    """Two rows; a transaction that deletes one and changes the other is prepared at 110 and committed at 210."""
    first = lake.batches.window(4, 100, {orders: [Row("c", i * 10, {"id": i, "state": "new"}) for i in (1, 2, 3)]})
    xa = [Row("d", 105, {"id": 1, "state": "new"}), Row("u", 105, {"id": 2, "state": "xa"}, 1)]
    second = lake.batches.window(100, 200, {}, prepared={"x": (105, {orders: xa})})
    third = lake.batches.window(200, 300, {}, decided={"x": (210, True)})
    opened = ()
    for stop, key in ((100, first), (200, second)):
        plan, opened = plan_of(lake, stop, opened, key)
        if stop == 100:
            lake.merge(plan)
    plan, left = plan_of(lake, 300, opened, third)
    assert (len(opened), left) == (1, ())
    return plan


def rows(lake, orders):
    return lake.rows(orders.name, "id", "state")


@pytest.mark.parametrize("where", STEPS)
def test_a_merge_of_a_commit_that_dies_in_the_middle_is_right_after_the_retry(lake, orders, merged, monkeypatch, where):
    """Nobody sees half a transaction."""
    merge_killed_at(monkeypatch, where, lake, merged)
    assert rows(lake, orders) == [(1, "new"), (2, "new"), (3, "new")]
    lake.merge(merged)
    assert rows(lake, orders) == [(2, "xa"), (3, "new")]
    found = lake.rows(orders.name, "id", "_offset", "_row", "_ts")
    assert found[0][:3] == (2, 210, 1)
    assert found[0][3].second == 30


def test_a_chunk_read_before_the_commit_is_merged_with_the_transaction_once_more(lake, orders, merged):
    """The row that it deleted does not come back; the prepare lies in a window before the chunk."""
    lake.merge(merged)
    chunk = lake.batches.chunk(orders, 205, [{"id": i, "state": "read"} for i in (1, 2, 3)])
    lake.merge(lake.batches.plan(300, chunk))
    assert rows(lake, orders) == [(2, "xa"), (3, "read")]


def test_a_chunk_read_after_the_commit_is_newer_than_the_transaction(lake, orders, merged):
    """It has seen its rows."""
    lake.merge(merged)
    chunk = lake.batches.chunk(orders, 250, [{"id": i, "state": "read"} for i in (2, 3)])
    lake.merge(lake.batches.plan(300, chunk))
    assert rows(lake, orders) == [(2, "read"), (3, "read")]


def test_a_replay_with_missing_prepared_rows_stops_the_table(lake, orders, merged):
    """Instead of bringing a deleted row back."""
    lake.merge(merged)
    chunk = lake.batches.chunk(orders, 205, [{"id": 1, "state": "read"}])
    gone = [info.key for info in lake.store.list("shop/batches/") if "000000000100-000001.000000000200" in info.key]
    assert gone
    lake.store.delete(gone)
    with pytest.raises(MergeError, match="XA transactions") as caught:
        lake.merge(lake.batches.plan(300, chunk))
    assert caught.value.context["xids"] == "x"


def test_only_commits_after_the_marker_are_merged_from_a_partly_merged_window(lake, orders, merged):
    """A window that overlaps what the table has brings what lies after it, and the commit only once."""
    lake.merge(merged)
    wide = lake.batches.window(
        200, 400, {orders: [Row("d", 320, {"id": 2, "state": "xa"})]}, decided={"x": (210, True)}
    )
    plan = replace(lake.batches.plan(400, wide), prepared=merged.prepared)
    lake.merge(plan)
    assert rows(lake, orders) == [(3, "new")]
    lake.merge(lake.batches.again(plan))
    assert rows(lake, orders) == [(3, "new")]
