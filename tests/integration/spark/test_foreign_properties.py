"""Properties that somebody else gives a lake table: merges go on, and maintenance says or undoes what is in its way."""

from __future__ import annotations

from datetime import timedelta

import pytest

from cdc_lib.config.maintenance import MaintenanceConfig
from cdc_lib.config.modes import ModeRule
from cdc_lib.store.cuts import last_cut
from spark_jobs.maintain import lake_tables, maintain
from tests.harness.lake.batches import BIGINT, TEXT, Row, table

ROWS = [(number, "new") for number in range(1, 4)]


@pytest.fixture
def orders(lake):
    """A table with three rows, of which each was merged alone."""
    orders = table(f"{lake.database}.orders", {"id": BIGINT, "state": TEXT})
    for number in range(3):
        merge(lake, orders, 100 * number + 4, Row("c", 100 * number + 5, {"id": number + 1, "state": "new"}))
    return orders


def merge(lake, orders, start, row):
    stop = start + 100
    lake.merge(lake.batches.plan(stop, lake.batches.window(start, stop, {orders: [row]})))


def give(lake, orders, name, text):
    lake.spark.sql(f"ALTER TABLE {lake.name(orders.name)} SET TBLPROPERTIES ('{name}' = '{text}')")


def keep(lake, orders):
    config = lake.config.model_copy(update={"maintenance": MaintenanceConfig(keep_snapshots_for=timedelta(0))})
    names = lake_tables(config, last_cut(lake.store, config.source), [orders.name])
    [done] = maintain(lake.spark, config, lake.store, names, lake.said.append)
    return done


def formats(lake, orders):
    files = lake.spark.sql(f"SELECT DISTINCT file_format FROM {lake.name(orders.name)}.data_files")
    return {row[0] for row in files.collect()}


def test_what_a_property_keeps_is_kept_and_said(lake, orders):
    """Iceberg refuses to remove anything of such a table: the rest of the maintenance is done."""
    give(lake, orders, "gc.enabled", "false")
    before = lake.snapshots(orders.name)
    merge(lake, orders, 304, Row("u", 305, {"id": 1, "state": "paid"}))
    done = keep(lake, orders)
    assert (done.snapshots, done.orphans) == (0, 0)
    assert "gc.enabled is false" in done.in_the_way
    assert lake.snapshots(orders.name) > before
    give(lake, orders, "gc.enabled", "true")
    assert keep(lake, orders).in_the_way == ""
    assert lake.rows(orders.name, "id", "state") == [(1, "paid"), (2, "new"), (3, "new")]


def test_a_merge_writes_parquet_whatever_the_table_says_and_maintenance_brings_it_back(lake, orders):
    """Only Parquet is read without Spark."""
    give(lake, orders, "write.format.default", "orc")
    merge(lake, orders, 304, Row("u", 305, {"id": 1, "state": "paid"}))
    assert formats(lake, orders) == {"PARQUET"}
    lake.spark.sql(f"INSERT INTO {lake.name(orders.name)} SELECT * FROM {lake.name(orders.name)} WHERE id = 2")
    assert formats(lake, orders) == {"PARQUET", "ORC"}
    keep(lake, orders)
    assert formats(lake, orders) == {"PARQUET"}
    lake.spark.sql(f"INSERT INTO {lake.name(orders.name)} SELECT * FROM {lake.name(orders.name)} WHERE id = 3")
    assert formats(lake, orders) == {"PARQUET"}


@pytest.mark.parametrize("change", ["SET TBLPROPERTIES ('{}' = 'copy-on-write')", "UNSET TBLPROPERTIES ('{}')"])
def test_versions_are_merged_where_files_are_to_be_written_again_without_deleted_rows(lake, change):
    """Iceberg does so without the property too; Spark plans no such MERGE whose source reads the table that it writes."""
    lake.config = lake.config.model_copy(update={"modes": (ModeRule(tables="*.*", mode="scd2"),)})
    orders = table(f"{lake.database}.orders", {"id": BIGINT, "state": TEXT, "n": BIGINT})
    keys = range(210)
    rows = [Row("c", 5 + key, {"id": key, "state": "new", "n": 0}) for key in keys]
    lake.merge(lake.batches.plan(304, lake.batches.window(4, 304, {orders: rows})))
    lake.spark.sql(f"ALTER TABLE {lake.name(orders.name)} {change.format('write.merge.mode')}")
    rows = [Row("u", 305 + key, {"id": key, "state": None, "n": 1}, absent=frozenset({"state"})) for key in keys]
    lake.merge(lake.batches.plan(604, lake.batches.window(304, 604, {orders: rows})))
    current = lake.spark.sql(f"SELECT id, state, n FROM {lake.name(orders.name)} WHERE _is_current").collect()
    assert sorted(map(tuple, current)) == [(key, "new", 1) for key in keys]
