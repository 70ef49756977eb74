"""``cdc verify`` compares source and lake by checksums of key ranges, and reports the rows that differ."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from random import Random
from typing import get_args

import pyarrow as pa
import pytest

from cdc_lib.cli import job as cli_job
from cdc_lib.model.column_types import Kind
from cdc_lib.model.lake_table import LakeName
from cdc_lib.model.projection import whole
from cdc_lib.model.route import Target
from cdc_lib.model.schema import Column, SourceType, TableSchema
from cdc_lib.model.value_policy import ValuePolicy
from cdc_lib.status.overview import status_of
from cdc_lib.verify.canonical_text import cell_of
from cdc_lib.verify.comparability import subject_of
from cdc_lib.verify.lake_reader import ranges_of
from demo.shop import seed
from spark_jobs.merging.checksums import ranged
from tests.harness.binlog.lax_session import lax
from tests.harness.lake.verify import Compared
from tests.harness.shop.source import Shop
from tests.integration.drain.test_drain_types import COLUMNS


@pytest.fixture
def source(any_server, database, tmp_path, lake):
    return Compared(any_server, database, tmp_path, lake)


def test_a_table_with_every_type_is_equal_and_one_changed_cell_of_each_type_is_found(source):
    """Each is reported with column and key, and nothing else is reported, whether Spark reads the lake or this process does."""
    declared = ", ".join(f"{name} {kind}" for name, (kind, _) in COLUMNS.items())
    source.execute(f"CREATE TABLE a (id INT PRIMARY KEY, {declared})")
    rows = len(COLUMNS)
    values = [", ".join(cells[i] for _, cells in COLUMNS.values()) for i in (0, 1)]
    for number in range(1, 2 * rows + 1):
        source.execute(f"INSERT INTO a VALUES ({number}, {values[number > rows]})")
    source.execute(f"INSERT INTO a (id) VALUES ({2 * rows + 1})")
    source.round()
    report = source.table("a", chunk_rows=20)
    assert (report.skipped, report.rows, report.unequal_ranges, report.uncompared) == ("", (), 0, ())
    assert (report.source_rows, report.lake_rows) == (2 * rows + 1, 2 * rows + 1)
    assert report.ranges == (2 * rows + 1) // 20 + 1

    source.unlogged(
        *(f"UPDATE a SET {name} = {two} WHERE id = {i}" for i, (name, (_, (_, two))) in enumerate(COLUMNS.items(), 1))
    )
    report = source.table("a", chunk_rows=20)
    assert source.unread == {}
    assert comparable(source.table("a", chunk_rows=20, spark=True)) == comparable(report)
    assert {(row.key["id"], *(cell.column for cell in row.cells)) for row in report.rows} == {
        (str(i), name) for i, name in enumerate(COLUMNS, 1)
    }
    assert (report.different, report.missing, report.extra, report.in_flight, report.unexamined) == (rows, 0, 0, 0, 0)


def test_the_shop_is_equal(source):
    """All of its tables, one without a key, some with composite keys."""
    with source.server.connect() as connection:
        connection.cursor().execute(f"USE {source.database}")
        for statement in seed.TABLES.values():
            connection.cursor().execute(statement)
        seed.fill(connection, 3000)
    source.round()
    report = source.report(chunk_rows=100)
    assert [
        (one.table, one.rows, one.skipped, one.unequal_ranges)
        for one in report.tables
        if not one.clean or one.unequal_ranges
    ] == []
    assert len(report.tables) == len(seed.TABLES)
    assert sum(one.source_rows for one in report.tables) > 2900


def comparable(report):
    """The report without its time."""
    return replace(report, seconds=0)


@pytest.mark.parametrize("unsigned", [False, True])
@pytest.mark.parametrize("count", [0, 1, 3, 4, 100])
def test_the_range_of_a_row_is_how_many_cuts_are_less_than_its_key(spark_lake, count, unsigned):
    """At the cuts, next to them, and at the ends of the type's range."""
    spark, _ = spark_lake
    least, most = (0, 2**64 - 1) if unsigned else (-(2**63), 2**63 - 1)
    random = Random(count)
    cuts = tuple(sorted([most, *(random.randint(least, most) for _ in range(count))])[-count:] if count else ())
    keys = sorted({max(least, min(most, key + by)) for key in (least, 0, most, *cuts) for by in (-1, 0, 1)})
    kind = SourceType("int", width=8, unsigned=unsigned)
    schema = TableSchema("shop", "orders", (Column("id", kind, nullable=False),), ("id",))
    lake, target = LakeName("lake", ("shop",), "orders"), Target("shop", "orders")
    subject = subject_of(schema, whole(schema), target, lake, None, {}, ValuePolicy())
    rows = spark.createDataFrame([(str(key),) for key in keys], "key string")
    rows_with_range = ranged(rows.selectExpr(f"CAST(key AS {kind.lake_type}) AS __first"), subject, cuts)
    expected = [bisect_left(cuts, key) for key in keys]
    assert [(int(row["__first"]), row["__range"]) for row in rows_with_range.sort("__first").collect()] == list(
        zip(keys, expected, strict=True)
    )
    first = pa.chunked_array([pa.array(map(Decimal, keys), pa.decimal128(20, 0)) if unsigned else keys])
    assert ranges_of(first, cuts).tolist() == expected


