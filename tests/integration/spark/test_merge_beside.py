"""Merges of many changes, whose rows are written while old rows are deleted."""

from __future__ import annotations

import pytest

from cdc_lib.config.layouts import LayoutRule
from cdc_lib.config.modes import ModeRule
from cdc_lib.errors import MergeConflict, MergeError
from cdc_lib.model.position import Point
from spark_jobs.iceberg import lake_table
from tests.harness.lake.batches import BIGINT, TEXT, Row, table
from tests.harness.lake.killed_merges import merge_killed_at

pytestmark = pytest.mark.usefixtures("by_spark")


@pytest.fixture
def orders(lake):
    return table(f"{lake.database}.orders", {"id": BIGINT, "state": TEXT})


@pytest.fixture
def three(lake, orders, monkeypatch):
    monkeypatch.setattr(lake_table, "BESIDE_ROWS", 0)
    rows = [Row("c", 10, {"id": number, "state": "new"}, number) for number in (1, 2, 3)]
    lake.merge(lake.batches.plan(100, lake.batches.window(4, 100, {orders: rows})))


@pytest.fixture
def plan(lake, orders):
    rows = [
        Row("d", 110, {"id": 1, "state": "new"}),
        Row("u", 120, {"id": 2, "state": "paid"}),
        Row("c", 130, {"id": 4, "state": "new"}),
        # Its row is missing, as after a repair: all rows of the keys are counted.
        Row("u", 140, {"id": 5, "state": "paid"}),
    ]
    return lake.batches.plan(200, lake.batches.window(100, 200, {orders: rows}))


def refs(lake, orders):
    return [row[0] for row in lake.spark.sql(f"SELECT name FROM {lake.name(orders.name)}.refs").collect()]


MERGED = [(2, "paid"), (3, "new"), (4, "new"), (5, "paid")]


def test_new_rows_and_deletes_become_one_snapshot(lake, orders, three, plan):
    before = lake.snapshots(orders.name)
    lake.merge(plan)
    assert lake.rows(orders.name, "id", "state") == MERGED
    assert (lake.snapshots(orders.name), refs(lake, orders)) == (before + 1, ["main"])
    assert lake.state(orders.name).marker.merged_to == Point(1, 1, 200)
    lake.merge(lake.batches.again(plan))
    assert (lake.rows(orders.name, "id", "state"), lake.snapshots(orders.name)) == (MERGED, before + 1)


@pytest.mark.parametrize("where", ["_replace", "_delete_keys", "_write_beside", "_write_sorted", "publish"])
def test_a_merge_killed_in_either_leaves_nothing(lake, orders, three, plan, monkeypatch, where):
    merge_killed_at(monkeypatch, where, lake, plan)
    assert lake.rows(orders.name, "id", "state") == [(1, "new"), (2, "new"), (3, "new")]
    assert refs(lake, orders) == ["main"]
    lake.merge(plan)
    assert lake.rows(orders.name, "id", "state") == MERGED


def test_the_error_names_all_that_failed(lake, orders, three, plan, monkeypatch):
    def failing(why):
        def fail(*_, **__):
            raise MergeError(why)

        return fail

    monkeypatch.setattr(lake_table.IcebergTable, "_replace", failing("no deletes"))
    monkeypatch.setattr(lake_table.IcebergTable, "_write_beside", failing("no files"))
    with pytest.raises(MergeError, match="no deletes") as raised:
        lake.merge(plan)
    assert raised.value.__notes__ == ["New rows could not be written either: no files"]
    assert refs(lake, orders) == ["main"]


def test_a_branch_that_another_tool_removed_is_a_conflict(lake, orders, three, plan, monkeypatch):
    real = lake_table.publish

    def after_a_removal(branch, *arguments):
        lake.spark.sql(f"ALTER TABLE {lake.name(orders.name)} DROP BRANCH `{branch.name}`")
        return real(branch, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(lake_table, "publish", after_a_removal)
        with pytest.raises(MergeConflict):
            lake.merge(plan)
    assert lake.rows(orders.name, "id", "state") == [(1, "new"), (2, "new"), (3, "new")]
    lake.merge(plan)
    assert lake.rows(orders.name, "id", "state") == MERGED


def test_old_rows_that_stay_are_found_before_anything_is_published(lake, orders, three, plan, monkeypatch):
    real = lake_table.IcebergTable._sql

    def without_deletes(self, statement):
        return real(self, statement.replace(" WHERE ", " WHERE false AND ") if "DELETE" in statement else statement)

    monkeypatch.setattr(lake_table.IcebergTable, "_sql", without_deletes)
    with pytest.raises(MergeError, match="does not add up"):
        lake.merge(plan)
    assert lake.rows(orders.name, "id", "state") == [(1, "new"), (2, "new"), (3, "new")]
    assert refs(lake, orders) == ["main"]


@pytest.mark.parametrize("mode", ["mirror", "soft_delete"])
@pytest.mark.parametrize("writes", ["merge_on_read", "copy_on_write"])
def test_modes_and_layouts(lake, orders, monkeypatch, mode, writes):
    """Many keys too: more than are named one by one."""
    monkeypatch.setattr(lake_table, "BESIDE_ROWS", 100)
    rules = {
        "modes": (ModeRule(tables=orders.name, mode=mode),),
        "layouts": (LayoutRule(tables=orders.name, write_mode=writes),),
    }
    lake.config = lake.config.model_copy(update=rules)
    rows = [Row("c", 10, {"id": i, "state": "new"}, i) for i in range(1000)]
    lake.merge(lake.batches.plan(100, lake.batches.window(4, 100, {orders: rows})))
    rows = [Row("d" if i % 3 == 0 else "u", 110, {"id": i, "state": "paid"}, i) for i in range(100, 700)]
    lake.merge(lake.batches.plan(200, lake.batches.window(100, 200, {orders: rows})))
    deleted = {i for i in range(100, 700) if i % 3 == 0}
    changed = {i: "paid" if 100 <= i < 700 else "new" for i in range(1000)}
    if mode == "mirror":
        assert sorted(lake.rows(orders.name, "id", "state")) == [(i, v) for i, v in changed.items() if i not in deleted]
    else:
        found = sorted(lake.rows(orders.name, "id", "state", "_is_deleted"))
        assert found == [(i, v, i in deleted) for i, v in changed.items()]
