"""Two catalogs over one warehouse, as after a source file was copied: neither touches what the other has."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from cdc_lib.config.maintenance import MaintenanceConfig
from cdc_lib.doctor.folder_check import shared_folders
from cdc_lib.lake.location import sqlite_file, table_location
from cdc_lib.store.cuts import last_cut
from cdc_lib.store.objects.local import LocalStore
from spark_jobs.iceberg import table_definition
from spark_jobs.maintain import lake_tables, maintain
from spark_jobs.runtime.session import table_session
from tests.harness.lake.batches import BIGINT, TEXT, Row, table
from tests.harness.lake.running import Lake, empty_catalog

NOW = MaintenanceConfig(keep_snapshots_for=timedelta(0))


@pytest.fixture
def staging(lake, tmp_path):
    """A copy of the source with a catalog and a store of its own, over the same warehouse."""
    uri = f"jdbc:sqlite:{tmp_path}/staging.db?busy_timeout=30000"
    of_lake = lake.config.lake.model_copy(update={"catalog": "staging", "uri": uri})
    store = lake.config.store.model_copy(update={"url": f"file://{tmp_path}/staging-store"})
    config = lake.config.model_copy(update={"lake": of_lake, "store": store})
    copy = Lake(table_session(lake.spark, config), config, LocalStore(tmp_path / "staging-store"))
    copy.database = lake.database
    yield copy
    empty_catalog(config)


def merged(lake, rounds):
    """Merge a row into the table in each round; returns the table."""
    orders = table(f"{lake.database}.orders", {"id": BIGINT, "state": TEXT})
    for number in range(rounds):
        start, stop = 100 * number + 4, 100 * number + 104
        rows = [Row("c", start + 1, {"id": number, "state": "new"})]
        lake.merge(lake.batches.plan(stop, lake.batches.window(start, stop, {orders: rows})))
    return orders


def keep(lake, orders):
    """Maintain the table when all files of its folder are old."""
    for path in Path(urlsplit(location(lake, orders)).path).rglob("*"):
        os.utime(path, (0, 0))
    config = lake.config.model_copy(update={"maintenance": NOW})
    [done] = maintain(
        lake.spark, config, lake.store, lake_tables(config, last_cut(lake.store, config.source), [orders.name])
    )
    return done


def location(lake, orders):
    return str(lake.target(orders.name)._java().location())


def warnings(lake):
    return [one.what for one in shared_folders(sqlite_file(lake.config.lake.uri), lake.config.lake.catalog)]


def test_a_table_is_not_made_in_the_folder_of_another_one(lake, staging):
    """Each keeps its rows when the other is maintained."""
    orders = merged(lake, 3)
    assert merged(staging, 2) == orders
    assert location(lake, orders) != location(staging, orders)
    keep(staging, orders)
    keep(lake, orders)
    assert [len(one.rows(orders.name, "id")) for one in (lake, staging)] == [3, 2]
    assert [warnings(one) for one in (lake, staging)] == [[], []]


def test_a_table_that_was_dropped_leaves_its_folder_to_nobody(lake):
    """Files of it may be all that is left of the rows."""
    orders = merged(lake, 1)
    first = Path(urlsplit(location(lake, orders)).path)
    files = {path for path in first.rglob("*") if path.is_file()}
    lake.spark.sql(f"DROP TABLE {lake.name(orders.name)}")
    lake.target(orders.name).create(orders)
    assert files == {path for path in first.rglob("*") if path.is_file()}


def test_lost_files_stay_in_a_folder_that_two_tables_share(lake, staging, monkeypatch):
    """As earlier releases made them: what one table does not know may be the rows of the other."""
    monkeypatch.setattr(
        table_definition,
        "location_of",
        lambda _, name: table_location("jdbc", str(lake.config.lake.warehouse), name),
    )
    orders = merged(lake, 3)
    merged(staging, 2)
    assert location(lake, orders) == location(staging, orders)
    uuids = [one.state(orders.name).uuid for one in (lake, staging)]
    for one, other in ((lake, uuids[1]), (staging, uuids[0])):
        done = keep(one, orders)
        assert (done.orphans, done.in_the_way) == (0, f"its folder also holds the metadata of another table ({other})")
        [warning] = warnings(one)
        assert f"also holds the metadata of another table ({other})" in warning
    assert [len(one.rows(orders.name, "id")) for one in (lake, staging)] == [3, 2]