TABLES = {
    "tenants": ("t INT, id INT, v VARCHAR(9), PRIMARY KEY (t, id)", "({n} DIV 20, {n}, 'v{n}')"),
    "texts": ("k VARCHAR(9) CHARACTER SET latin1 PRIMARY KEY, v INT", "('É{n}', {n})"),
    "bytes": ("k VARBINARY(9) PRIMARY KEY, v DOUBLE", "(CHAR({n}, 0), {n} / 3e0)"),
    "days": ("d DATE PRIMARY KEY, v INT", "('2024-02-01' + INTERVAL {n} DAY, NULL)"),
    "list": ("a INT, f FLOAT, v VARCHAR(9)", "({n} DIV 4, 0.5, NULL)"),
}


CHANGES = (
    "DELETE FROM tenants WHERE id = 25", "UPDATE tenants SET v = 'x' WHERE id IN (30, 31)",
    "INSERT INTO tenants VALUES (1, 1000, 'new')",
    "DELETE FROM texts WHERE v = 7", "INSERT INTO texts VALUES ('Ünew', 1)", "UPDATE texts SET v = NULL WHERE v = 9",
    "UPDATE texts SET k = 'é11' WHERE v = 11",
    "UPDATE bytes SET v = -v WHERE k = CHAR(35, 0)", "DELETE FROM bytes WHERE k = CHAR(1, 0)",
    "UPDATE days SET v = 0 WHERE d = '2024-02-29'", "INSERT INTO days VALUES ('1999-12-31', 1)",
)  # fmt: skip
"""Statements that change, add and delete rows of the tables with a key."""


def filled(source, *names):
    """One table for each kind of key, one without a key, and an empty one."""
    for name, (declared, values) in TABLES.items():
        if names and name not in names:
            continue
        source.execute(f"CREATE TABLE {name} ({declared})")
        rows = ", ".join(values.format(n=n) for n in range(1, 61))
        source.execute(f"INSERT INTO {name} VALUES {rows}")
    source.execute("CREATE TABLE nothing (id INT PRIMARY KEY)")
    source.round()


def differences(report):
    return {
        one.table.partition(".")[2]: sorted(
            (row.kind, *row.key.values(), *(c.column for c in row.cells)) for row in one.rows
        )
        for one in report.tables
        if one.rows
    }


def test_missing_extra_and_different_rows_are_found_with_every_kind_of_key(source):
    """Changes of the source that are not in the binlog; with many small ranges."""
    filled(source)
    assert source.report(chunk_rows=7).clean
    source.unlogged(
        *CHANGES,
        "DELETE FROM list WHERE a = 3 LIMIT 2", "INSERT INTO list VALUES (99, 0.5, ''), (98, 0.25, 'x'), (98, 0.25, 'x')",
    )  # fmt: skip
    report = source.report(chunk_rows=7)
    assert source.unread == {}
    assert list(map(comparable, source.report(chunk_rows=7, spark=True).tables)) == list(map(comparable, report.tables))
    assert differences(report) == {
        "tenants": [("different", "1", "30", "v"), ("different", "1", "31", "v"), ("extra", "1", "25"), ("missing", "1", "1000")],
        "texts": [("different", "É9", "v"), ("extra", "É11"), ("extra", "É7"), ("missing", "Ünew"), ("missing", "é11")],
        "bytes": [("different", "2300", "v"), ("extra", "0100")],
        "days": [("different", "2024-02-29", "v"), ("missing", "1999-12-31")],
        "list": sorted(
            [("copies", "3", "0.5", None), ("missing", "99", "0.5", ""), ("missing", "98", "0.25", "x")], key=lambda row: row[:3]
        ),
    }  # fmt: skip
    by_name = {one.table.partition(".")[2]: one for one in report.tables}
    assert (by_name["list"].extra, by_name["list"].missing) == (2, 3)
    (changed,) = [cell for row in by_name["bytes"].rows for cell in row.cells]
    assert (changed.source, changed.lake) == (repr(-35 / 3), repr(35 / 3))
    assert not report.clean
    kept = {one.table: one for one in status_of(source.capture.pipeline).verified}
    assert {name for name, one in kept.items() if not one.clean} == {f"{source.database}.{name}" for name in TABLES}
    one = kept[f"{source.database}.list"]
    assert one.clean_at is not None
    assert one.clean_at < one.at


