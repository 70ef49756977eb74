"""Maintenance of lake tables keeps their rows, markers and cuts."""

from __future__ import annotations

import os
import threading
from datetime import timedelta
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from cdc_lib.config.maintenance import MaintenanceConfig
from cdc_lib.errors import CdcError, ConfigError
from cdc_lib.store.cuts import last_cut
from spark_jobs.iceberg.maintenance import Upkeep
from spark_jobs.maintain import lake_tables, maintain
from tests.harness.lake.batches import BIGINT, INT, TEXT, Row, table

AT_ONCE = MaintenanceConfig(keep_snapshots_for=timedelta(0))


def merge_rounds(lake, schema, rounds, first=0):
    """Merge windows of ten rows each: new keys, and updates and a delete of keys of the round before."""
    plans = []
    for number in range(first, first + rounds):
        start, stop = 100 * number + 4, 100 * number + 104
        rows = [Row("c", start + 1, {"id": 10 * number + i, "v": number}, i) for i in range(10)]
        if number and schema.primary_key:
            before = 10 * (number - 1)
            rows += [Row("u", start + 2, {"id": before + i, "v": -number}, i) for i in range(1, 9)]
            rows += [Row("d", start + 3, {"id": before, "v": 0})]
        plans.append(lake.batches.plan(stop, lake.batches.window(start, stop, {schema: rows})))
        lake.merge(plans[-1])
    return plans


def keep(lake, *tables, settings=AT_ONCE):
    """Run the maintenance of tables; returns the result of each."""
    config = lake.config.model_copy(update={"maintenance": settings})
    names = lake_tables(config, last_cut(lake.store, config.source), tables)
    return maintain(lake.spark, config, lake.store, names, lake.said.append)


def distinct(lake, name):
    """Return the number of distinct values of each column in the newest statistics."""
    files = lake.target(name)._java().statisticsFiles()
    return [round(float(blob.properties()["ndv"])) for file in list(files)[-1:] for blob in file.blobMetadata()]


@pytest.mark.parametrize("key", [("id",), ()])
def test_small_files_are_compacted_and_rows_and_markers_stay(lake, key):
    """Rows, marker and cut are the same; merged batches are not merged again, and new batches are."""
    schema = table(f"{lake.database}.orders", {"id": BIGINT, "v": INT}, key=key)
    plans = merge_rounds(lake, schema, 7)
    rows, marker = lake.rows(schema.name, "id", "v"), lake.state(schema.name).marker
    [kept] = keep(lake, schema.name)
    assert (kept.rewritten, kept.added) == (kept.files, 1)
    assert kept.snapshots >= 6
    # The key's distinct values are counted again only after many rows have changed.
    assert (kept.statistics, kept.statistics_bytes > 0) == (len(key), bool(key))
    assert distinct(lake, schema.name) == [len(rows)] * len(key)
    assert keep(lake, schema.name)[0].statistics == 0
    assert distinct(lake, schema.name) == [len(rows)] * len(key)
    assert lake.rows(schema.name, "id", "v") == rows
    assert lake.state(schema.name).marker == marker
    lake.merge(lake.batches.again(plans[-1]))
    assert lake.rows(schema.name, "id", "v") == rows
    merge_rounds(lake, schema, 1, first=7)
    assert len(lake.rows(schema.name, "id")) == (80 - 7 if key else 80)
    # A round of ten rows is more than a tenth of all rows; one row is not.
    assert keep(lake, schema.name)[0].statistics == len(key)
    lake.merge(lake.batches.plan(902, lake.batches.window(804, 902, {schema: [Row("c", 805, {"id": 900, "v": 1})]})))
    assert keep(lake, schema.name)[0].statistics == 0


