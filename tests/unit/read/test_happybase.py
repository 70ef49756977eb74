"""Programs for happybase read lake tables: the calls of its user guide, and what they return."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from cdc_lib.config import load_source
from cdc_lib.errors import ConfigError
from cdc_lib.read import happybase
from tests.harness.lake.archived_source import Source, time, with_every_kind
from tests.harness.lake.small_lake import SmallLake, row

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
SOURCE = """
server: {{host: 127.0.0.1, user: cdc, password_env: SHOP_PASSWORD}}
tables: ["shop.*"]
store: {{url: "file://{folder}/store"}}
lake: {{type: jdbc, uri: "jdbc:sqlite:{folder}/cat.db", warehouse: "file://{folder}/lake"}}
"""


@pytest.fixture
def connection(tmp_path):
    """A table with a key of two columns, and one of changes whose key is a text."""
    file = tmp_path / "shop.yaml"
    file.write_text(SOURCE.format(folder=tmp_path))
    (tmp_path / "cat.db").touch()
    lake = SmallLake(load_source(file))
    rows = [row("de", 2, "zwei"), row("de", 10, "zehn"), row("at", 5, "größer"), row("de", 1, None)]
    orders = lake.make("orders", rows)
    words = [row("b", 1, "old", 5), row("b", 2, "new", 9), row("ab", 1, "x"), row("a", 1, "y")]
    changes = lake.make("changes", words, "append", key=("country",))
    lake.cut(1, NOON, orders, changes)
    lake.add(orders, [row("fr", 1, "after the cut")])
    lake.catalog.close()
    with happybase.Connection(file) as connection:
        yield connection


@pytest.fixture
def table(connection):
    return connection.table("shop.orders")


def test_tables_are_listed_and_opened(connection):
    assert sorted(connection.tables()) == [b"shop.changes", b"shop.orders"]
    assert connection.table(b"shop.orders").name == b"shop.orders"
    assert set(connection.table("shop.orders").families()) == {b"d:", b"cdc:"}


def test_a_row_is_a_dict_of_cells(table):
    """NULL has no cell; bytes are as they are; a missing row is empty; the cut does not have later rows."""
    found = table.row(b'["de",2]')
    assert found[b"d:name"] == b"zwei"
    assert found[b"d:id"] == b"2"
    assert found[b"d:raw"] == b"\x00\xff"
    assert found[b"cdc:offset"] == b"1"
    assert table.row(b'["at",5]', columns=[b"d:name"]) == {b"d:name": "größer".encode()}
    assert b"d:name" not in table.row(b'["de",1]')
    assert set(table.row(b'["de",2]', columns=[b"d"])) == {b"d:country", b"d:id", b"d:name", b"d:raw"}
    assert table.row(b'["de",3]') == table.row(b'["fr",1]') == {}
    assert table.row(b'["de",2]', columns=[b"d:id"], include_timestamp=True) == {b"d:id": (b"2", 0)}


def test_many_rows_come_in_the_order_of_the_keys(table):
    rows = dict(table.rows([b'["de",2]', b'["de",3]', b'["at",5]'], columns=[b"d:name"]))
    assert rows == {b'["de",2]': {b"d:name": b"zwei"}, b'["at",5]': {b"d:name": "größer".encode()}}


def test_a_scan_is_in_the_order_of_the_lake(table):
    """Numbers by value; a stop is not included, also in reverse."""

    def keys(**arguments):
        return [key for key, _ in table.scan(columns=[b"d:id"], **arguments)]

    every = [b'["at",5]', b'["de",1]', b'["de",2]', b'["de",10]']
    assert keys() == every
    assert keys(limit=2) == every[:2]
    assert keys(reverse=True) == every[::-1]
    assert keys(row_start=b'["de",2]') == every[2:]
    assert keys(row_start=b'["at",5]', row_stop=b'["de",2]') == every[:2]
    assert keys(row_prefix=b'["de"]') == every[1:]
    assert keys(row_start=b'["de",10]', row_stop=b'["de",1]', reverse=True) == [every[3], every[2]]
    assert list(dict(table.scan(sorted_columns=True))[every[0]]) == sorted(table.row(every[0]))
    assert keys(timestamp=0) == []


def test_versions_of_a_cell_are_newest_first(connection):
    table = connection.table("shop.changes")
    assert table.cells(b"b", b"d:name") == [b"new", b"old"]
    assert table.cells(b"b", b"d:name", versions=1, include_timestamp=True) == [
        (b"new", int(time(9).timestamp() * 1000))
    ]
    assert table.row(b"b", [b"d:name"]) == {b"d:name": b"new"}
    assert [key for key, _ in table.scan(row_prefix=b"a")] == [b"a", b"ab"]


def test_versions_of_a_mirror_are_those_that_batches_have(tmp_path):
    """Deletes have no cells, and a row as of a time between a delete and an insert is empty."""
    file = tmp_path / "shop.yaml"
    file.write_text(SOURCE.format(folder=tmp_path))
    (tmp_path / "cat.db").touch()
    source = Source(tmp_path, load_source(file))
    with_every_kind(source)
    source.lake.cut(2, NOON, source.table)
    with happybase.Connection(file) as connection:
        table, key = connection.table("shop.people"), b'["de",1]'
        times = {offset: int(time(offset).timestamp() * 1000) for offset in (50, 110, 120, 130)}
        assert table.cells(key, b"d:name", include_timestamp=True) == [
            (b"new", times[130]),
            (b"updated", times[110]),
            (b"read", times[50]),
        ]
        assert table.cells(key, b"d:name", versions=2, timestamp=times[130]) == [b"updated", b"read"]
        as_of = {offset: table.row(key, [b"d:name"], timestamp=at) for offset, at in times.items()}
        assert as_of == {50: {}, 110: {b"d:name": b"read"}, 120: {b"d:name": b"updated"}, 130: {}}
        assert table.row(key, [b"d:name"]) == {b"d:name": b"new"}
        assert table.families()[b"d:"]["max_versions"] is None
        for limit in range(1, 5):
            found = [row.cells[b"d:name"] for row in table._cells.versions(key, [b"d:name"], limit) if row.cells]
            assert found[:limit] == [b"new", b"updated", b"read"][:limit]


def test_what_cannot_be_done_says_why(connection, table):
    for write in (table.put, table.delete, table.batch, table.counter_inc, connection.create_table):
        with pytest.raises(ConfigError, match="can be read here, and not written"):
            write(b"row", {b"d:name": b"x"})
    with pytest.raises(ConfigError, match=r"there is no column d:nothing.*Families are d and cdc"):
        table.row(b'["de",2]', columns=[b"d:nothing"])
    with pytest.raises(ConfigError, match="key column id takes a whole number"):
        table.row(b'["de","x"]')
    with pytest.raises(ConfigError, match="the row key of the bytes ff is not UTF-8"):
        table.row(b"\xff")
    with pytest.raises(ConfigError, match="filters of HBase"):
        list(table.scan(filter="PrefixFilter('x')"))
    with pytest.raises(ConfigError, match="a prefix, or a start and a stop"):
        list(table.scan(row_start=b"a", row_prefix=b"b"))
    connection.close()
    with pytest.raises(ConfigError, match="the connection is closed"):
        connection.tables()


KEY = '["de",2]'
READS = {
    "a key as text": lambda c: c.table("shop.orders").row(KEY)[b"d:name"] == b"zwei",
    "rows": lambda c: len(c.table("shop.orders").rows([KEY, b'["at",5]'])) == 2,
    "rows as a dict": lambda c: set(dict(c.table("shop.orders").rows([KEY]))) == {KEY.encode()},
    "columns as texts": lambda c: (
        c.table("shop.orders").row(KEY, columns=["d:id", "d:name"]).keys() == {b"d:id", b"d:name"}
    ),
    "a family": lambda c: b"d:id" in c.table("shop.orders").row(KEY, columns=["d"]),
    "a timestamp": lambda c: c.table("shop.changes").row("b", timestamp=123456789) == {},
    "with timestamps": lambda c: (
        c.table("shop.orders").row(KEY, columns=["d:id"], include_timestamp=True) == {b"d:id": (b"2", 0)}
    ),
    "cells": lambda c: c.table("shop.changes").cells("b", "d:name", versions=2) == [b"new", b"old"],
    "cells with timestamps": lambda c: (
        len(c.table("shop.changes").cells("b", "d:name", versions=3, include_timestamp=True)[0]) == 2
    ),
    "a scan": lambda c: len(list(c.table("shop.orders").scan())) == 4,
    "a scan from a row": lambda c: len(list(c.table("shop.changes").scan(row_start="b"))) == 2,
    "a scan to a row": lambda c: len(list(c.table("shop.changes").scan(row_stop="b"))) == 2,
    "a scan between rows": lambda c: len(list(c.table("shop.changes").scan(row_start="a", row_stop="b"))) == 2,
    "a scan of a prefix": lambda c: len(list(c.table("shop.changes").scan(row_prefix="a"))) == 2,
    "a scan in batches": lambda c: len(list(c.table("shop.orders").scan(batch_size=2, scan_batching=2))) == 4,
    "tables": lambda c: sorted(c.tables()) == [b"shop.changes", b"shop.orders"],
    "families": lambda c: set(c.table("shop.orders").families()) == {b"d:", b"cdc:"},
    "regions": lambda c: (
        [(one["start_key"], one["end_key"]) for one in c.table("shop.orders").regions()] == [(b"", b"")]
    ),
    "is_table_enabled": lambda c: c.is_table_enabled("shop.orders"),
}
"""Calls of happybase's user guide that read."""


