"""``cdc get`` and ``cdc scan``: rows of a lake table by key, without Spark."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

from cdc_lib.model.cursor import DRAIN, LAKE, Cursor
from cdc_lib.model.lake_table import Marker
from cdc_lib.model.position import Point
from cdc_lib.model.schema import SourceType
from cdc_lib.store.cursors import ObjectCursorStore
from cdc_lib.store.objects.open import open_store
from tests.harness.lake.batches import BIGINT, IDENTITY, TEXT, BatchWriter, Row, at, table
from tests.harness.lake.small_lake import row

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


def test_a_key_may_begin_with_a_minus(cdc, orders):
    """The help of each command with a key says how."""
    for command in ("get", "explain"):
        assert "after -- where" in " ".join(cdc(command, "--help").stdout.replace("│", " ").split())
        result = cdc(command, "shop", "shop.orders", "de", "--", -5)
        assert (result.exit_code, "No such option" in result.output) == (1, False)


def test_a_wrong_key_names_the_column(cdc, orders):
    result = cdc("get", "shop", "shop.orders", "de", "one")
    assert result.exit_code == 2
    assert "key column id takes a whole number, not 'one'" in result.stderr
    result = cdc("get", "shop", "shop.orders", "de")
    assert result.exit_code == 2
    assert "a key has 2 parts, not 1" in result.stderr


def test_a_range_is_shown_in_key_order(cdc, orders):
    def keys(*options):
        rows = json.loads(cdc("scan", "shop", "shop.orders", "--json", *options).stdout)
        return [(one["country"], one["id"]) for one in rows]

    assert keys() == [("at", 5), ("de", 1), ("de", 2)]
    assert keys("--reverse", "--limit", 2) == [("de", 2), ("de", 1)]
    assert keys("--key-from", "de") == keys("--key-from", '["de", 1]', "--key-to", "de") == [("de", 1), ("de", 2)]
    assert keys("--key-prefix", "d") == keys("--key-prefix", "de") == [("de", 1), ("de", 2)]
    assert keys("--key-prefix", '["de", 2]') == keys("--key-prefix", "d", "--where", "id > 1") == [("de", 2)]
    assert cdc("scan", "shop", "shop.orders", "--key-prefix", "d", "--key-from", "a").exit_code == 2
    assert keys("--where", "name <> 'a' AND id < 5") == [("de", 2)]
    assert keys("--where", "id > 1", "--limit", 1, "--reverse") == [("de", 2)]
    assert cdc("scan", "shop", "shop.orders", "--where", "price > 1").exit_code == 2
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


def test_versions_of_a_mirrors_row_are_those_of_stored_batches(cdc, lake):
    """With the time since when all are known; as JSON too. Only some of them, and none before that time."""
    store, whole = open_store(lake.config.store), {"country": "de", "id": 1, "raw": b"x"}
    columns = {"country": TEXT, "id": BIGINT, "name": TEXT, "raw": SourceType("bytes")}
    schema = table("shop.people", columns, key=("country", "id"))
    rows = [Row("c", 10, {**whole, "name": "old"}), Row("u", 20, {**whole, "name": "new"})]
    BatchWriter(store).window(4, 104, {schema: rows})
    for consumer in (DRAIN, LAKE):
        ObjectCursorStore(store).swap(None, Cursor("shop", consumer, 0, 1, IDENTITY, at(104)))
    lake.make("people", [row("de", 1, "new", 20)], marker=Marker(merged_to=Point(1, 1, 104)))
    get = ("get", "shop", "shop.people")
    found = json.loads(cdc(*get, "de", 1, "--versions", "--json").stdout)
    assert (found["complete_since"], found["why"]) == ("2026-01-01T00:00:00+00:00", "earlier batches are not stored")
    first = {"_op": "u", "_offset": 20, "name": "new", "raw": "78", "_changed": ["name"]}
    assert first.items() <= found["versions"][0].items()
    assert [one["name"] for one in found["versions"]] == ["new", "old"]
    shown = cdc(*get, "de", 1, "--versions", "--limit", 1, "--since", "2026-01-01")
    assert (shown.exit_code, "1 row\n" in shown.stdout) == (0, True)
    assert "all versions are known since 2026-01-01 00:00:00+00:00: earlier batches are not stored" in shown.stdout
    (line,) = (line for line in shown.stdout.splitlines() if "new" in line)
    assert line.replace("│", " ").split()[:7] == ["u", "2026-01-01", "00:00:20.000000Z", "name", "de", "1", "new"]
    nothing = cdc(*get, "de", 9, "--versions")
    assert (nothing.exit_code, "no version is known" in nothing.stdout) == (1, True)
    refused = {
        ("--versions", "--since", "2025-12-31T23:00:00"): "and not since 2025-12-31 23:00:00+00:00",
        ("--versions", "--since", "noon"): "--since takes a time, not 'noon'",
        ("--limit", 1): "--limit, --since and --until are for --versions",
        ("--since", "2026-01-01"): "--limit, --since and --until are for --versions",
        ("--until", "2026-01-01"): "--limit, --since and --until are for --versions",
    }
    for options, message in refused.items():
        result = cdc(*get, "de", 1, *options)
        assert (result.exit_code in (1, 2), message in result.stderr) == (True, True), result.stderr


def test_versions_that_a_table_keeps_say_what_changed_and_when(cdc, lake):
    """Some of them by number and time."""
    made = (row("de", 1, "old", 5), row("de", 1, "new", 9), row("de", 1, "new", 12))
    lake.make("changes", [one | {"_op": op} for one, op in zip(made, "cuu", strict=True)], "append")
    get = ("get", "shop", "shop.changes", "de", 1, "--versions")

    def found(*options):
        return [(one["name"], one["_changed"]) for one in json.loads(cdc(*get, *options, "--json").stdout)]

    assert found() == [("new", []), ("new", ["name"]), ("old", None)]
    assert found("--limit", 1) == [("new", [])]
    times = ("--since", "2026-01-01T00:00:09", "--until", "2026-01-01T00:00:12")
    assert found(*times) == [("new", ["name"])]
    assert found(*times, "--columns", "name") == [("new", ["name"])]
    (line,) = (line for line in cdc(*get, *times).stdout.splitlines() if "new" in line)
    assert line.replace("│", " ").split()[:7] == ["u", "2026-01-01", "00:00:09.000000Z", "name", "de", "1", "new"]


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


def test_waiting_changes_are_shown_with_fresh(cdc, lake, orders):
    """By get and scan; without it the lake alone is shown."""
    store, whole = open_store(lake.config.store), {"country": "de", "id": 1, "name": "fresh", "raw": b"x"}
    columns = {"country": TEXT, "id": BIGINT, "name": TEXT, "raw": SourceType("bytes")}
    schema = table("shop.orders", columns, key=("country", "id"))
    BatchWriter(store).window(4, 104, {schema: [Row("u", 10, whole), Row("d", 20, {**whole, "id": 2})]})
    for cursor in (Cursor("shop", DRAIN, 0, 1, IDENTITY, at(104)), Cursor("shop", LAKE, 0, 1, IDENTITY, at(4))):
        ObjectCursorStore(store).swap(None, cursor)
    assert json.loads(cdc("get", "shop", "shop.orders", "de", 1, "--json").stdout)["name"] == "a"
    assert json.loads(cdc("get", "shop", "shop.orders", "de", 1, "--fresh", "--json").stdout)["name"] == "fresh"
    rows = json.loads(cdc("scan", "shop", "shop.orders", "--fresh", "--json").stdout)
    assert [(one["country"], one["id"]) for one in rows] == [("at", 5), ("de", 1)]
    result = cdc("scan", "shop", "shop.orders", "--fresh", "--as-of", "latest")
    assert result.exit_code == 2