def test_a_run_begins_with_the_tables_that_need_it_most_and_leaves_the_rest(lake):
    """In the order of their need; what is begun when the time is over is finished, and a run always gets on."""
    schemas = [table(f"{lake.database}.{name}", {"id": BIGINT, "v": INT}) for name in ("few", "many", "some")]
    for number in range(5):
        start, stop = 100 * number + 4, 100 * number + 104
        rows = {
            schema: [Row("c", start + 1, {"id": number, "v": number})]
            for schema, until in zip(schemas, (1, 5, 3), strict=True)
            if number < until
        }
        lake.merge(lake.batches.plan(stop, lake.batches.window(start, stop, rows)))
    lake.config = lake.config.model_copy(update={"merge": lake.config.merge.model_copy(update={"parallelism": 1})})
    done = keep(lake, settings=AT_ONCE.model_copy(update={"run_for": timedelta(hours=1)}))
    assert [one.table.rpartition(".")[2] for one in done] == ["many", "some", "few"]
    lake.said.clear()
    moment = AT_ONCE.model_copy(update={"run_for": timedelta(microseconds=1)})
    [first] = keep(lake, settings=moment)
    waiting = sorted({one.table for one in done} - {first.table})
    assert (
        sorted(lake.said[-1].removeprefix("maintenance.run_for is over; for the next run wait ").split(", ")) == waiting
    )


def test_maintenance_can_be_repeated(lake):
    """Also without a merge in between: the snapshot with the marker is then older than several of maintenance."""
    schema = table(f"{lake.database}.orders", {"id": BIGINT, "v": INT})
    merge_rounds(lake, schema, 6)
    rows, marker = lake.rows(schema.name, "id", "v"), lake.state(schema.name).marker
    for _ in range(3):
        keep(lake, schema.name)
        assert lake.state(schema.name).marker == marker
    merge_rounds(lake, schema, 5, first=6)
    keep(lake, schema.name)
    assert set(rows) - {(50, 5), *((50 + i, 5) for i in range(1, 9))} < set(lake.rows(schema.name, "id", "v"))
    assert lake.snapshots(schema.name) <= 3
    assert len(lake.target(schema.name)._java().statisticsFiles()) == 1


def test_snapshots_of_young_cuts_stay(lake):
    """A reader of a cut finds its snapshots; older snapshots are expired."""
    schema = table(f"{lake.database}.orders", {"id": BIGINT, "v": INT})
    merge_rounds(lake, schema, 3)
    young = MaintenanceConfig(keep_snapshots_for=timedelta(hours=1))
    keep(lake, schema.name, settings=young)
    named = {entry.lake_snapshot for entry in last_cut(lake.store, "shop").tables}
    before = lake.snapshots(schema.name)
    assert before == 4  # one for each merge, and that of the files written again
    keep(lake, schema.name)
    remaining = {
        row.snapshot_id
        for row in lake.spark.sql(f"SELECT snapshot_id FROM {lake.name(schema.name)}.snapshots").collect()
    }
    assert named <= remaining
    assert len(remaining) < before


def test_orphan_files_are_removed_when_they_are_old_enough(lake):
    """Files of killed merges; a young file may belong to a running merge."""
    schema = table(f"{lake.database}.orders", {"id": BIGINT, "v": INT})
    merge_rounds(lake, schema, 2)
    [path] = lake.spark.sql(f"SELECT file_path FROM {lake.name(schema.name)}.data_files LIMIT 1").collect()[0]
    folder = Path(unquote(urlsplit(path).path)).parent
    old, young = folder / "00000-lost.parquet", folder / "00001-young.parquet"
    for file in (old, young):
        file.write_bytes(b"lost")
    four_days_ago = old.stat().st_mtime - 4 * 86_400
    os.utime(old, (four_days_ago, four_days_ago))
    rows = lake.rows(schema.name, "id", "v")
    [kept] = keep(lake, schema.name)
    assert (kept.in_the_way, kept.orphans, old.exists(), young.exists()) == ("", 1, False, True)
    assert lake.rows(schema.name, "id", "v") == rows