@pytest.mark.parametrize("name", READS)
def test_a_call_of_the_user_guide_reads(connection, name):
    """Row keys and columns are bytes or text."""
    assert READS[name](connection)


REFUSED = {
    "create_table": lambda c: c.create_table("mytable", {"cf1": {"max_versions": 10}, "cf2": {}}),
    "delete_table": lambda c: c.delete_table("mytable", disable=True),
    "enable_table": lambda c: c.enable_table("mytable"),
    "disable_table": lambda c: c.disable_table("mytable"),
    "compact_table": lambda c: c.compact_table("mytable", major=True),
    "put": lambda c: c.table("shop.orders").put(b"row-key", {b"cf:col1": b"value1"}, timestamp=123456789),
    "delete": lambda c: c.table("shop.orders").delete(b"row-key", columns=[b"cf1:col1"]),
    "batch": lambda c: c.table("shop.orders").batch(batch_size=1000, transaction=True),
    "counter_inc": lambda c: c.table("shop.orders").counter_inc(b"row-key", b"cf1:counter", value=3),
    "counter_dec": lambda c: c.table("shop.orders").counter_dec(b"row-key", b"cf1:counter"),
    "counter_get": lambda c: c.table("shop.orders").counter_get(b"row-key", b"cf1:counter"),
    "counter_set": lambda c: c.table("shop.orders").counter_set(b"row-key", b"cf1:counter", 12),
    "a filter": lambda c: list(c.table("shop.orders").scan(filter=b"SomeFilter()")),
    "columns as one text": lambda c: c.table("shop.orders").row(KEY, columns="d:id"),
    "a table that is not there": lambda c: c.is_table_enabled("mytable"),
    "a key that is not there": lambda c: c.table("shop.orders").row("row-key"),
}
"""Calls of happybase's user guide that are refused."""


