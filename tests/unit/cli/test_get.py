"""``cdc get`` and ``cdc scan``: rows of a lake table by key, without Spark."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

from tests.harness.small_lake import row

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


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
    assert "key column id takes a whole number, not 'one'" in result.stderr
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


def test_all_changes_of_a_row_are_shown_newest_first(cdc, lake):
    lake.make("changes", [row("de", 1, "old", 5), row("de", 1, "new", 9), row("at", 1, "other")], "append")
    found = json.loads(cdc("get", "shop", "shop.changes", "de", 1, "--versions", "--json").stdout)
    assert [one["name"] for one in found] == ["new", "old"]
    assert "2 rows" in cdc("get", "shop", "shop.changes", "de", 1, "--versions").stdout
    result = cdc("get", "shop", "shop.changes", "de", 1)
    assert result.exit_code == 2
    assert "append mode, which has many rows for each key" in result.stderr


def test_a_row_is_shown_as_of_a_cut(cdc, lake, orders):
    """The last one by a time."""
    for number in (1, 2):
        lake.cut(number, NOON + timedelta(hours=number), orders)
        lake.add(orders, [row("fr", number, "later")])
    assert cdc("get", "shop", "shop.orders", "fr", 1, "--as-of", "2026-01-31T13:30:00").exit_code == 1
    assert cdc("get", "shop", "shop.orders", "fr", 1, "--as-of", "2026-01-31T14:00:00Z").exit_code == 0
    assert cdc("get", "shop", "shop.orders", "fr", 2, "--as-of", "2026-01-31T14:00:00Z").exit_code == 1
    assert cdc("get", "shop", "shop.orders", "fr", 2).exit_code == 0
    assert "3 rows" in cdc("scan", "shop", "shop.orders", "--as-of", "2026-01-31T13:30:00").stdout
    result = cdc("get", "shop", "shop.orders", "fr", 1, "--as-of", "2026-01-31T12:00:00")
    assert result.exit_code == 2
    assert "no cut is stored" in result.stderr
    assert "shop has no cut 'noon'" in cdc("get", "shop", "shop.orders", "fr", 1, "--as-of", "noon").stderr


def test_a_table_without_a_key_is_refused(cdc, lake):
    lake.make("list", [row("de", 1, "a")], "append", key=())
    result = cdc("scan", "shop", "shop.list")
    assert result.exit_code == 2
    assert "the lake table has no key" in result.stderr
