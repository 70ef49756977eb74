"""Source tables of any name: their lake tables are in separate folders below the warehouse, and readable."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import pytest

from cdc_lib.config.maintenance import MaintenanceConfig
from cdc_lib.lake.catalog import open_catalog
from cdc_lib.model.lexer import quoted
from cdc_lib.store.cuts import last_cut
from spark_jobs.maintain import lake_tables, maintain
from spark_jobs.sql import full_name
from tests.harness.lake.verify import Compared

NAMES = (
    "a",
    "a/t",
    "a/data",
    "../../../../x",
    "..",
    "#",
    "?",
    "T",
    "t",
    "q`q",
    "%s",
    "注" * 48 + "注",
    "注" * 48 + "文",
)
DAYS = 4 * 86_400


def age(folder: Path) -> None:
    """Set the time of every file of a folder back, so that orphan files would be removed."""
    for file in folder.rglob("*"):
        if file.is_file():
            os.utime(file, (file.stat().st_mtime - DAYS,) * 2)


def keep(lake, config, said):
    """Run the maintenance of all tables."""
    settings = MaintenanceConfig(keep_snapshots_for=timedelta(0))
    config = config.model_copy(update={"maintenance": settings})
    store = lake.store
    return maintain(lake.spark, config, store, lake_tables(config, last_cut(store, config.source), ()), said.append)


@pytest.fixture
def victim(mysql_server, mysql_database):
    """A second database."""
    name = f"{mysql_database}_v"
    mysql_server.execute(f"CREATE DATABASE {name}")
    yield name
    mysql_server.execute(f"DROP DATABASE {name}")


def test_tables_of_any_name_are_separate_in_snapshot_merge_maintenance_and_verify(
    mysql_server, mysql_database, victim, tmp_path, lake
):
    """Old files that are in use stay, no file is outside the warehouse, and PyIceberg reads each table."""
    outside = f"../{victim}/t"
    tables = [(mysql_database, name) for name in (*NAMES, outside)] + [(victim, "t")]
    source = Compared(
        mysql_server, mysql_database, tmp_path, lake, tables={"include": [f"{mysql_database}.*", f"{victim}.*"]}
    )
    for number, (database, name) in enumerate(tables):
        source.execute(f"CREATE TABLE {quoted(database)}.{quoted(name)} (id INT PRIMARY KEY, v INT)")
        source.execute(f"INSERT INTO {quoted(database)}.{quoted(name)} VALUES (1, {number}), (2, {number})")
    warehouse = Path(lake.config.lake.warehouse.removeprefix("file://"))
    before = {path for path in warehouse.parent.rglob("*") if warehouse not in (path, *path.parents)}
    lake.store = source.capture.store
    source.round()
    for database, name in tables:
        source.execute(f"INSERT INTO {quoted(database)}.{quoted(name)} VALUES (3, 3)")
        source.execute(f"DELETE FROM {quoted(database)}.{quoted(name)} WHERE id = 1")
    source.round()
    age(warehouse)
    kept = keep(lake, source.capture.config, source.said)
    assert len(kept) == len(tables)
    assert [result.in_the_way for result in kept if result.in_the_way] == []
    source.execute(f"UPDATE {quoted(victim)}.t SET v = 7")
    source.round()
    report = source.report()
    assert [one.table for one in report.tables if not one.clean] == []
    assert len(report.tables) == len(tables)
    catalog = open_catalog(source.capture.config)
    for database, name in tables:
        assert catalog.load_table((database, name)).scan().to_arrow().num_rows == 2
    after = {path for path in warehouse.parent.rglob("*") if warehouse not in (path, *path.parents)}
    assert {path for path in after - before if not path.name.startswith("catalog.db")} == set()


def test_orphan_files_in_overlapping_folders_stay(lake, tmp_path, mysql_server, mysql_database):
    """For older or foreign tables whose folders contain each other; the table next to them is maintained."""
    source = Compared(mysql_server, mysql_database, tmp_path, lake)
    for name in ("a", "b"):
        source.execute(f"CREATE TABLE {name} (id INT PRIMARY KEY)")
        source.execute(f"INSERT INTO {name} VALUES (1)")
    lake.store = source.capture.store
    source.round()
    [(location,)] = lake.spark.sql(f"DESCRIBE EXTENDED lake.{mysql_database}.a").where("col_name = 'Location'").select("data_type").collect()  # fmt: skip
    inner = full_name(lake.target(f"{mysql_database}.a")._name).replace("`a`", "`inner`")
    lake.spark.sql(f"CREATE TABLE {inner} (id INT) USING iceberg LOCATION '{location}/data'")
    lake.spark.sql(f"INSERT INTO {inner} VALUES (1)")
    warehouse = Path(lake.config.lake.warehouse.removeprefix("file://"))
    lost = [warehouse / mysql_database / name / "data" / "00000-lost.parquet" for name in ("a", "b")]
    for file in lost:
        file.write_bytes(b"lost")
    age(warehouse / mysql_database)
    a, b = keep(lake, source.capture.config, source.said)
    assert f"overlaps that of lake.{mysql_database}.inner" in a.in_the_way
    assert (a.orphans, b.orphans, b.in_the_way) == (0, 1, "")
    assert [file.exists() for file in lost] == [True, False]
    assert any("no lost files were looked for" in line for line in source.said)
    assert lake.spark.sql(f"SELECT * FROM {inner}").count() == 1
