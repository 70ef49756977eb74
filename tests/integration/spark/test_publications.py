"""A commit counts as a merge's only if that merge published it: nothing else moves the table, and nothing else is believed."""

from __future__ import annotations

import json

import pytest

from cdc_lib.errors import ForeignChange
from cdc_lib.model.lake_table import MARKER_PROPERTY
from cdc_lib.model.publication import PUBLISHED_PROPERTY
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
