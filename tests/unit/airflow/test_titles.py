from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from cdc_airflow.units import title_of
from cdc_lib.model.manifest import Manifest
from cdc_lib.model.position import Position
from cdc_lib.model.row_selection import RowSelection
from cdc_lib.model.server_identity import ServerIdentity
from cdc_lib.model.window import SnapshotTask, Window

WINDOW = Window("shop", 1, Position("binlog.000007", 154), Position("binlog.000007", 98765))
MANIFEST = Manifest(
    source="shop",
    epoch=1,
    identity=ServerIdentity("mysql", "uuid", 1),
    window=WINDOW,
    chunk=None,
    gtid_first="",
    gtid_last="",
    first_time=datetime(2026, 11, 23, 8, 0, 3, tzinfo=UTC),
    last_time=datetime(2026, 11, 23, 8, 5, 10, tzinfo=UTC),
    transactions=2,
    events=9,
    files=(),
    schemas={},
)


def test_a_window_has_its_bounds_and_when_they_are_known_its_times():
    """People look for a time; the bounds are in each message of the library."""
    assert title_of(WINDOW) == "binlog.000007:154 to 98765"
    assert title_of(WINDOW, MANIFEST) == "2026-11-23 08:00:03 to 08:05:10 UTC, binlog.000007:154 to 98765"
    later = replace(MANIFEST, last_time=datetime(2026, 11, 24, 0, 1, 0, tzinfo=UTC))
    assert title_of(WINDOW, later).startswith("2026-11-23 08:00:03 to 2026-11-24 00:01:00 UTC, ")


def test_a_window_over_two_files_names_both():
    """And an empty one, which has no times, its bounds alone."""
    window = replace(WINDOW, stop=Position("binlog.000008", 4))
    assert title_of(window) == "binlog.000007:154 to binlog.000008:4"
    assert title_of(WINDOW, replace(MANIFEST, first_time=None, last_time=None)) == title_of(WINDOW)


def test_a_snapshot_has_its_table_or_the_part_that_was_asked_for():
    """Two parts of one table have different names."""
    task = SnapshotTask("shop", 1, "000001-x", "shop", "orders")
    part = RowSelection(("id",), text="rows of shop.orders from 5 to 9")
    assert title_of(task) == "snapshot of shop.orders"
    assert title_of(replace(task, selection=part)) == "snapshot of rows of shop.orders from 5 to 9"
