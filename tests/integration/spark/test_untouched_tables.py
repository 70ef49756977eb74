"""Tables that a merge does not change: their entries in the cut follow other writers, a bounded number of tables each time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_lib.merge import untouched
from cdc_lib.store.failed_tables import last_stopped
from tests.harness.lake.batches import BIGINT, TEXT, Row, at, table


@pytest.fixture
def five(lake, monkeypatch):
    """Five tables with a row each, merged; a merge looks at one of them without need."""
    monkeypatch.setattr(untouched, "AT_ONCE", 1)
    schemas = [table(f"{lake.database}.t{number}", {"id": BIGINT, "state": TEXT}) for number in range(5)]
    rows = {schema: [Row("c", 10 + number, {"id": 1, "state": "new"})] for number, schema in enumerate(schemas)}
    lake.merge(lake.batches.positioned(100, lake.batches.window(4, 100, rows)))
    return schemas


def change(lake, schema, begin):
    """Merge a change of one table; returns where it ends."""
    end = begin + 100
    rows = {schema: [Row("u", begin + 10, {"id": 1, "state": "paid"})]}
    plan = lake.batches.positioned(end, lake.batches.window(begin, end, rows))
    lake.merge(replace(plan, start=at(begin)))
    return end


def left(lake, schemas):
    """Return the tables whose newest snapshot the last cut does not name."""
    cut = {one.table: one.lake_snapshot for one in lake.cuts[-1].tables}
    return {one.name for one in schemas if cut[one.name] != lake.state(one.name).snapshot_id}


def test_each_of_many_tables_has_its_turn(lake, five):
    for schema in five:
        lake.spark.sql(
            f"CALL {lake.config.lake.catalog}.system.rewrite_data_files(table => '{lake.name(schema.name)}',"
            " options => map('rewrite-all', 'true'))"
        )
    waiting, end = {one.name for one in five[1:]}, 100
    while waiting:
        end = change(lake, five[0], end)
        still = left(lake, five)
        assert len(waiting - still) <= 1
        assert still <= waiting
        waiting = still
        assert end < 10_000
    assert len(lake.cuts[-1].tables) == 5


def test_a_table_at_fault_stays_in_the_report(lake, five):
    """It is looked at in each merge from then on, whichever else has its turn."""
    lake.spark.sql(f"DROP TABLE {lake.name(five[4].name)}")
    end = 100
    while last_stopped(lake.store, lake.config.source) is None:
        end = change(lake, five[0], end)
        assert end < 10_000
    for _ in range(6):
        end = change(lake, five[0], end)
        stopped = last_stopped(lake.store, lake.config.source)
        assert [str(table) for one in stopped.tables for table in one.tables] == [five[4].name]
    assert len(lake.cuts[-1].tables) == 5
