"""A merge that was abandoned but still runs, together with its replacement: each row is added once."""

from __future__ import annotations

import pytest

from cdc_lib.errors import MergeConflict
from spark_jobs.iceberg.arrow_rows import ArrowRows
from tests.harness.lake.batches import BIGINT, TEXT, Row, table
from tests.harness.processes.races import at_once


@pytest.fixture(params=["with a key", "without a key"])
def orders(lake, request):
    columns = {"id": BIGINT, "state": TEXT}
    if request.param == "with a key":
        return table(f"{lake.database}.orders", columns)
    return table(f"{lake.database}.views", columns, key=())


def rows_from(first):
    return [Row("c", first + i * 10, {"id": first + i, "state": "new"}) for i in (1, 2, 3)]


def ids(lake, orders):
    return sorted(id_ for (id_,) in lake.rows(orders.name, "id"))


def overtaken(lake, monkeypatch, plan):
    """Merge a plan; before its rows are written, another merge of the same plan runs completely."""
    real, others = ArrowRows.apply, []

    def after_the_other(*arguments, **named):
        if not others:
            others.append(True)
            lake.merge(plan)
        return real(*arguments, **named)

    monkeypatch.setattr(ArrowRows, "apply", after_the_other)
    lake.merge(plan)
    assert others
    monkeypatch.undo()


def test_an_overtaken_merge_adds_no_row_twice(lake, orders, monkeypatch):
    """Neither the first rows of a table nor later ones."""
    overtaken(lake, monkeypatch, lake.batches.plan(100, lake.batches.window(4, 100, {orders: rows_from(10)})))
    assert ids(lake, orders) == [11, 12, 13]
    later = lake.batches.plan(200, lake.batches.window(100, 200, {orders: rows_from(110)}))
    overtaken(lake, monkeypatch, later)
    assert ids(lake, orders) == [11, 12, 13, 111, 112, 113]


def test_an_overtaken_merge_of_deletes_does_not_move_the_marker_backward(lake, monkeypatch):
    """Not even if the next merge has ended too."""
    orders = table(f"{lake.database}.orders", {"id": BIGINT, "state": TEXT})
    lake.merge(lake.batches.plan(100, lake.batches.window(4, 100, {orders: rows_from(10)})))
    rows = [Row("d", 150, {"id": 11, "state": "new"})]
    deletes = lake.batches.plan(200, lake.batches.window(100, 200, {orders: rows}))
    after = lake.batches.plan(300, lake.batches.window(200, 300, {orders: rows_from(210)}))
    real, others = ArrowRows.apply, []

    def after_the_others(*arguments, **named):
        if not others:
            others.append(True)
            lake.merge(deletes)
            lake.merge(after)
            others.append(lake.state(orders.name).marker)
        return real(*arguments, **named)

    monkeypatch.setattr(ArrowRows, "apply", after_the_others)
    lake.merge(deletes)
    assert lake.state(orders.name).marker == others[1]
    assert ids(lake, orders) == [12, 13, 211, 212, 213]


def test_two_concurrent_merges_of_one_plan_add_its_rows_once(lake, orders):
    """Even before namespace and table exist; the loser may fail with a retryable error."""
    plan = lake.batches.plan(100, lake.batches.window(4, 100, {orders: rows_from(10)}))

    def merged(_):
        try:
            lake.merge(plan)
        except MergeConflict:
            return False
        return True

    assert any(at_once(merged, writers=2))
    lake.merge(plan)
    assert ids(lake, orders) == [11, 12, 13]
