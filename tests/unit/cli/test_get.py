"""``cdc get`` and ``cdc scan``: rows of a lake table by key, without Spark."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import BinaryType, IntegerType, LongType, NestedField, StringType

from cdc_lib.config import load_source
from cdc_lib.lake.catalog import open_catalog
from cdc_lib.model.lake_table import KEY_PROPERTY, MODE_PROPERTY
from cdc_lib.model.merge_plan import Cut, TableCut
from cdc_lib.model.table_name import TableName
from cdc_lib.store.cuts import publish
from cdc_lib.store.objects.local import LocalStore
from tests.harness.batches import at

COLUMNS = {
    "country": StringType(),
    "id": LongType(),
    "name": StringType(),
    "raw": BinaryType(),
    "_epoch": IntegerType(),
    "_binlog": IntegerType(),
    "_offset": LongType(),
    "_row": LongType(),
}
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def row(country, number, name, offset=1):
    return {"country": country, "id": number, "name": name, "raw": b"\x00\xff", "_epoch": 1, "_binlog": 1, "_offset": offset, "_row": 0}  # fmt: skip


@pytest.fixture
def make(tmp_path, sources):
    """Makes a table in a real lake in SQLite and a folder."""
    (tmp_path / "cat.db").touch()
    catalog = open_catalog(load_source(sources / "shop.yaml"))
    catalog.create_tables()
    catalog.create_namespace("shop")

    def made(name, rows, mode="mirror", key=("country", "id")):
        schema = Schema(*(NestedField(i, one, of) for i, (one, of) in enumerate(COLUMNS.items(), 1)))
        properties = {KEY_PROPERTY: json.dumps(key), MODE_PROPERTY: mode}
        table = catalog.create_table(("shop", name), schema, properties=properties)
        table.append(pa.Table.from_pylist(rows, table.schema().as_arrow()))
        return table

    yield made
    catalog.close()


@pytest.fixture
def orders(make):
    return make("orders", [row("de", 2, "b"), row("at", 5, "c"), row("de", 1, "a")])


def test_the_row_of_a_key_is_shown_column_by_column(cdc, orders):
    """Or as JSON; columns that begin with _ only if they are asked for."""
    shown = cdc("get", "shop", "shop.orders", "de", 1)
    assert shown.exit_code == 0
    assert [line.split() for line in shown.stdout.splitlines() if "name" in line] == [["│", "name", "│", "a", "│"]]
    assert json.loads(cdc("get", "shop", "shop.orders", "de", 1, "--json").stdout) == {
        "country": "de", "id": 1, "name": "a", "raw": "00ff",
    }  # fmt: skip
    assert json.loads(cdc("get", "shop", "shop.orders", "at", 5, "--json", "--all").stdout)["_offset"] == 1
    found = cdc("get", "shop", "shop.orders", "at", 5, "--json", "--columns", "name,_epoch").stdout
    assert json.loads(found) == {"name": "c", "_epoch": 1}


def test_a_key_without_a_row_exits_with_1(cdc, orders):
    result = cdc("get", "shop", "shop.orders", "de", 5)
    assert result.exit_code == 1
    assert "no row of shop.orders has the key de, 5" in result.stdout


def test_a_wrong_key_names_the_column(cdc, orders):
    result = cdc("get", "shop", "shop.orders", "de", "one")
    assert result.exit_code == 2
    assert "key column id takes a whole number, and 'one' is none" in result.stderr
    result = cdc("get", "shop", "shop.orders", "de")
    assert result.exit_code == 2
    assert "a key has 2 parts, and 1 are given" in result.stderr


def test_a_range_is_shown_in_key_order(cdc, orders):
    def keys(*options):
        rows = json.loads(cdc("scan", "shop", "shop.orders", "--json", *options).stdout)
        return [(one["country"], one["id"]) for one in rows]

    assert keys() == [("at", 5), ("de", 1), ("de", 2)]
    assert keys("--reverse", "--limit", 2) == [("de", 2), ("de", 1)]
    assert keys("--key-from", "de") == keys("--key-from", '["de", 1]', "--key-to", "de") == [("de", 1), ("de", 2)]
    assert keys("--key-to", '["de", 1]') == [("at", 5), ("de", 1)]
    assert "3 rows" in cdc("scan", "shop", "shop.orders").stdout


def test_all_changes_of_a_row_are_shown_newest_first(cdc, make):
    make("changes", [row("de", 1, "old", 5), row("de", 1, "new", 9), row("at", 1, "other")], "append")
    found = json.loads(cdc("get", "shop", "shop.changes", "de", 1, "--versions", "--json").stdout)
    assert [one["name"] for one in found] == ["new", "old"]
    assert "2 rows" in cdc("get", "shop", "shop.changes", "de", 1, "--versions").stdout
    result = cdc("get", "shop", "shop.changes", "de", 1)
    assert result.exit_code == 2
    assert "append mode, which has many rows for each key" in result.stderr


def test_a_row_is_shown_as_of_a_cut(cdc, tmp_path, orders):
    """The last one by a time."""
    store = LocalStore(tmp_path / "store")
    for number in (1, 2):
        snapshot = orders.refresh().current_snapshot().snapshot_id
        tables = (TableCut(TableName("shop", "orders"), "lake.shop.orders", snapshot, 1),)
        time = NOON + timedelta(hours=number)
        publish(store, Cut("shop", f"000001-000001.{number:012d}-abc", 1, at(100 * number), time, time, tables))
        orders.append(pa.Table.from_pylist([row("fr", number, "later")], orders.schema().as_arrow()))
    assert cdc("get", "shop", "shop.orders", "fr", 1, "--as-of", "2026-01-31T13:30:00").exit_code == 1
    assert cdc("get", "shop", "shop.orders", "fr", 1, "--as-of", "2026-01-31T14:00:00Z").exit_code == 0
    assert cdc("get", "shop", "shop.orders", "fr", 2, "--as-of", "2026-01-31T14:00:00Z").exit_code == 1
    assert cdc("get", "shop", "shop.orders", "fr", 2).exit_code == 0
    assert "3 rows" in cdc("scan", "shop", "shop.orders", "--as-of", "2026-01-31T13:30:00").stdout
    result = cdc("get", "shop", "shop.orders", "fr", 1, "--as-of", "2026-01-31T12:00:00")
    assert result.exit_code == 2
    assert "no cut is stored" in result.stderr
    assert "--as-of noon is not a time" in cdc("get", "shop", "shop.orders", "fr", 1, "--as-of", "noon").stderr


def test_a_table_without_a_key_is_refused(cdc, make):
    make("list", [row("de", 1, "a")], "append", key=())
    result = cdc("scan", "shop", "shop.list")
    assert result.exit_code == 2
    assert "the lake table has no key" in result.stderr
