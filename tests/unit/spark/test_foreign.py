"""Records of lake tables that other writers changed, by the settings of the source file."""

from __future__ import annotations

import pytest

from cdc_lib.errors import ForeignChange
from cdc_lib.merge.planner import plan_of
from cdc_lib.merge.table_faults import FailedTable
from cdc_lib.model.cursor import DRAIN, LAKE, Cursor
from cdc_lib.model.position import Position
from cdc_lib.model.server_identity import ServerIdentity
from cdc_lib.model.table_name import TableName
from cdc_lib.store.cursors import ObjectCursorStore
from cdc_lib.store.objects.local import LocalStore
from spark_jobs.merging.faulty_tables import FaultyTables
from tests.harness.lake.running import lake_config

ERROR = ForeignChange("the lake table lake.shop.a was rolled back", hint="cdc snapshot shop shop.a")
TABLES = (TableName("shop", "a"), TableName("shop", "b"))


@pytest.fixture
def store(tmp_path):
    """A source whose drain is ahead of its lake."""
    store = LocalStore(tmp_path / "store")
    cursors, server = ObjectCursorStore(store), ServerIdentity("mysql", "u", 1)
    cursors.swap(None, Cursor("shop", DRAIN, 0, 1, server, Position("binlog.000002", 900)))
    cursors.swap(None, Cursor("shop", LAKE, 0, 1, server, Position("binlog.000002", 500)))
    return store


def records(store):
    return ObjectCursorStore(store).load("shop", DRAIN).quarantine


def left_out(config, store):
    """Return the lake tables that are left out after a merge in which one failed and one did not."""
    plan = plan_of(ObjectCursorStore(store).load("shop", LAKE))
    faulty = FaultyTables(config, store, plan, lambda _: None, [FailedTable(TABLES, "lake.shop.a", ERROR)])
    return [one.lake_table for one in faulty.leave_out(1)]


def settings(tmp_path, foreign_changes="stop", on_error="stop"):
    config = lake_config(tmp_path / "lake", on_error=on_error)
    lake = config.lake.model_copy(update={"foreign_changes": foreign_changes})
    return config.model_copy(update={"lake": lake})


def test_a_table_stops_by_default(store, tmp_path):
    """No cursor is changed."""
    assert left_out(settings(tmp_path), store) == []
    assert records(store) == ()


@pytest.mark.parametrize("on_error", ["stop", "quarantine"])
def test_new_snapshots_are_requested_from_the_lake_cursor_on(store, tmp_path, on_error):
    """For each source table of the lake table, once; the next plan starts them."""
    config = settings(tmp_path, "snapshot", on_error)
    assert left_out(config, store) == ["lake.shop.a"]
    found = records(store)
    assert [(one.table, one.start.offset, one.fault, one.is_open) for one in found] == [
        ("shop.a", 500, None, True),
        ("shop.b", 500, None, True),
    ]
    assert found[0].why == ERROR.message
    assert left_out(config, store) == ["lake.shop.a"]
    assert records(store) == found


def test_with_quarantine_the_tables_are_quarantined_from_the_lake_cursor_on(store, tmp_path):
    """Drained windows are merged without them; the record has the error and its hint."""
    assert left_out(settings(tmp_path, on_error="quarantine"), store) == ["lake.shop.a"]
    found = records(store)
    assert [(one.table, one.start.offset, one.is_open) for one in found] == [
        ("shop.a", 500, True),
        ("shop.b", 500, True),
    ]
    assert (found[0].fault.code, found[0].fault.hint) == ("foreign_change", ERROR.hint)