ALIKE = {
    "error value": ("ENUM('a', '')", "''", "0"),
    "declared twice": ("ENUM('b', 'a', 'a')", "'a'", "3"),
    "set": ("SET('a', '')", "0", "2"),
    "second code": ("VARCHAR(9) CHARACTER SET cp932 COLLATE cp932_bin", "X'81BE'", "X'879C'"),
}


@pytest.mark.parametrize("spark", [False, True], ids=["arrow", "spark"])
def test_two_keys_of_the_source_that_are_one_row_of_the_lake_are_found(source, spark):
    """SELECT shows them alike, and an earlier version merged them; a key with as many rows on both sides is equal."""
    for number, (declared, one, _) in enumerate(ALIKE.values()):
        lax(source, f"CREATE TABLE t{number} (id INT, k {declared}, v INT, PRIMARY KEY (k, id))")
        lax(source, f"INSERT INTO t{number} VALUES (1, {one}, 7), (2, {one}, 7)")
    source.round()
    assert source.report(spark=spark).clean
    source.unlogged(
        "SET sql_mode = ''", *(f"INSERT INTO t{n} VALUES (1, {two}, 7)" for n, (_, _, two) in enumerate(ALIKE.values()))
    )
    for number, (_, one, _) in enumerate(ALIKE.values()):
        (shown,), *_ = source.execute(f"SELECT k FROM t{number} WHERE k = {one}")
        found = source.table(f"t{number}", spark=spark)
        assert [(row.kind, row.key, row.source_copies, row.lake_copies) for row in found.rows] == [
            ("copies", {"k": str(shown), "id": "1"}, 2, 1)
        ]
        assert (found.clean, found.missing, found.in_flight) == (False, 1, 0)
    repaired = source.table("t0", repair=True)
    assert (repaired.clean, repaired.missing, repaired.repaired) == (False, 1, 0)


@pytest.mark.parametrize("spark", [False, True], ids=["arrow", "spark"])
def test_a_key_that_is_null_in_the_lake_is_not_the_empty_text(any_server, database, tmp_path, lake, spark):
    """Only mirror and soft_delete tables require their keys."""
    source = Compared(any_server, database, tmp_path, lake, modes=[{"tables": f"{database}.*", "mode": "scd2"}])
    source.execute("CREATE TABLE alone (k ENUM('a', '') PRIMARY KEY)")
    source.execute("CREATE TABLE beside (k ENUM('a', '') PRIMARY KEY, v INT)")
    source.execute("INSERT INTO alone VALUES (''), ('a')")
    source.execute("INSERT INTO beside VALUES ('', 1), ('a', 1)")
    source.round()
    for table in ("alone", "beside"):
        source.unlogged("SET sql_mode = ''", f"UPDATE {table} SET k = 0 WHERE k = 'a'")
        source.lake.spark.sql(f"UPDATE lake.{database}.{table} SET k = NULL WHERE k = 'a'")
        found = source.table(table, spark=spark)
        assert ("copies", "", 2, 1) in [
            (row.kind, row.key["k"], row.source_copies, row.lake_copies) for row in found.rows
        ]


def test_rows_of_a_table_that_was_made_again_without_the_binlog_are_found(source):
    """Nothing at a server tells such a table from one that an unlogged ALTER rebuilt."""
    made = "CREATE TABLE t (id INT PRIMARY KEY, v INT)"
    source.execute(made)
    source.execute("INSERT INTO t VALUES (1, 1), (2, 2)")
    source.round()
    source.unlogged("DROP TABLE t", made)
    source.execute("INSERT INTO t VALUES (2, 3)")
    source.round()
    found = source.table("t")
    assert ([(row.kind, row.key) for row in found.rows], found.in_flight) == ([("extra", {"id": "1"})], 0)
    assert source.table("t", repair=True).repaired == 1
    assert source.table("t").clean


