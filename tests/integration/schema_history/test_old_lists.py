"""A listing that lacks new schema versions: no window is read with an older definition."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_lib.store import layout
from cdc_lib.store.cursors import ObjectCursorStore
from tests.harness.binlog.capture import Capture, row_metadata
from tests.harness.store.old_lists import OldLists

BEFORE = "CREATE TABLE a (id INT PRIMARY KEY, x INT NOT NULL, y INT NOT NULL)"
CHANGE = "ALTER TABLE a MODIFY y INT NOT NULL AFTER id"
ROW = "INSERT INTO a (id, x, y) VALUES ({0}, 1{0}, 2{0})"


@pytest.fixture
def capture(any_server, database, tmp_path):
    """A source that does not name columns, with a table whose definition listings have."""
    with row_metadata(any_server, "MINIMAL"):
        capture = Capture(any_server, database, tmp_path, start="latest", drain={"max_window_bytes": 1})
        capture.store = OldLists(capture.store)
        cursors = ObjectCursorStore(capture.store)
        capture.pipeline = replace(capture.pipeline, store=capture.store, cursors=cursors)
        capture.execute(BEFORE)
        capture.execute("DO SLEEP(1.1)")
        assert not capture.pipeline.plan(by="test")
        capture.store.grow_old()
        yield capture


def planned(capture):
    return capture.pipeline.plan(by="test")


def drained(capture, units):
    for unit in units:
        capture.pipeline.drain(unit)
    windows = [capture.manifest(layout.manifest_key(unit)) for unit in units if hasattr(unit, "stop")]
    chunks = [chunk for unit in units if not hasattr(unit, "stop") for chunk in capture.chunks(unit)]
    rows = [row for manifest in [*windows, *chunks] for row in capture.rows(manifest, "a")]
    return [(row["id"], row["x"], row["y"]) for row in rows]


def acked(capture, units):
    rows = drained(capture, units)
    capture.pipeline.ack_drain(by="test")
    return rows


def test_a_statement_of_a_window_before_counts(capture):
    """Once that window is acknowledged."""
    capture.execute(CHANGE)
    assert acked(capture, planned(capture)) == []
    capture.execute(ROW.format(1))
    assert acked(capture, planned(capture)) == [(1, 11, 21)]


def test_a_statement_of_a_window_in_flight_counts(capture):
    """The windows of one plan are read one after another, or side by side."""
    capture.execute(CHANGE)
    capture.execute("FLUSH BINARY LOGS")
    capture.execute(ROW.format(1))
    units = planned(capture)
    assert len(units) == 2
    assert drained(capture, units) == [(1, 11, 21)]


@pytest.mark.parametrize("idle", [False, True])
def test_a_change_that_a_plan_noticed_counts(capture, idle):
    """No statement shows it; the table is read again, and later rows are of its new definition."""
    if not idle:
        capture.execute(ROW.format(1))
    with capture.server.connect(database=capture.database, autocommit=True) as session, session.cursor() as cursor:
        cursor.execute("SET SESSION sql_log_bin = 0")
        cursor.execute(CHANGE)
    capture.execute("DO SLEEP(1.1)")
    shown = [] if idle else [(1, 11, 21)]
    assert acked(capture, planned(capture)) == shown
    for number in (2, 3):
        capture.execute(ROW.format(number))
        assert acked(capture, planned(capture)) == [(number, 10 + number, 20 + number)]
