"""What merges do so that the cost of a run does not grow: old snapshots, small files and metadata files stay few."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from cdc_lib.model import thinning
from cdc_lib.store import cuts
from cdc_lib.store.cuts import named_snapshots
from spark_jobs.iceberg import upkeep
from spark_jobs.iceberg.ddl import SETTINGS
from tests.harness.lake.batches import BIGINT, INT, Row, table
from tests.harness.lake.past import PastClock, local_path, metadata_file
from tests.harness.lake.running import files_per_get

NEWEST = 2
"""Snapshots and cuts that are always kept, instead of 60 and 100."""

AT_ONCE = 2
"""Snapshots and cuts that are removed together, instead of 20."""

START = datetime(2026, 1, 5, 12, 5, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture
def orders(lake):
    """The schema of a table with a key."""
    return table(f"{lake.database}.orders", {"id": BIGINT, "v": INT})


@pytest.fixture
def _few_are_kept(monkeypatch):
    """The rule of merges with smaller numbers, so that few merges show it."""
    monkeypatch.setattr(thinning, "NEWEST", NEWEST)
    monkeypatch.setattr(cuts, "KEPT_CUTS", NEWEST)
    monkeypatch.setattr(cuts, "THIN_AT_ONCE", AT_ONCE)
    monkeypatch.setattr(upkeep, "THIN_AT_ONCE", AT_ONCE)


def merge_round(lake, schema, number):
    """Merge two new keys, and updates of keys 0 and 2; returns the rows afterwards."""
    start = 100 * number + 4
    new = (2 * number, 2 * number + 1)
    updated = [i for i in (0, 2) if i < new[0]]
    rows = [Row("c", start + 1, {"id": i, "v": i}, i) for i in new]
    rows += [Row("u", start + 2, {"id": i, "v": 1000 * number}, i) for i in updated]
    lake.merge(lake.batches.positioned(start + 100, lake.batches.window(start, start + 100, {schema: rows})))
    return [(i, 1000 * number if i in updated else i) for i in range(new[1] + 1)]


def snapshots(lake, schema):
    """Return the time (UTC) and the manifest list of each snapshot by its ID."""
    content = json.loads(metadata_file(lake, schema.name).read_text())
    return {
        one["snapshot-id"]: (datetime.fromtimestamp(one["timestamp-ms"] / 1000, UTC), local_path(one["manifest-list"]))
        for one in content["snapshots"]
    }


def rows_as_of(lake, schema, snapshot):
    frame = lake.spark.sql(f"SELECT id, v FROM {lake.name(schema.name)} VERSION AS OF {snapshot} ORDER BY id")
    return [tuple(row) for row in frame.collect()]


def data_files(lake, schema):
    rows = lake.spark.sql(f"SELECT file_path FROM {lake.name(schema.name)}.data_files").collect()
    return {row.file_path for row in rows}


@pytest.mark.usefixtures("_few_are_kept")
def test_merges_keep_one_snapshot_of_each_hour_and_later_of_each_day(lake, orders):
    """Snapshots that cuts name can be read with their rows. Files of removed snapshots go when no query reads them."""
    clock, merged = PastClock(lake, START), {}
    made, kept, ages = {}, {}, {}

    def merge_every_fifteen_minutes(rounds):
        nonlocal kept
        for _ in range(rounds):
            clock.forward(timedelta(minutes=15))
            rows = merge_round(lake, orders, len(merged))
            clock.backdate(orders.name)
            merged[lake.cuts[-1].tables[0].lake_snapshot] = rows
            before, kept = kept, snapshots(lake, orders)
            ages.update({one: clock.time - before[one][0] for one in before.keys() - kept.keys()})
            made.update(kept)

    merge_every_fifteen_minutes(11)
    hours = {at.replace(minute=0) for at, _ in made.values()}
    assert {at.replace(minute=0) for at, _ in kept.values()} == hours
    # Up to one less than AT_ONCE waits for the next time; the cuts are removed after the snapshots that they name.
    assert len(hours) <= len(kept) <= len(hours) + NEWEST + 2 * (AT_ONCE - 1) < len(made)

    clock.forward(3 * DAY)
    merge_every_fifteen_minutes(5)
    days = {at.date() for at, _ in made.values()}
    old = [at for at, _ in kept.values() if clock.time - at > DAY]
    assert sorted(at.date() for at in old) == sorted(days - {clock.time.date()})

    named = named_snapshots(lake.store, lake.config.source)
    assert named <= kept.keys()
    assert {one: rows_as_of(lake, orders, one) for one in named} == {one: merged[one] for one in named}
    assert {one: made[one][1].exists() for one in ages} == {
        one: age <= upkeep.READERS_NEED for one, age in ages.items()
    }
    assert min(ages.values()) <= upkeep.READERS_NEED < max(ages.values())
    assert [file for _, file in kept.values() if not file.exists()] == []


def test_a_merge_rewrites_many_small_files_as_one(lake, orders, monkeypatch):
    """The rows are those of the merges; a table with few small files is left as it is."""
    monkeypatch.setattr(upkeep, "SMALL_FILES", 5)
    for number in range(5):
        rows = merge_round(lake, orders, number)
    assert len(data_files(lake, orders)) == 5
    assert lake.rows(orders.name, "id", "v") == sorted(rows, key=repr)
    rows = merge_round(lake, orders, 5)
    assert len(data_files(lake, orders)) == 1
    assert lake.rows(orders.name, "id", "v") == sorted(rows, key=repr)
    assert rows_as_of(lake, orders, lake.cuts[-1].tables[0].lake_snapshot) == rows
    rows = merge_round(lake, orders, 6)
    assert lake.rows(orders.name, "id", "v") == sorted(rows, key=repr)


def test_files_that_a_merge_rewrote_have_disjoint_key_ranges(lake, orders, monkeypatch):
    """A get of one key then opens one data file; before, one for each merge whose keys were spread over the table."""
    monkeypatch.setattr(upkeep, "SMALL_FILES", 5)

    def merge_spread_keys(number):
        start = 1000 * number + 4
        rows = [Row("c", start + 1, {"id": 10 * i + number, "v": i}, i) for i in range(300)]
        lake.merge(lake.batches.positioned(start + 1000, lake.batches.window(start, start + 1000, {orders: rows})))

    for number in range(5):
        merge_spread_keys(number)
    bounds = lake.key_bounds(orders.name, "id")
    assert files_per_get(bounds, 1502) == len(bounds) == 5
    size = lake.spark.sql(f"SELECT max(file_size_in_bytes) FROM {lake.name(orders.name)}.data_files").first()[0]
    target = f"'write.target-file-size-bytes' = '{2 * size}'"  # so that several files are made
    lake.spark.sql(f"ALTER TABLE {lake.name(orders.name)} SET TBLPROPERTIES ({target})")
    merge_spread_keys(5)
    bounds = lake.key_bounds(orders.name, "id")
    assert len(bounds) > 1
    assert all(upper < lower for (_, upper), (lower, _) in pairwise(bounds))
    assert {files_per_get(bounds, key) for (key,) in lake.rows(orders.name, "id")} == {1}


def test_the_metadata_files_and_manifests_of_a_table_stay_few(lake, orders):
    """Each commit writes a metadata file and a manifest. It removes the oldest files, and merges manifests, as the table's properties state."""
    previous = int(SETTINGS["write.metadata.previous-versions-max"])
    counts = []
    for number in range(10):
        merge_round(lake, orders, number)
        counts.append(len(list(metadata_file(lake, orders.name).parent.glob("*.metadata.json"))))
    # A merge commits more than once, so that the number is reached before the last merges.
    assert counts[-2:] == [previous + 1] * 2
    properties = json.loads(metadata_file(lake, orders.name).read_text())["properties"]
    assert properties["write.metadata.delete-after-commit.enabled"] == "true"
    assert int(properties["write.metadata.previous-versions-max"]) == previous <= 10
    manifests = lake.spark.sql(f"SELECT count(*) FROM {lake.name(orders.name)}.manifests WHERE content = 0").first()[0]
    assert manifests < 8
    assert len(lake.rows(orders.name, "id")) == 20
