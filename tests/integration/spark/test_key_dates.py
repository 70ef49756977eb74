"""Dates of a key that no date type holds: each row of the source is one row of the lake, with what SELECT shows."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.harness.binlog.lax_session import lax
from tests.harness.lake.verify import Compared

DAYS = ("0000-00-00", "2024-01-01")
SNAPSHOT = (
    "CREATE TABLE two (d DATE PRIMARY KEY, v INT)",
    "INSERT INTO two VALUES ('0000-00-00', 1), ('2024-00-10', 2)",
    "CREATE TABLE many (id INT, d DATETIME NOT NULL DEFAULT '0000-00-00 00:00:00', v INT, PRIMARY KEY (id, d))",
    f"INSERT INTO many (id, d, v) VALUES {', '.join(f'({n}, {DAYS[n % 3 == 0]!r}, {n})' for n in range(1, 901))}",
)


@pytest.fixture
def source(any_server, database, tmp_path, lake):
    return Compared(any_server, database, tmp_path, lake, on_error="quarantine")


def shown(source, table):
    """The rows of the source, in the order of the key, as SELECT shows them."""
    columns = {"two": "CAST(d AS CHAR), v", "many": "id, CAST(d AS CHAR), v"}[table]
    return sorted(map(tuple, source.execute(f"SELECT {columns} FROM {table}")))


def held(source, table):
    """The rows of the lake."""
    columns = {"two": "CAST(d AS STRING), v", "many": "id, CAST(d AS STRING), v"}[table]
    return sorted(map(tuple, source.lake.spark.sql(f"SELECT {columns} FROM lake.{source.database}.{table}").collect()))


def test_rows_with_invalid_dates_in_their_keys_are_as_select_shows_them_after_each_run(source):
    """The snapshot, then many changes, then few."""
    lax(source, *SNAPSHOT)
    source.round()
    assert (held(source, "two"), held(source, "many")) == (shown(source, "two"), shown(source, "many"))
    lax(source, "UPDATE many SET v = v + 100000", "DELETE FROM many WHERE id < 100")
    source.round()
    assert held(source, "many") == shown(source, "many")
    lax(source, "UPDATE two SET v = v + 10")
    source.round()
    assert held(source, "two") == shown(source, "two")
    assert [(one.clean, one.skipped) for one in source.report().tables] == [(True, "")] * 2


def test_a_key_may_be_a_date_of_the_year_0(source):
    """Which Iceberg's dates hold, and Python's do not; by the snapshot, then by few changes."""
    lax(
        source,
        "CREATE TABLE two (d DATE PRIMARY KEY, v INT)",
        "INSERT INTO two VALUES ('0000-01-01', 1), ('0000-12-31', 2), ('2024-01-02', 3)",
    )
    source.round()
    lax(source, "UPDATE two SET v = v + 10", "DELETE FROM two WHERE v = 12", "INSERT INTO two VALUES ('0000-02-03', 4)")
    source.round()
    assert held(source, "two") == shown(source, "two")
    assert [(one.clean, one.skipped) for one in source.report().tables] == [(True, "")]


def test_a_lake_table_with_dates_in_its_key_becomes_one_with_texts_at_the_first_invalid_date(source):
    """Without a person: a new snapshot replaces the lake table, and the other table is never late."""
    lax(
        source,
        "CREATE TABLE two (d DATE PRIMARY KEY, v INT)",
        "CREATE TABLE many (id INT, d DATETIME, v INT, PRIMARY KEY (id, d))",
        "INSERT INTO two VALUES ('2024-01-01', 1), ('2024-01-02', 2)",
        "INSERT INTO many VALUES (1, '2024-01-01', 1)",
    )
    source.round()
    lax(source, "INSERT INTO two VALUES (0, 0), ('2024-00-10', 3)", "INSERT INTO many VALUES (2, '2024-01-02', 2)")
    source.round()
    assert held(source, "many") == shown(source, "many")
    for _ in range(3):
        source.round()
    assert held(source, "two") == shown(source, "two")
    lax(source, "UPDATE two SET v = v + 10", "DELETE FROM two WHERE d = '2024-01-01'")
    source.round()
    assert held(source, "two") == shown(source, "two")
    assert [(one.clean, one.skipped) for one in source.report().tables] == [(True, "")] * 2


@pytest.mark.parametrize("spark", [False, True], ids=["arrow", "spark"])
def test_a_row_whose_key_an_earlier_version_made_null_is_found_at_once(source, spark):
    """With its key at the source, and without waiting for rows in flight."""
    lax(
        source,
        "CREATE TABLE two (d DATE PRIMARY KEY, v INT)",
        "CREATE TABLE many (id INT, d DATETIME, v INT, PRIMARY KEY (id, d))",
        "INSERT INTO two VALUES ('2024-01-01', 1), ('2024-01-02', 2)",
        "INSERT INTO many VALUES (1, '2024-01-01', 1), (2, '2024-01-02', 2)",
    )
    source.round()
    for table, key in (("two", {}), ("many", {"id": "1"})):
        source.unlogged("SET sql_mode = ''", f"UPDATE {table} SET d = 0 WHERE v = 1")
        source.lake.spark.sql(f"UPDATE lake.{source.database}.{table} SET d = NULL WHERE v = 1")
        waited = []
        found = source.table(table, wait=timedelta(minutes=1), sleep=waited.append, spark=spark)
        zero = str(source.execute(f"SELECT CAST(d AS CHAR) FROM {table} WHERE v = 1")[0][0])
        assert [(row.kind, row.key) for row in found.rows] == [
            ("missing", {**key, "d": zero}),
            ("extra", {**key, "d": None}),
        ]
        assert (found.skipped, found.in_flight, [one for one in waited if one]) == ("", 0, [])
