"""Records of lake tables that other writers changed, by the settings of the source file."""

from __future__ import annotations

import pytest

from cdc_lib.errors import ForeignChange
from cdc_lib.model.cursor import DRAIN, LAKE, Cursor
from cdc_lib.model.position import Position
from cdc_lib.model.server_identity import ServerIdentity
from cdc_lib.store.cursors import ObjectCursorStore
from cdc_lib.store.objects.local import LocalStore
from spark_jobs.merging.faulty_tables import exclude_faulty
from tests.harness.lake import lake_config

ERROR = ForeignChange("the lake table lake.shop.a was rolled back", hint="cdc snapshot shop shop.a")
REFUSED = {"lake.shop.a": (("shop.a", "shop.b"), ERROR)}


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


def settings(tmp_path, foreign_changes="stop", on_error="stop"):
    config = lake_config(tmp_path / "lake", on_error=on_error)
    lake = config.lake.model_copy(update={"foreign_changes": foreign_changes})
    return config.model_copy(update={"lake": lake})


def test_a_table_stops_by_default(store, tmp_path):
    """No cursor is changed."""
    assert exclude_faulty(settings(tmp_path), store, REFUSED) == ""
    assert records(store) == ()


@pytest.mark.parametrize("on_error", ["stop", "quarantine"])
def test_new_snapshots_are_requested_from_the_lake_cursor_on(store, tmp_path, on_error):
    """For each source table of the lake table, once; the next plan starts them."""
    config = settings(tmp_path, "snapshot", on_error)
    assert exclude_faulty(config, store, REFUSED) == "read again"
    found = records(store)
    assert [(one.table, one.start.offset, one.fault, one.is_open) for one in found] == [
        ("shop.a", 500, None, True),
        ("shop.b", 500, None, True),
    ]
    assert found[0].why == ERROR.message
    assert exclude_faulty(config, store, REFUSED) == ""
    assert records(store) == found


def test_with_quarantine_the_tables_are_quarantined_from_the_lake_cursor_on(store, tmp_path):
    """Drained windows are merged without them; the record has the error and its hint."""
    assert exclude_faulty(settings(tmp_path, on_error="quarantine"), store, REFUSED) == "quarantined"
    found = records(store)
    assert [(one.table, one.start.offset, one.is_open) for one in found] == [
        ("shop.a", 500, True),
        ("shop.b", 500, True),
    ]
    assert (found[0].fault.code, found[0].fault.hint) == ("foreign_change", ERROR.hint)
