"""The same changes give the same rows on each layout, for Spark, PyIceberg and the reading client; and layouts change later."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from cdc_lib.config.layouts import LayoutRule
from cdc_lib.config.maintenance import MaintenanceConfig
from cdc_lib.config.modes import ModeRule
from cdc_lib.config.schema_changes import SchemaChangesConfig
from cdc_lib.errors import CdcError, ConfigError, MergeError
from cdc_lib.lake.catalog import open_table
from cdc_lib.model.column_rename import ColumnRename
from cdc_lib.model.lake_table import MARKER_PROPERTY
from cdc_lib.model.layout import Layout
from cdc_lib.model.position import Point
from cdc_lib.model.schema import SourceType
from cdc_lib.store.cuts import last_cut
from spark_jobs.iceberg.ddl import SETTINGS
from spark_jobs.iceberg.locations import TableLocations
from spark_jobs.iceberg.maintenance import Upkeep
from spark_jobs.maintain import lake_tables, maintain
from tests.harness.lake.batches import BIGINT, TEXT, Row, table
from tests.harness.lake.reading import assert_reads_as_spark, opened, spark_rows

DATETIME = SourceType("datetime", scale=6)
DAY_0 = datetime(2026, 1, 1)  # noqa: DTZ001
COLUMNS = {"id": BIGINT, "v": BIGINT, "t": TEXT, "created": DATETIME}
KEYS = 40

BY_DAY = {"partition_by": ["day(created)", "bucket(2, id)"], "sort_by": ["v DESC NULLS LAST", "id"]}
LAYOUTS = {
    "partitions on format 3": BY_DAY,
    "position deletes": {"format_version": 2},
    "copy on write": {"write_mode": "copy_on_write"},
    "copy on write in partitions on format 2": {"format_version": 2, "write_mode": "copy_on_write", **BY_DAY},
}
MORE = {
    "partitions on format 2": {"format_version": 2, **BY_DAY},
    "truncated text": {"partition_by": ["truncate(5, t)"]},
    "months and the text": {"partition_by": ["month(created)", "t"], "sort_by": ["created"]},
    "hours": {"partition_by": ["hour(created)"]},
}
CASES = [*LAYOUTS, *(pytest.param(name, marks=pytest.mark.slow) for name in MORE)]


@pytest.fixture
def orders(lake):
    return table(f"{lake.database}.orders", COLUMNS)


def lay_out(lake, **layout):
    lake.config = lake.config.model_copy(update={"layouts": (LayoutRule(tables="*.*", **layout),)})


def values(key, version):
    """Return the values of a row; each version of it belongs to other partitions."""
    created = None if (key + version) % 7 == 0 else DAY_0 + timedelta(days=(key + 2 * version) % 5, hours=key)
    return {"id": key, "v": version, "t": f"text {key % 3 + version}", "created": created}


def merge_history(lake, schema, rounds=4, first=0):
    """Merge rounds of inserts, updates that change the partition, deletes and inserts again; return the rows that are left."""
    alive = {}
    for number in range(first + rounds):
        start, rows = 100 * number + 4, []
        for key in range(number % 2, KEYS, 1 + number):
            op = "c" if key not in alive else "d" if (key + number) % 5 == 0 else "u"
            rows.append(Row(op, start + 1 + len(rows), values(key, number)))
            alive.pop(key, None)
            if op != "d":
                alive[key] = values(key, number)
        if number >= first:
            lake.merge(lake.batches.plan(start + 100, lake.batches.window(start, start + 100, {schema: rows})))
    return sorted(tuple(row.values()) for row in alive.values())


def keep(lake, schema):
    settings = MaintenanceConfig(keep_snapshots_for=timedelta(0))
    config = lake.config.model_copy(update={"maintenance": settings})
    names = lake_tables(config, last_cut(lake.store, config.source), [schema.name])
    [done] = maintain(lake.spark, config, lake.store, names, lake.said.append)
    return done


def files_of(lake, schema, kind):
    return lake.spark.sql(f"SELECT * FROM {lake.name(schema.name)}.{kind}").collect()


def assert_rows(lake, schema, expected):
    """Spark, the reading client (gets and scans) and PyIceberg return these rows."""
    assert sorted(lake.rows(schema.name, *COLUMNS), key=lambda row: row[0]) == expected
    with opened(lake) as reader:
        assert_reads_as_spark(reader.table(schema.name), spark_rows(lake, schema.name), [KEYS, -1])


@pytest.mark.parametrize("name", CASES)
def test_the_same_changes_give_the_same_rows_on_each_layout(lake, orders, name):
    """Before and after maintenance. Each merge is one commit with the marker."""
    layout = {**LAYOUTS, **MORE}[name]
    lay_out(lake, **layout)
    expected = merge_history(lake, orders)
    assert_rows(lake, orders, expected)
    # Small files are rewritten after a merge, by a commit of its own.
    summaries = [row.summary for row in files_of(lake, orders, "snapshots") if row.operation != "replace"]
    assert [any(key.startswith(MARKER_PROPERTY) for key in one) for one in summaries] == [True] * 4
    kinds = {row.file_format for row in files_of(lake, orders, "delete_files")}
    version = layout.get("format_version", 3)
    on_read = layout.get("write_mode", "merge_on_read") == "merge_on_read"
    assert kinds <= ({"PUFFIN" if version == 3 else "PARQUET"} if on_read else set())
    assert {row.spec_id for row in files_of(lake, orders, "data_files")} == {0}
    assert not keep(lake, orders).laid_out
    assert_rows(lake, orders, expected)
    assert_rows(lake, orders, merge_history(lake, orders, 1, first=4))
    deleted = files_of(lake, orders, "snapshots")[-1].summary.get("total-position-deletes", "0")
    assert int(deleted) == 0 or on_read


@pytest.mark.parametrize("name", ["position deletes", "copy on write in partitions on format 2"])
def test_pyiceberg_reads_format_2(lake, orders, name):
    lay_out(lake, **LAYOUTS[name])
    expected = merge_history(lake, orders)
    with open_table(lake.config, orders.name) as table:
        found = table.scan(selected_fields=tuple(COLUMNS)).to_arrow().to_pylist()
    assert sorted((tuple(row.values()) for row in found), key=lambda row: row[0]) == expected


def test_maintenance_gives_an_existing_table_the_layout_of_the_source_file(lake, orders):
    """Partitions, order, properties and copy-on-write; then back. Merges in between keep the rows."""
    expected = merge_history(lake, orders)
    lay_out(lake, **BY_DAY, write_mode="copy_on_write", properties={"write.parquet.page-row-limit": 5000})
    assert_rows(lake, orders, merge_history(lake, orders, 1, first=4))  # the merge leaves the layout as it is
    assert lake.state(orders.name).layout == Layout()
    done = keep(lake, orders)
    assert done.laid_out
    assert done.rewritten == done.files
    assert lake.state(orders.name).layout == lake.config.layouts[0].over(Layout())
    assert files_of(lake, orders, "delete_files") == []
    assert len({row.partition for row in files_of(lake, orders, "data_files")}) > 2
    assert not keep(lake, orders).laid_out
    expected = merge_history(lake, orders, 1, first=5)
    assert_rows(lake, orders, expected)
    assert files_of(lake, orders, "delete_files") == []
    lay_out(lake)
    assert keep(lake, orders).laid_out
    assert len(files_of(lake, orders, "data_files")) == 1
    properties = {
        row.key: row.value for row in lake.spark.sql(f"SHOW TBLPROPERTIES {lake.name(orders.name)}").collect()
    }
    assert properties["write.parquet.page-row-limit"] == SETTINGS["write.parquet.page-row-limit"]
    assert_rows(lake, orders, expected)


def test_format_2_becomes_3_but_not_the_reverse(lake, orders):
    """Position deletes that exist stay valid."""
    lay_out(lake, format_version=2)
    merge_history(lake, orders)
    lay_out(lake)
    assert keep(lake, orders).laid_out
    assert_rows(lake, orders, merge_history(lake, orders, 1, first=4))
    lay_out(lake, format_version=2)
    with pytest.raises(CdcError, match="Iceberg lowers no format version"):
        keep(lake, orders)


def test_a_layout_that_the_columns_do_not_allow_stops_the_merge_before_the_table_exists(lake, orders):
    lay_out(lake, partition_by=["day(v)"])
    with pytest.raises(ConfigError, match="partition_by has day of v, whose type is bigint"):
        merge_history(lake, orders, 1)
    assert lake.target(orders.name).load() is None


def test_a_column_of_the_layout_or_of_an_earlier_one_is_not_dropped(lake, orders):
    """Iceberg keeps former partition specs, and deletes fail once a column of one is dropped."""
    lay_out(lake, partition_by=["day(created)"])
    follow = SchemaChangesConfig(drop_column="follow")
    lake.config = lake.config.model_copy(update={"schema_changes": follow})
    merge_history(lake, orders, 1)
    without = table(orders.name, {name: kind for name, kind in COLUMNS.items() if name != "created"})
    row = Row("u", 105, {"id": 2, "v": 9, "t": "x"})
    plan = lake.batches.plan(204, lake.batches.window(104, 204, {without: [row]}))
    refused = "the source dropped created, and the layout of the lake table needs it, or did before"
    with pytest.raises(MergeError, match=refused):
        lake.merge(plan)
    lay_out(lake)
    keep(lake, orders)
    with pytest.raises(MergeError, match=refused):
        lake.merge(plan)
    lake.config = lake.config.model_copy(update={"schema_changes": SchemaChangesConfig(drop_column="keep")})
    lake.merge(plan)
    assert (2, 9, "x") in lake.rows(orders.name, "id", "v", "t")


def test_copy_on_write_completes_many_rows_from_the_table_itself(lake, orders):
    """More than a merge names one by one: the source of its MERGE then reads the table."""
    lay_out(lake, write_mode="copy_on_write")
    rows = [Row("c", 5 + key, values(key, 0)) for key in range(210)]
    lake.merge(lake.batches.plan(304, lake.batches.window(4, 304, {orders: rows})))
    partial = [Row("u", 305 + key, values(key, 1) | {"t": None}, absent=frozenset({"t"})) for key in range(210)]
    lake.merge(lake.batches.plan(604, lake.batches.window(304, 604, {orders: partial})))
    assert sorted(lake.rows(orders.name, "id", "v", "t")) == [(key, 1, values(key, 0)["t"]) for key in range(210)]


@pytest.mark.parametrize("mode", ["scd2", pytest.param("soft_delete", marks=pytest.mark.slow), "append"])
def test_other_modes_have_layouts_too(lake, orders, mode):
    """Their rows are those of a table without a layout."""
    lake.config = lake.config.model_copy(update={"modes": (ModeRule(tables="*.*", mode=mode),)})
    plain = table(f"{lake.database}.plain", COLUMNS)
    for number in range(2):
        start = 100 * number + 4
        ops = ("c", "c", "c") if number == 0 else ("u", "d", "u")
        rows = [Row(op, start + 1 + i, values(i, number)) for i, op in enumerate(ops)]
        both = {orders: rows, plain: rows}
        if number == 0:
            rule = LayoutRule(tables="*.orders", **BY_DAY, format_version=2, write_mode="copy_on_write")
            lake.config = lake.config.model_copy(update={"layouts": (rule,)})
        lake.merge(lake.batches.plan(start + 100, lake.batches.window(start, start + 100, both)))
    columns = [column.name for column in lake.state(plain.name).columns]
    assert lake.rows(orders.name, *columns) == lake.rows(plain.name, *columns)
    assert len({row.partition for row in files_of(lake, orders, "data_files")}) > 1


def test_a_layout_follows_a_column_that_the_source_renames(lake, orders):
    """The next rows come in that order, and once the source file has the new name, no file is written again."""
    lay_out(lake, partition_by=["day(created)"], sort_by=["created"])
    merge_history(lake, orders)
    target = lake.target(orders.name)
    rename = ColumnRename(orders.name, Point(1, 1, 450), (("created", "made"),))
    target.rename(target.load(), {"created": "made"}, [rename])
    later = table(orders.name, {"made" if name == "created" else name: kind for name, kind in COLUMNS.items()})
    lay_out(lake, partition_by=["day(made)"], sort_by=["made"])
    rows = [
        Row("c", 510 + key, {"id": 100 + key, "v": 1, "t": "", "made": DAY_0 - timedelta(hours=key)})
        for key in range(5)
    ]
    lake.merge(lake.batches.plan(604, lake.batches.window(504, 604, {later: rows})))
    assert lake.state(orders.name).layout.columns == ("made", "made")
    assert not keep(lake, orders).laid_out


def test_partitions_and_order_follow_a_renamed_column(lake, orders):
    """A rewrite after a merge, before and after the source file has the new name."""
    lay_out(lake, partition_by=["day(created)"], sort_by=["created"])
    merge_history(lake, orders)
    lake.spark.sql(f"ALTER TABLE {lake.name(orders.name)} RENAME COLUMN created TO made")
    rows = lake.rows(orders.name, "id", "v", "made")
    name = lake_tables(lake.config, last_cut(lake.store, lake.config.source), [orders.name])[0]
    settings = MaintenanceConfig(min_small_files=2)
    assert Upkeep(lake.spark, name, settings, TableLocations(())).rewrite()["rewritten"] > 0
    with pytest.raises(ConfigError, match="partition_by has created, and the table has no such column"):
        keep(lake, orders)
    lay_out(lake, partition_by=["day(made)"], sort_by=["made"])
    assert keep(lake, orders).laid_out
    assert not keep(lake, orders).laid_out
    assert lake.rows(orders.name, "id", "v", "made") == rows
