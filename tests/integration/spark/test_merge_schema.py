from __future__ import annotations

import pytest

from cdc_lib.errors import IncompatibleSchema
from cdc_lib.model.schema import SourceType
from cdc_lib.status.holdings import stopped_findings
from cdc_lib.store import layout
from cdc_lib.store.failed_tables import last_stopped
from tests.harness.lake.batches import BIGINT, INT, TEXT, Row, table


@pytest.fixture
def merged(lake):
    """A table with two columns and one row, merged up to offset 100; returns a function that merges the next window."""
    name = f"{lake.database}.items"
    old = table(name, {"id": BIGINT, "n": INT})
    lake.merge(lake.batches.plan(100, lake.batches.window(4, 100, {old: [Row("c", 10, {"id": 1, "n": 7})]})))

    def merge_next(rows):
        return lake.merge(lake.batches.plan(200, lake.batches.window(100, 200, rows)))

    return name, old, merge_next


def test_a_new_column_is_added_at_its_position_in_the_source(lake, merged):
    """Earlier rows have null in it; a window may have rows of both versions."""
    name, old, merge_next = merged
    new = table(name, {"id": BIGINT, "note": TEXT, "n": INT})
    merge_next({old: [Row("c", 110, {"id": 2, "n": 8})], new: [Row("c", 120, {"id": 3, "n": 9, "note": "x"})]})
    assert lake.rows(name, "id", "note", "n") == [(1, None, 7), (2, None, 8), (3, "x", 9)]
    assert [column.name for column in lake.state(name).columns][:3] == ["id", "note", "n"]


def test_a_dropped_column_stays_and_is_null_from_then_on(lake, merged):
    """Its earlier values can still be read."""
    name, _, merge_next = merged
    merge_next({table(name, {"id": BIGINT}): [Row("c", 110, {"id": 2})]})
    assert lake.rows(name, "id", "n") == [(1, 7), (2, None)]


@pytest.mark.parametrize(
    ("before", "after", "value"),
    [
        (INT, BIGINT, 2**40),
        (SourceType("float"), SourceType("double"), 0.1),
        (SourceType("decimal", precision=5, scale=2), SourceType("decimal", precision=9, scale=2), None),
    ],
)
def test_a_type_is_widened_and_old_batches_still_fit(lake, before, after, value):
    """A batch with the old type may come after one with the new type."""
    name = f"{lake.database}.t"
    old, new = (table(name, {"id": BIGINT, "v": kind}) for kind in (before, after))
    lake.merge(lake.batches.plan(100, lake.batches.window(4, 100, {old: [Row("c", 10, {"id": 1, "v": None})]})))
    lake.merge(lake.batches.plan(200, lake.batches.window(100, 200, {new: [Row("u", 110, {"id": 1, "v": value})]})))
    lake.merge(lake.batches.plan(300, lake.batches.window(200, 300, {old: [Row("c", 210, {"id": 2, "v": None})]})))
    assert lake.rows(name, "id", "v") == [(1, value), (2, None)]
    assert lake.state(name).columns[1].type == after.lake_type


def test_a_change_that_would_lose_values_stops_this_table_and_publishes_no_cut(lake, merged):
    """The table does not change, and the message says what to do."""
    name, _, _ = merged
    other = table(f"{lake.database}.other", {"id": BIGINT})
    changed = table(name, {"id": BIGINT, "n": TEXT})
    key = lake.batches.window(
        100, 200, {changed: [Row("c", 110, {"id": 2, "n": "x"})], other: [Row("c", 120, {"id": 5})]}
    )
    plan = lake.batches.plan(200, key)
    with pytest.raises(IncompatibleSchema) as caught:
        lake.merge(plan)
    assert (caught.value.context["column"], caught.value.context["table"]) == ("n", name)
    assert lake.rows(name, "id", "n") == [(1, 7)]
    assert lake.rows(other.name, "id") == [(5,)]
    assert lake.store.get(layout.cut_key("shop", plan.merge_id)) is None
    [finding] = stopped_findings(last_stopped(lake.store, "shop"))
    assert name in finding.what
    assert f"cdc snapshot shop {name}" in finding.hint
    # A column of another name, by hand, is a way as well.
    lake.spark.sql(f"ALTER TABLE {lake.name(name)} RENAME COLUMN n TO n_old")
    lake.merge(plan)
    assert lake.rows(name, "id", "n_old", "n") == [(1, 7, None), (2, None, "x")]
    assert last_stopped(lake.store, "shop") is None
