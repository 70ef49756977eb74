"""``cdc quarantine list``: which tables are left out, since when, why, and what to do; no server is needed."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from cdc_lib.model.cursor import DRAIN, LAKE, Cursor
from cdc_lib.model.quarantine import Fault
from cdc_lib.model.table_name import TableName
from cdc_lib.quarantine.records import FaultyTable, quarantine
from cdc_lib.store.cursors import ObjectCursorStore
from cdc_lib.store.objects.local import LocalStore
from tests.harness.lake.batches import IDENTITY, at

NOW = datetime(2026, 11, 22, tzinfo=UTC)
FAULT = Fault(at(400), "unknown_event", "a statement changed rows", "Write binlog_format = ROW.")


@pytest.fixture
def cursors(tmp_path):
    """The cursors of a source that has drained and merged up to the same position."""
    store = ObjectCursorStore(LocalStore(tmp_path / "store"))
    for name in (DRAIN, LAKE):
        store.swap(None, Cursor("shop", name, 0, 1, IDENTITY, at(500)))
    return store


@pytest.fixture
def quarantined(cursors):
    """The same with a table in quarantine, from the window of its fault on."""
    drain = cursors.load("shop", DRAIN)
    found = FaultyTable(TableName("shop", "orders"), FAULT, at(300), NOW)
    return cursors.swap(drain, quarantine(drain, found, {}, (1, at(300)), at=NOW, by="a test"))


def test_a_quarantined_table_is_listed_with_its_error_and_the_command_that_resumes_it(cdc, quarantined):
    """For people."""
    shown = cdc("quarantine", "list", "shop")
    assert shown.exit_code == 0
    for part in ("shop.orders", "quarantined", "2026-11-22 00:00:00 UTC", "binlog.000001:400", "unknown_event"):
        assert part in shown.stdout
    assert "a statement changed rows" in shown.stdout
    assert "Write binlog_format = ROW. Then: cdc quarantine resume shop shop.orders" in shown.stdout


def test_a_quarantined_table_is_printed_as_json(cdc, quarantined):
    """For programs."""
    (one,) = json.loads(cdc("quarantine", "list", "shop", "--json").stdout)
    assert one == {
        "table": "shop.orders", "state": "quarantined", "since": "2026-11-22T00:00:00+00:00",
        "position": "binlog.000001:400", "lake_position": "binlog.000001:300", "code": "unknown_event",
        "reason": "a statement changed rows",
        "hint": "Write binlog_format = ROW. Then: cdc quarantine resume shop shop.orders",
    }  # fmt: skip


@pytest.mark.parametrize("named", ["cdc snapshot", "cdc snapshot shop shop.orders"])
def test_a_hint_that_names_the_snapshot_names_the_command_that_ends_the_quarantine(cursors, cdc, named):
    """And no second one, which would be refused then."""
    drain = cursors.load("shop", DRAIN)
    fault = replace(FAULT, hint=f"Take a new snapshot of the table ({named}): it replaces the rows.")
    found = FaultyTable(TableName("shop", "orders"), fault, at(300), NOW)
    cursors.swap(drain, quarantine(drain, found, {}, (1, at(300)), at=NOW, by="a test"))
    (one,) = json.loads(cdc("quarantine", "list", "shop", "--json").stdout)
    assert one["hint"] == "Take a new snapshot of the table (cdc snapshot shop shop.orders): it replaces the rows."


def test_nothing_in_quarantine_is_said(cdc, cursors):
    """An empty list for programs."""
    assert "no table of shop is quarantined" in cdc("quarantine", "list", "shop").stdout
    assert json.loads(cdc("quarantine", "list", "shop", "--json").stdout) == []
