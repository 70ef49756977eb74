"""Programs for happybase read lake tables: the calls of its user guide, and what they return."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from cdc_lib.config import load_source
from cdc_lib.errors import ConfigError
from cdc_lib.read import happybase
from tests.harness.archived_source import Source, time, with_every_kind
from tests.harness.small_lake import SmallLake, row

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
    with pytest.raises(ConfigError, match=r"there is no column b'd:nothing'.*Families are d and cdc"):
        table.row(b'["de",2]', columns=[b"d:nothing"])
    with pytest.raises(ConfigError, match="key column id takes a whole number"):
        table.row(b'["de","x"]')
    with pytest.raises(ConfigError, match="is not UTF-8"):
        table.row(b"\xff")
    with pytest.raises(ConfigError, match="filters of HBase"):
        list(table.scan(filter="PrefixFilter('x')"))
    with pytest.raises(ConfigError, match="a prefix, or a start and a stop"):
        list(table.scan(row_start=b"a", row_prefix=b"b"))
    connection.close()
    with pytest.raises(ConfigError, match="the connection is closed"):
        connection.tables()
