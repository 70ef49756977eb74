"""``cdc lake cuts``, ``tables`` and ``schema``: published cuts and catalog metadata, without Spark."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType

from cdc_lib.config import load_source
from cdc_lib.lake.catalog import open_catalog
from cdc_lib.model.lake_table import KEY_PROPERTY, MODE_PROPERTY
from cdc_lib.model.merge_plan import Cut, TableCut
from cdc_lib.model.table_name import TableName
from cdc_lib.model.verify import Report, TableReport
from cdc_lib.store.cuts import publish
from cdc_lib.store.objects.local import LocalStore
from cdc_lib.store.verified import keep
from tests.harness.lake.batches import at

AT = datetime(2026, 11, 21, 6, 0, tzinfo=UTC)
COLUMNS = Schema(NestedField(1, "id", LongType(), required=True), NestedField(2, "name", StringType(), required=False))


def cut(number, *tables):
    """The cut of the merge of a number, an hour after the one before."""
    later = AT + timedelta(hours=number)
    parts = tuple(TableCut(TableName("shop", name), f"lake.shop.{name}", 7 + number, 1) for name in tables)
    return Cut("shop", f"000001-000001.{number * 100:012d}-abc", 1, at(number * 100), later, later, parts)


@pytest.fixture
def cuts(tmp_path):
    """Three cuts."""
    store = LocalStore(tmp_path / "store")
    for number in (1, 2, 3):
        publish(store, cut(number, "orders", "notes"))
    return store


@pytest.fixture
def lake(tmp_path, sources, cuts):
    """A real lake in SQLite and a folder; one of the two tables of the cuts is not there."""
    (tmp_path / "cat.db").touch()
    catalog = open_catalog(load_source(sources / "shop.yaml"))
    catalog.create_tables()
    catalog.create_namespace("shop")
    properties = {KEY_PROPERTY: '["id"]', MODE_PROPERTY: "mirror"}
    orders = catalog.create_table(("shop", "orders"), COLUMNS, properties=properties)
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("name", pa.string())])
    orders.append(pa.table({"id": [1, 2, 3], "name": ["a", "b", None]}, schema=schema))
    yield orders
    catalog.close()


def test_cuts_are_listed_with_position_and_time(cdc, cuts):
    """The last ones, oldest first; JSON has the snapshot of each table."""
    shown = cdc("lake", "cuts", "shop").stdout
    for part in ("binlog.000001:100", "binlog.000001:300", "2026-11-21 09:00:00 UTC"):
        assert part in shown
    (last,) = json.loads(cdc("lake", "cuts", "shop", "--limit", 1, "--json").stdout)
    assert last["position"] == {"file": "binlog.000001", "offset": 300}
    assert [(one["table"], one["lake_snapshot"]) for one in last["tables"]] == [("shop.orders", 10), ("shop.notes", 10)]


def test_only_the_cuts_that_are_shown_are_read(cdc, cuts):
    """There may be thousands."""
    (cuts.root / min(info.key for info in cuts.list("shop/cuts"))).write_bytes(b"{")
    assert cdc("lake", "cuts", "shop", "--limit", 2).exit_code == 0
    assert cdc("lake", "cuts", "shop").exit_code == 1


def test_lake_tables_are_listed_with_mode_key_and_rows(cdc, lake, cuts):
    """And with the last comparison without drift. A table that the catalog does not have is listed as missing."""
    name, to = TableName("shop", "orders"), "lake.shop.orders"
    compared = TableReport(name, to, source_rows=3, position=at(300))
    keep(cuts, Report("shop", 1, at(300), "a:1-5", AT, AT, (compared,)))
    orders, notes = sorted(json.loads(cdc("lake", "tables", "shop", "--json").stdout), key=lambda one: -len(one["key"]))
    assert orders == {
        "lake_table": "lake.shop.orders",
        "tables": ["shop.orders"],
        "mode": "mirror",
        "key": ["id"],
        "rows": 3,
        "files": 1,
        "waits_for": "",
        "verified": [
            {
                "table": "shop.orders",
                "lake_table": "lake.shop.orders",
                "equal": {
                    "epoch": 1,
                    "position": {"file": "binlog.000001", "offset": 300},
                    "gtid_set": "a:1-5",
                    "at": "2026-11-21T06:00:00+00:00",
                    "in_flight": 0,
                },
                "where": "at",
                "changed_rows": None,
                "wrong": 0,
            }
        ],
    }
    assert (notes["lake_table"], notes["mode"], notes["rows"]) == ("lake.shop.notes", "missing", None)
    shown = cdc("lake", "tables", "shop").stdout
    for part in ("lake.shop.orders", "mirror", "missing", "?", "never found equal"):
        assert part in shown
    listed = json.loads(cdc("lake", "cuts", "shop", "--json").stdout)
    assert [[one["where"] for one in each["verified"]] for each in listed] == [["after", ""], ["after", ""], ["at", ""]]
    assert "1 at" in cdc("lake", "cuts", "shop").stdout


def test_what_waits_for_maintenance_is_listed(cdc, lake, sources):
    """Small files above the limit, and a layout of the source file that the table does not have."""
    for number in range(10, 15):
        lake.append(pa.table({"id": [number], "name": ["x"]}, schema=lake.schema().as_arrow()))
    with (sources / "shop.yaml").open("a") as file:
        file.write("layouts: [{tables: shop.orders, sort_by: [NAME]}]\n")
    found = {one["lake_table"]: one for one in json.loads(cdc("lake", "tables", "shop", "--json").stdout)}
    assert found["lake.shop.orders"]["waits_for"] == "another layout, 5 small files"
    assert found["lake.shop.notes"]["waits_for"] == ""


def test_a_lake_table_that_was_never_written_to_has_no_rows(cdc, lake):
    """Nor a mode, where nothing of this project made it."""
    lake.catalog.create_table(("shop", "notes"), COLUMNS)
    found = {one["lake_table"]: one for one in json.loads(cdc("lake", "tables", "shop", "--json").stdout)}
    assert (found["lake.shop.notes"]["rows"], found["lake.shop.notes"]["mode"]) == (0, "unknown")


def test_columns_of_a_lake_table_are_listed(cdc, lake):
    """With type, nulls and key."""
    assert json.loads(cdc("lake", "schema", "shop", "shop.orders", "--json").stdout) == [
        {"name": "id", "type": "long", "nullable": False, "is_key": True},
        {"name": "name", "type": "string", "nullable": True, "is_key": False},
    ]
    assert "not null" in cdc("lake", "schema", "shop", "shop.orders").stdout
    missing = cdc("lake", "schema", "shop", "shop.nothing")
    assert (missing.exit_code, "the lake has no table shop.nothing" in missing.stderr) == (2, True)


@pytest.mark.parametrize("command", ["cuts", "tables"])
def test_a_source_that_was_never_merged_has_none(cdc, command):
    """Which is no error, and needs no lake."""
    shown = cdc("lake", command, "shop")
    assert shown.exit_code == 0
    assert "first merge" in shown.stdout
    assert json.loads(cdc("lake", command, "shop", "--json").stdout) == []