@pytest.mark.parametrize("name", REFUSED)
def test_a_call_of_the_user_guide_is_refused_in_words(connection, name):
    """No message shows bytes as Python writes them."""
    with pytest.raises(ConfigError) as caught:
        REFUSED[name](connection)
    assert "b'" not in str(caught.value)


def test_a_connection_takes_the_arguments_of_happybase(connection, tmp_path):
    """Those about a network have no effect; a prefix is before the names of all tables."""
    arguments = {"port": 9090, "timeout": 100, "compat": "0.98", "transport": "framed", "protocol": "compact"}
    file = str(tmp_path / "shop.yaml")
    with happybase.Connection(file, table_prefix="shop", table_prefix_separator=b".", **arguments) as prefixed:
        assert sorted(prefixed.tables()) == [b"changes", b"orders"]
        assert prefixed.table("orders").row(KEY)[b"d:name"] == b"zwei"
        assert prefixed.table("shop.orders", use_prefix=False).name == b"shop.orders"
    with happybase.Connection(file, table_prefix="other") as other:
        assert other.tables() == []
    with pytest.raises(ConfigError, match="somehost"):
        happybase.Connection("somehost")


def test_a_pool_gives_each_block_a_connection_of_its_own(connection, tmp_path):
    pool = happybase.ConnectionPool(size=2, host=str(tmp_path / "shop.yaml"))
    with pool.connection() as first, pool.connection() as second:
        assert first is not second
        assert first.table("shop.orders").row(KEY) == second.table("shop.orders").row(KEY) != {}
        with pytest.raises(happybase.NoConnectionsAvailable), pool.connection(timeout=0.01):
            pass
    with pool.connection(timeout=0.01) as again:
        assert again.tables()
    with pytest.raises(ConfigError, match="at least one connection"):
        happybase.ConnectionPool(size=0, host=str(tmp_path / "shop.yaml"))
