"""The clocks of those who plan, drain and acknowledge are wrong, each by another time: nothing depends on them."""

from __future__ import annotations

import pytest

from cdc_lib.model.cursor import DRAIN, LAKE
from cdc_lib.model.window import SnapshotTask
from cdc_lib.store import layout
from tests.chaos.clock import jump
from tests.harness.binlog.capture import SOURCE, Capture
from tests.harness.lake.merging import Lake

DAY = 86_400
RIGHT = (0, 0, 0, 0)
JUMPS = ((DAY, -DAY, 40 * DAY, -400 * DAY), (-DAY, -2 * DAY, -3 * DAY, -4 * DAY), (0, -1, 0, -7200))
"""Seconds by which the clock is wrong while a round plans, drains, acknowledges and merges."""


def one_round(capture, lake, jumps, monkeypatch):
    """Do what a run does, each step by another clock; returns the units and what their batches hold."""
    pipeline, found = capture.pipeline, {}
    plan, drain, ack, merge = jumps
    jump(plan, monkeypatch.setattr)
    units = pipeline.plan(by="test")
    jump(drain, monkeypatch.setattr)
    for unit in units:
        pipeline.drain(unit)
    jump(ack, monkeypatch.setattr)
    pipeline.ack_drain(by="test")
    jump(merge, monkeypatch.setattr)
    lake.merge_all(capture)
    for unit in units:
        if isinstance(unit, SnapshotTask):
            rows = [row for chunk in capture.chunks(unit) for row in capture.rows(chunk, "t")]
            found[unit.table] = [{**row, "_ts": None} for row in rows]  # when it was read, for people
        else:
            manifest = capture.manifest(layout.manifest_key(unit))
            found[unit.id] = (manifest.files, manifest.ddl, manifest.first_time, manifest.last_time, manifest.gtid_set)
    return found


def cursor_state(capture):
    cursors = [capture.pipeline.cursors.load(SOURCE, consumer) for consumer in (DRAIN, LAKE)]
    return [(one.epoch, one.position, one.gtid_set, one.event_time, one.in_flight) for one in cursors]


@pytest.mark.parametrize("jumps", JUMPS)
def test_clocks_that_are_set_back_or_forward_change_no_window_and_no_row(
    any_server, database, tmp_path, monkeypatch, jumps
):
    """A source with wrong clocks beside one with right ones: the same bounds, bytes, cursors and rows."""
    any_server.execute("CREATE TABLE t (id INT PRIMARY KEY, v INT)", database=database)
    any_server.execute("INSERT INTO t VALUES (1, 1), (2, 1), (3, 1)", database=database)
    right, wrong = (Capture(any_server, database, tmp_path / name) for name in ("right", "wrong"))
    lakes = Lake("t"), Lake("t")
    for number in range(3):
        found = one_round(right, lakes[0], RIGHT, monkeypatch)
        assert one_round(wrong, lakes[1], jumps, monkeypatch) == found
        assert len(found) == 1
        assert cursor_state(wrong) == cursor_state(right)
        assert lakes[1].rows == {key: {"id": key, "v": v} for key, v in right.execute("SELECT id, v FROM t")}
        any_server.execute(f"UPDATE t SET v = v + {number} WHERE id < 3", database=database)
        any_server.execute(f"REPLACE INTO t VALUES ({number + 3}, {number})", database=database)


def test_moves_are_recorded_by_any_clock(any_server, database, tmp_path, monkeypatch):
    """For people alone: a move that seems to lie before the one before it is no reason to refuse it."""
    any_server.execute("CREATE TABLE t (id INT PRIMARY KEY)", database=database)
    capture = Capture(any_server, database, tmp_path, start="latest")
    capture.pipeline.plan(by="test")
    any_server.execute("INSERT INTO t VALUES (1)", database=database)
    jump(-DAY, monkeypatch.setattr)
    for unit in capture.pipeline.plan(by="test"):
        capture.pipeline.drain(unit)
    capture.pipeline.ack_drain(by="test")
    first, second = capture.pipeline.cursors.load(SOURCE, DRAIN).moves
    assert second.at < first.at
    assert first.stop == second.start
    assert second.stop == capture.head()
