"""``cdc sql`` and the formats of rows: queries over tables as of one transaction."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.harness.lake.small_lake import row

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
GTID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
TOTAL = "SELECT (SELECT count(*) FROM shop.orders) AS orders, (SELECT count(*) FROM shop.items) AS items"


@pytest.fixture
def items(lake, orders):
    """A table without a key; an item is added with each order, in a merge and a cut of their own."""
    items = lake.make("items", [row("de", n, "x") for n in range(3)], "append", key=())
    for number in (1, 2):
        lake.cut(number, NOON + timedelta(hours=number), orders, items, gtid_set=f"{GTID}:1-{number}0")
        lake.add(orders, [row("fr", number, "later")])
        if number == 1:
            lake.add(items, [row("fr", number, "later")])
    return items


def test_a_query_sees_all_tables_as_of_one_transaction(cdc, items):
    """The last cut, although one of the tables is further; or the one that is asked for."""
    assert json.loads(cdc("sql", "shop", TOTAL, "--json").stdout) == [{"orders": 4, "items": 4}]
    for as_of in ("2026-01-31T13:30:00", f"{GTID}:7", "binlog.000001:150"):
        assert json.loads(cdc("sql", "shop", TOTAL, "--as-of", as_of, "--json").stdout) == [{"orders": 3, "items": 3}]
    assert json.loads(cdc("sql", "shop", TOTAL, "--as-of", f"{GTID}:11", "--json").stdout) == [
        {"orders": 4, "items": 4}
    ]


def test_the_rows_of_a_query_are_shown_as_a_table_csv_or_parquet(cdc, items):
    query = "SELECT id, name, raw, NULL AS nothing, '' AS empty FROM shop.orders WHERE country = 'de' ORDER BY id"
    assert "2 rows" in cdc("sql", "shop", query).stdout
    csv = cdc("sql", "shop", query, "--format", "csv")
    assert csv.stdout.splitlines() == ['"id","name","raw","nothing","empty"', '1,"a","00ff",,""', '2,"b","00ff",,""']
    parquet = cdc("sql", "shop", query, "--format", "parquet")
    rows = pq.read_table(pa.BufferReader(parquet.stdout_bytes)).to_pylist()
    assert [(one["id"], one["raw"]) for one in rows] == [(1, b"\x00\xff"), (2, b"\x00\xff")]
    csv = cdc("scan", "shop", "shop.orders", "--columns", "country,id", "--format", "csv")
    assert csv.stdout.splitlines() == ['"country","id"', '"at",5', '"de",1', '"de",2', '"fr",1', '"fr",2']


def test_a_query_that_is_refused_says_why(cdc, items):
    result = cdc("sql", "shop", "SELECT * FROM shop.others")
    assert result.exit_code == 2
    assert "the lake has no table shop.others" in result.stderr
    assert "The tables are shop.items, shop.orders" in result.stderr
    result = cdc("sql", "shop", "DELETE FROM shop.orders")
    assert result.exit_code == 2
    assert "the text is not one query" in result.stderr


def test_a_lake_without_a_cut_is_not_queried(cdc, orders):
    result = cdc("sql", "shop", TOTAL)
    assert result.exit_code == 2
    assert "shop has no cut yet" in result.stderr
    assert "Its first merge publishes one." in result.stderr


def test_the_changes_between_two_cuts_are_shown_by_key(cdc, items):
    """With what happened first; a table without a key has none to compare by."""
    call = ("changes", "shop", "shop.orders", "--since-cut", f"{GTID}:1")
    assert json.loads(cdc(*call, "--json").stdout) == [
        {"_change_type": "insert", "country": "fr", "id": 1, "name": "later", "raw": "00ff"}
    ]
    assert json.loads(cdc(*call, "--until-cut", f"{GTID}:1", "--json").stdout) == []
    assert "1 row\n" in cdc(*call, "--columns", "id").stdout
    result = cdc("changes", "shop", "shop.items", "--since-cut", f"{GTID}:1")
    assert result.exit_code == 2
    assert "append mode: its rows are the changes" in result.stderr