def test_merges_and_maintenance_run_concurrently(lake):
    """After a conflict, either of them tries again."""
    schema = table(f"{lake.database}.orders", {"id": BIGINT, "v": INT})
    merge_rounds(lake, schema, 3)
    small = MaintenanceConfig(keep_snapshots_for=timedelta(0), min_small_files=2, max_deleted_ratio=0.01)
    done, faults = threading.Event(), []

    def maintain_often():
        while not done.is_set():
            try:
                keep(lake, schema.name, settings=small)
            except CdcError as error:
                faults.append(error)

    maintenance = threading.Thread(target=maintain_often)
    maintenance.start()
    try:
        merge_rounds(lake, schema, 5, first=3)
    finally:
        done.set()
        maintenance.join()
    expected = {(10 * n + i, -(n + 1)) for n in range(7) for i in range(1, 9)}
    expected |= {(10 * n + 9, n) for n in range(8)} | {(70 + i, 7) for i in range(10)}
    assert set(lake.rows(schema.name, "id", "v")) == expected
    assert all(fault.retryable for fault in faults), faults


def test_a_snapshot_that_expires_while_maintenance_reads_it_is_not_reported_as_damage(lake, monkeypatch):
    """The maintenance reads the table again."""
    schema = table(f"{lake.database}.orders", {"id": BIGINT, "v": INT})
    merge_rounds(lake, schema, 3)
    real, reads = Upkeep._count, []

    def overtaken(upkeep):
        reads.append(upkeep)
        if len(reads) == 1:
            read = upkeep._java()
            merge_rounds(lake, schema, 1, first=3)
            lake.spark.sql(
                f"CALL lake.system.expire_snapshots(table => '{lake.database}.orders', retain_last => 1, "
                "older_than => TIMESTAMP '2999-01-01 00:00:00')"
            )
            read.currentSnapshot().allManifests(read.io())
        return real(upkeep)

    monkeypatch.setattr(Upkeep, "_count", overtaken)
    [kept] = keep(lake, schema.name)
    assert (kept.added, len(reads)) == (1, 2)


def test_maintenance_works_with_names_of_any_kind(lake):
    """Also of key columns, by which files are sorted."""
    columns = {"order by": BIGINT, "a.b": TEXT, "back`tick": INT}
    schema = table(f"{lake.database}.`Order Items-2.0`", columns, key=("order by", "back`tick"))
    for number in range(6):
        rows = [Row("c", 100 * number + 10, {"order by": 100 - number, "a.b": "x", "back`tick": number})]
        lake.merge(
            lake.batches.plan(
                100 * number + 104, lake.batches.window(100 * number + 4, 100 * number + 104, {schema: rows})
            )
        )
    [kept] = keep(lake, schema.name)
    assert (kept.rewritten, kept.added) == (6, 1)
    assert kept.statistics == 1  # Iceberg cannot count the other
    assert [row[0] for row in lake.spark.sql(f"SELECT `order by` FROM {lake.name(schema.name)}").collect()] == list(
        range(95, 101)
    )


def test_a_table_that_was_dropped_since_the_last_cut_is_left_out(lake):
    """The others are maintained; the next merge reports what to do with it."""
    schemas = [table(f"{lake.database}.{name}", {"id": BIGINT, "v": INT}) for name in ("dropped", "other")]
    keys = [lake.batches.window(4, 100, {schema: [Row("c", 10, {"id": 1, "v": 1})] for schema in schemas})]
    lake.merge(lake.batches.plan(100, *keys))
    lake.spark.sql(f"DROP TABLE lake.{lake.database}.dropped")
    missing = {result.table.rpartition(".")[2]: result.missing for result in keep(lake)}
    assert missing == {"dropped": True, "other": False}
    assert any("dropped: skipped, because it does not exist" in line for line in lake.said)


def test_an_unknown_table_is_reported(lake):
    """With the names of the tables that the lake has."""
    schema = table(f"{lake.database}.orders", {"id": BIGINT, "v": INT})
    merge_rounds(lake, schema, 1)
    with pytest.raises(ConfigError, match=r"nothing of shop\.nothing") as error:
        keep(lake, "shop.nothing")
    assert schema.name in error.value.hint
