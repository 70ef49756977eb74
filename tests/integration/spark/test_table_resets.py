"""Statements that take rows, or give them values: in any order with chunks, transactions and shards, and after any failure."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_lib.config.routes import RouteRule
from cdc_lib.errors import MergeError
from cdc_lib.merge.load import load_batches
from cdc_lib.model.ddl_effect import AddedDefault, TableStatement
from cdc_lib.model.manifest import Manifest
from cdc_lib.model.xa_settlement import settle
from cdc_lib.store import documents
from tests.harness.lake.batches import BIGINT, INT, TEXT, Row, at, table
from tests.harness.lake.killed_merges import merge_killed_at
from tests.harness.lake.running import Lake


@pytest.fixture
def orders(lake):
    return table(f"{lake.database}.orders", {"id": BIGINT, "state": TEXT})


def row(op, offset, key, state="new"):
    return Row(op, offset, {"id": key, "state": state})


def rows(lake, schema):
    return lake.rows(schema.name, "id", "state")


def first(lake, orders, *keys):
    """Merge a window up to 100 that inserts rows."""
    changes = {orders: [row("c", 10 + key, key) for key in keys]}
    lake.merge(lake.batches.plan(100, lake.batches.window(4, 100, changes)))


def emptied_at(lake, orders, offset, *changes, kind="truncate"):
    """Return the plan of the next window, which empties the table."""
    key = lake.batches.window(100, 200, {orders: changes} if changes else {}, statements=[(kind, orders.name, offset)])
    return lake.batches.plan(200, key)


@pytest.mark.parametrize("where", ["publish", "write"])
def test_a_merge_that_dies_in_the_middle_empties_at_its_retry(lake, orders, monkeypatch, where):
    """Nobody sees an empty table before its new rows are there; once more changes nothing."""
    first(lake, orders, 1, 2, 3)
    plan = emptied_at(lake, orders, 150, row("u", 110, 1, "old"), row("c", 160, 2, "again"))
    merge_killed_at(monkeypatch, where, lake, plan)
    assert rows(lake, orders) == [(1, "new"), (2, "new"), (3, "new")]
    lake.merge(plan)
    assert rows(lake, orders) == [(2, "again")]
    snapshots = lake.snapshots(orders.name)
    lake.merge(lake.batches.again(plan))
    assert (rows(lake, orders), lake.snapshots(orders.name)) == ([(2, "again")], snapshots)


def test_a_late_chunk_restores_no_row_that_a_reset_removed(lake, orders):
    """It was read before the TRUNCATE, and is merged after it: the windows since tell, also what came later."""
    first(lake, orders, 1)
    lake.merge(emptied_at(lake, orders, 150, row("c", 160, 5, "after")))
    chunk = lake.batches.chunk(orders, 120, [{"id": i, "state": "read"} for i in (1, 2, 5)])
    lake.merge(lake.batches.plan(200, chunk))
    assert rows(lake, orders) == [(5, "after")]
    later = lake.batches.chunk(orders, 170, [{"id": i, "state": "read"} for i in (5, 6)], number=1)
    lake.merge(lake.batches.plan(200, later))
    assert rows(lake, orders) == [(5, "read"), (6, "read")]


@pytest.mark.parametrize(("committed", "expected"), [(140, []), (160, [(9, "xa")])])
def test_a_transaction_counts_where_it_is_committed(lake, orders, committed, expected):
    """Before the TRUNCATE its rows are gone, after it they are not; wherever it was prepared."""
    first(lake, orders, 1)
    before = lake.batches.window(100, 110, {}, prepared={"x": (101, {orders: [row("c", 101, 9, "xa")]})})
    after = lake.batches.window(
        110, 200, {}, decided={"x": (committed, True)}, statements=[("truncate", orders.name, 150)]
    )
    lake.merge(lake.batches.plan(110, before))
    manifests = [(batch.key, batch.manifest) for batch in load_batches(lake.store, [before])]
    lake.merge(replace(lake.batches.plan(200, after), prepared=settle((), manifests).open))
    assert rows(lake, orders) == expected


@pytest.fixture
def sharded(lake):
    def make(**route):
        rule = RouteRule(tables=f"{lake.database}_*.orders", into=f"{lake.database}.orders", **route)
        made = Lake(lake.spark, lake.config.model_copy(update={"routes": (rule,)}), lake.store)
        made.database = lake.database
        return made, *(table(f"{lake.database}_{n}.orders", {"id": BIGINT, "state": TEXT}) for n in (1, 2))

    return make


def test_of_a_shared_table_one_shard_is_emptied(sharded):
    """By the key that tells its rows from the others'."""
    lake, one, two = sharded(keys=["schema"])
    changes = {one: [row("c", 11, 1), row("c", 12, 2)], two: [row("c", 13, 1)]}
    lake.merge(lake.batches.plan(100, lake.batches.window(4, 100, changes)))
    lake.merge(emptied_at(lake, one, 150, row("c", 160, 7)))
    found = lake.rows(one.name, "_source_schema", "id")
    assert found == [(f"{lake.database}_1", 7), (f"{lake.database}_2", 1)]


def test_without_such_a_key_nothing_is_taken(sharded):
    """The error says so, and the table is as it stood."""
    lake, one, two = sharded()
    changes = {one: [row("c", 11, 1), row("c", 12, 2)], two: [row("c", 13, 3)]}
    lake.merge(lake.batches.plan(100, lake.batches.window(4, 100, changes)))
    with pytest.raises(MergeError, match="cannot be distinguished from those of the other tables"):
        lake.merge(emptied_at(lake, one, 150))
    assert len(rows(lake, one)) == 3


def filled_at(lake, key, table_name, offset, column, value):
    """Put a statement that fills a column into a manifest."""
    (batch,) = load_batches(lake.store, [key])
    one = TableStatement("add_default", table_name, at(offset), (AddedDefault(column, value),))
    changed: Manifest = replace(batch.manifest, statements=(one,))
    lake.store.put(key, documents.dump(changed))
    return key


def test_defaults_reach_existing_rows_with_their_column(lake, orders):
    """Some windows after the statement; a merge that is done again changes nothing of what came since."""
    first(lake, orders, 1, 2)
    wide = table(orders.name, {"id": BIGINT, "state": TEXT, "n": INT})
    key = filled_at(lake, lake.batches.window(100, 200, {orders: [row("c", 120, 3)]}), orders.name, 150, "n", "7")
    lake.merge(lake.batches.plan(200, key))
    assert "n" not in [column.name for column in lake.state(orders.name).columns]
    assert len(lake.state(orders.name).marker.pending_defaults) == 1
    change = Row("u", 210, {"id": 2, "state": "later", "n": 9})
    plan = lake.batches.plan(300, lake.batches.window(200, 300, {wide: [change]}))
    lake.merge(plan)
    expected = [(1, "new", 7), (2, "later", 9), (3, "new", 7)]
    assert lake.rows(orders.name, "id", "state", "n") == expected
    lake.merge(lake.batches.again(plan))
    assert lake.rows(orders.name, "id", "state", "n") == expected
    assert lake.state(orders.name).marker.pending_defaults == ()
