"""A commit counts as a merge's only if that merge published it: nothing else moves the table, and nothing else is believed."""

from __future__ import annotations

import json

import pytest

from cdc_lib.errors import ForeignChange, MergeError
from cdc_lib.model.lake_table import MARKER_PROPERTY
from cdc_lib.model.publication import PUBLISHED_PROPERTY
from spark_jobs.iceberg import lake_table
from tests.harness.lake.batches import BIGINT, TEXT, Row, table

BEFORE = [(1, "new"), (2, "new"), (3, "new")]
MERGED = [(2, "paid"), (3, "new"), (4, "new")]


@pytest.fixture
def orders(lake):
    """A table with three rows."""
    orders = table(f"{lake.database}.orders", {"id": BIGINT, "state": TEXT})
    rows = [Row("c", 10, {"id": number, "state": "new"}, number) for number in (1, 2, 3)]
    lake.merge(lake.batches.plan(100, lake.batches.window(4, 100, {orders: rows})))
    return orders


@pytest.fixture
def plan(lake, orders):
    rows = [
        Row("d", 110, {"id": 1, "state": "new"}),
        Row("u", 120, {"id": 2, "state": "paid"}),
        Row("c", 130, {"id": 4, "state": "new"}),
    ]
    return lake.batches.plan(200, lake.batches.window(100, 200, {orders: rows}))


def rows(lake, orders):
    return lake.rows(orders.name, "id", "state")


def head(lake, orders):
    return lake.state(orders.name).snapshot_id


@pytest.fixture
def unstaged(lake, orders, monkeypatch):
    """A Spark that commits files to the table which it should only leave with the coordinator, as Spark 4.0 does."""
    real = lake_table.write_files

    def committed(rows, java, options, classes):
        name = lake.name(orders.name)
        stray = rows.writeTo(name)
        for option, text in options.items():
            stray = stray.option(option, text)
        stray.append()
        return real(rows.where("false"), java, options, classes)

    with monkeypatch.context() as patch:
        patch.setattr(lake_table, "write_files", committed)
        yield patch


@pytest.mark.usefixtures("by_spark")
def test_a_write_that_lands_in_the_table_is_an_error_and_undone(lake, orders, plan, unstaged):
    """Not a conflict: a retry would find a commit with the batch's marker, and lose the deletes."""
    before = head(lake, orders)
    with pytest.raises(MergeError, match="instead of to the merge's own branch: it is undone") as raised:
        lake.merge(plan)
    assert not raised.value.retryable
    assert (head(lake, orders), rows(lake, orders)) == (before, BEFORE)
    unstaged.undo()
    lake.merge(plan)
    assert rows(lake, orders) == MERGED


@pytest.mark.usefixtures("by_spark")
def test_a_statement_that_lands_in_the_table_is_an_error_and_undone(lake, orders, plan, monkeypatch):
    """As of a Spark that does not know branches in names."""
    before, real = head(lake, orders), lake_table.IcebergTable._sql

    def without_branch(self, statement):
        branch = next((part for part in statement.split("`") if part.startswith("branch_cdc_")), None)
        is_change = statement.startswith(("DELETE", "MERGE"))
        return real(self, statement.replace(f".`{branch}`", "") if branch and is_change else statement)

    with monkeypatch.context() as patch:
        patch.setattr(lake_table.IcebergTable, "_sql", without_branch)
        with pytest.raises(MergeError, match="it is undone"):
            lake.merge(plan)
    assert (head(lake, orders), rows(lake, orders)) == (before, BEFORE)
    lake.merge(plan)
    assert rows(lake, orders) == MERGED


@pytest.mark.usefixtures("by_spark")
def test_statements_on_the_branch_carry_no_marker(lake, orders, plan, monkeypatch):
    """What a killed merge or another Spark leaves of them cannot be taken for the merge."""
    real, seen = lake_table.publish, []

    def looking(branch, java, *arguments):
        seen.extend(dict(java.snapshot(one).summary()) for one in branch.made)
        return real(branch, java, *arguments)

    monkeypatch.setattr(lake_table, "publish", looking)
    lake.merge(plan)
    assert seen
    assert not any(name.startswith(MARKER_PROPERTY) for summary in seen for name in summary)


@pytest.fixture
def marks(lake, orders, plan):
    """The properties of the commit that the plan makes; the table is set back afterwards."""
    before = head(lake, orders)
    lake.merge(plan)
    summary = lake.spark.sql(
        f"SELECT summary FROM {lake.name(orders.name)}.snapshots WHERE snapshot_id = {head(lake, orders)}"
    ).first()[0]
    catalog = lake.config.lake.catalog
    lake.spark.sql(f"CALL {catalog}.system.rollback_to_snapshot('{orders.name}', {before})")
    return {name: summary[name] for name in (MARKER_PROPERTY, PUBLISHED_PROPERTY)}


def commit_with(lake, orders, properties):
    """Commit a row to the table as somebody else, with properties in the summary."""
    frame = lake.spark.sql(f"SELECT * FROM {lake.name(orders.name)} LIMIT 0")
    columns = [f"CAST(NULL AS {kind}) AS `{name}`" for name, kind in frame.dtypes if name not in ("id", "state")]
    writer = lake.spark.sql(f"SELECT 9L AS id, 'stray' AS state, {', '.join(columns)}").writeTo(lake.name(orders.name))
    for name, text in properties.items():
        writer = writer.option(f"snapshot-property.{name}", text)
    writer.append()


@pytest.mark.parametrize("case", ["marker alone", "another merge", "another balance"])
def test_a_marker_that_this_merge_did_not_publish_is_not_believed(lake, orders, plan, marks, case):
    """The plan that such a commit seems to complete is not complete: 0 changes and a cut would lose the deletes."""
    published = json.loads(marks[PUBLISHED_PROPERTY])
    if case == "marker alone":
        del marks[PUBLISHED_PROPERTY]
    elif case == "another merge":
        marks[PUBLISHED_PROPERTY] = json.dumps({**published, "merge_id": "another", "rows": 4})
    commit_with(lake, orders, marks)
    cuts = len(lake.cuts)
    with pytest.raises(ForeignChange, match="has a marker that does not count"):
        lake.merge(lake.batches.again(plan))
    assert len(lake.cuts) == cuts