def test_rows_that_the_lake_has_not_merged_are_in_flight_and_no_drift(source):
    """Until the lake has merged them; then a wrong row is reported."""
    filled(source, "tenants", "texts", "list")
    source.execute("UPDATE tenants SET v = 'later' WHERE id = 3")
    source.execute("DELETE FROM texts WHERE v = 3")
    source.execute("INSERT INTO tenants VALUES (9, 9, 'new')")
    source.execute("INSERT INTO list VALUES (3, 0.5, NULL)")
    report = source.report(chunk_rows=30)
    assert report.clean
    assert {one.table.partition(".")[2]: one.in_flight for one in report.tables if one.in_flight} == {
        "tenants": 2, "texts": 1, "list": 1,
    }  # fmt: skip
    source.unlogged("UPDATE tenants SET v = 'wrong' WHERE id = 4")
    report = source.table("tenants")
    assert (report.drift, report.in_flight) == (0, 3)
    source.round()
    report = source.report(chunk_rows=30)
    assert differences(report) == {"tenants": [("different", "0", "4", "v")]}
    assert not any(one.in_flight for one in report.tables)


def test_no_range_differs_because_of_rows_that_a_merge_only_marked_as_deleted(source):
    """A look at a row by its key would find them equal, and so hide that the checksums count them."""
    filled(source, "tenants")
    source.execute("UPDATE tenants SET v = 'later' WHERE id < 9")
    source.execute("DELETE FROM tenants WHERE id > 50")
    source.round()
    report = source.table("tenants", chunk_rows=30)
    assert source.unread == {}
    assert (report.clean, report.unequal_ranges, report.lake_rows) == (True, 0, 50)


def test_verify_waits_for_rows_until_the_lake_has_them(source):
    """A merge during the wait resolves the rows in flight, and shows the wrong rows."""
    filled(source, "tenants")
    source.execute("UPDATE tenants SET v = 'later' WHERE id = 3")
    source.unlogged("DELETE FROM tenants WHERE id = 5")
    rounds = []

    def merge_meanwhile(_seconds):
        if not rounds:
            rounds.append(source.round())

    report = source.table("tenants", sleep=merge_meanwhile, wait=timedelta(minutes=5))
    assert rounds == [None]
    assert (report.different, report.extra, report.in_flight) == (0, 1, 0)


def test_tables_and_columns_that_are_not_compared_are_reported_with_the_reason(any_server, database, tmp_path, lake):
    """Excluded or masked columns, tables with a filter, tables that share a lake table."""
    source = Compared(
        any_server, database, tmp_path, lake, mask_key_env="UNUSED",
        columns=[{"tables": "*.shaped", "exclude": ["secret"]}],
        masks=[{"tables": "*.shaped", "columns": ["mail"], "mask": "redact"}],
        filters=[{"tables": "*.filtered", "where": "id > 1"}],
        routes=[
            {"tables": "*.shard_*", "into": f"{database}.mixed"},
            {"tables": "*.part_*", "into": f"{database}.parts", "keys": ["table"]},
        ],
    )  # fmt: skip
    source.execute("CREATE TABLE shaped (id INT PRIMARY KEY, secret INT, mail TEXT, v INT)")
    source.execute("INSERT INTO shaped VALUES (1, 2, 'a@b', 3)")
    for name in ("filtered", "shard_1", "shard_2", "part_1", "part_2"):
        source.execute(f"CREATE TABLE {name} (id INT PRIMARY KEY, v INT)")
        source.execute(f"INSERT INTO {name} VALUES ({1 + (name == 'shard_2')}, 1), ({3 + (name == 'shard_2')}, 1)")
    source.round()
    source.unlogged("UPDATE shaped SET secret = 0, mail = ''", "UPDATE part_2 SET v = 9 WHERE id = 1")
    found = {one.table.partition(".")[2]: one for one in source.report().tables}
    assert {column.column for column in found["shaped"].uncompared} == {"secret", "mail"}
    assert found["shaped"].clean
    assert {name for name, one in found.items() if one.skipped} == {"filtered", "shard_1", "shard_2"}
    assert [(row.kind, dict(row.key)) for row in found["part_2"].rows] == [("different", {"id": "1"})]
    assert found["part_1"].clean


def test_a_repair_makes_the_lake_equal_to_its_source(source):
    """Missing, extra and different rows; later changes are merged as usual."""
    filled(source, "tenants", "texts", "list")
    source.unlogged(
        "DELETE FROM tenants WHERE id = 25", "UPDATE tenants SET v = 'x' WHERE id IN (30, 31)",
        "INSERT INTO tenants VALUES (1, 1000, 'new')",
        "DELETE FROM texts WHERE v = 7", "UPDATE texts SET k = 'é11' WHERE v = 11",
        "INSERT INTO list VALUES (99, 0.5, '')",
    )  # fmt: skip
    source.execute("UPDATE tenants SET v = 'later' WHERE id = 40")
    source.execute("ALTER TABLE tenants ADD COLUMN added INT DEFAULT 7")  # the lake gets the column with its first row
    source.round()
    report = source.report(chunk_rows=7, repair=True)
    found = {one.table.partition(".")[2]: one for one in report.tables}
    assert {name: one.repaired for name, one in found.items() if one.repaired} == {"tenants": 4, "texts": 3}
    assert [(name, one.drift, one.refused) for name, one in found.items() if one.drift] == [
        ("list", 1, f"the table has no key: cdc snapshot shop {source.database}.list reads it again")
    ]
    assert source.table("tenants").clean
    source.execute("UPDATE tenants SET v = 'last' WHERE id = 30")
    source.execute("DELETE FROM tenants WHERE id = 1000")
    source.execute("INSERT INTO tenants VALUES (1, 25, 'back', NULL)")
    source.round()
    for name, rows in (("tenants", 60), ("texts", 59)):
        again = source.table(name)
        assert (again.clean, again.unequal_ranges, again.source_rows) == (True, 0, rows)


def test_a_command_starts_spark_only_for_what_needs_it(mysql_server, mysql_database, tmp_path, lake, monkeypatch):
    """A repair of wrong rows, changes of keys that are all kept, a lake that nothing else opens, and when it is told to."""
    shop = Shop.on_running_spark(mysql_server, mysql_database, tmp_path, lake, monkeypatch)
    jobs, run_job = [], cli_job.run_job

    def noted(job, loaded, *arguments, **options):
        jobs.append((job, *arguments))
        run_job(job, loaded, *arguments, **options)

    monkeypatch.setattr(cli_job, "run_job", noted)
    lines, orders = f"{mysql_database}.lines", f"{mysql_database}.orders"
    shop.write(start="snapshot", modes=[{"tables": lines, "mode": "append"}])
    shop.runs()
    jobs.clear()
    assert "same" in shop.cdc("cdc verify shop shop.orders --repair")
    assert jobs == []
    said = shop.cdc("cdc verify shop --statement-delay 1ms")
    assert f"{lines}: read with Spark: every change is kept (append)" in said
    assert (said.count("same"), jobs) == (2, [("verify", "--statement-delay=1ms", "--", lines)])
    with shop.server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_log_bin = 0")
        cursor.execute(f"DELETE FROM {orders} WHERE id = 3")
        connection.commit()
    jobs.clear()
    shop.cdc("cdc verify shop shop.orders", 1)
    assert jobs == []
    assert "1 repaired" in shop.cdc("cdc verify shop shop.orders --repair")
    assert shop.rows("orders") == shop.source_rows("orders")
    shop.cdc("cdc verify shop shop.orders --spark")
    assert jobs == [("verify", "--repair", "--", orders), ("verify", "--", orders)]
    plain = {"catalog": "plain", "type": "hadoop", "warehouse": f"file://{tmp_path}/plain"}
    shop.write(lake=plain)
    said = shop.cdc("cdc verify shop shop.orders", 1)
    assert "the lake is read with Spark: a lake of type hadoop cannot be read without Spark" in said
    assert jobs.pop() == ("verify", "--", orders)
    shop.write(lake={**plain, "type": "jdbc", "uri": "jdbc:sqlite:/nowhere/catalog.db"})
    assert "error: there is no lake yet" in shop.cdc("cdc verify shop shop.orders", 2)
    assert len(jobs) == 2


LAKE_TYPES = (
    "boolean", "int", "bigint", "decimal(20,0)", "decimal(5,2)", "float", "double", "string", "binary", "date", "timestamp", "timestamp_ntz",
)  # fmt: skip


@pytest.mark.parametrize("lake_type", LAKE_TYPES)
def test_a_lake_column_of_any_type_can_be_compared_with_a_source_column_of_any_other(spark_lake, lake_type):
    """Where a table is still to follow its source, verify shows other values: Spark refuses none of its statements."""
    spark, _ = spark_lake
    sources = [SourceType(kind, width=4, precision=9, scale=2) for kind in get_args(Kind) if kind != "unsupported"]
    cells = [cell_of(Column("c", source), lake_type, ValuePolicy()).lake for source in sources]
    spark.sql(f"SELECT {', '.join(cells)} FROM (SELECT CAST(NULL AS {lake_type}) AS c)").collect()


def test_a_number_is_compared_with_a_date_that_the_lake_still_has(spark_lake):
    spark, _ = spark_lake
    cell = cell_of(Column("c", SourceType("decimal", precision=9, scale=2)), "date", ValuePolicy())
    assert spark.sql(f"SELECT {cell.lake} AS v FROM (SELECT DATE '2024-01-01' AS c)").first().v is None
