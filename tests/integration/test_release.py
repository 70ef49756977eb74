"""The way back: a released table goes on behind a snapshot, and stands where it stood when that is at fault as well."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from cdc_lib.errors import ConfigError
from cdc_lib.store import layout
from tests.support import xa
from tests.support.capture import SOURCE
from tests.support.quarantine import BAD_TEXT, capturing, change, cursor, rounds


@pytest.fixture
def capture(any_server, database, tmp_path):
    return capturing(any_server, database, tmp_path)


def test_a_released_table_goes_on_behind_a_snapshot(capture):
    """A window ends where it is released; the record says who, when and up to where, and what comes then is read again."""
    change(capture, BAD_TEXT)
    rounds(capture)
    capture.execute("INSERT INTO bad VALUES (5, _cp1250 X'81')")
    capture.execute("DELETE FROM bad WHERE id IN (2, 5)")
    record = capture.pipeline.release(f"{capture.database}.bad", by="somebody")
    assert (record.released_by, record.open) == ("somebody", False)
    assert record.until == capture.head()
    capture.execute("INSERT INTO bad VALUES (6, 'right')")
    task, window = capture.pipeline.plan(by="test")
    assert (task.snapshot_id, task.table) == (record.snapshot_id, "bad")
    assert window.stop == record.until
    assert rounds(capture).waiting == 0
    (last,) = capture.drainer.chunks(task)
    assert [row["id"] for row in capture.rows(last, "bad")] == [1, 6]
    assert rounds(capture).aside == ()
    newest = capture.pipeline.status().last_batches[-1]
    assert newest.window.start == record.until
    assert capture.ops(newest, "bad") == [("c", 6)]


def test_a_snapshot_is_merged_only_behind_the_windows_that_it_needs(capture):
    """Those up to its last chunk may still set its table aside again."""
    change(capture, BAD_TEXT)
    rounds(capture)
    capture.execute("DELETE FROM bad WHERE id = 2")
    record = capture.pipeline.release(f"{capture.database}.bad", by="test")
    (task,) = capture.pipeline.plan(by="test")[:1]
    capture.execute("INSERT INTO bad VALUES (6, 'right')")
    rounds(capture)
    assert cursor(capture).snapshots[-1].complete
    assert capture.pipeline.plan_merge(by="test") is None
    rounds(capture)
    plan = capture.pipeline.plan_merge(by="test")
    assert plan.batches[0] == layout.chunk_manifest_key(task, 0)
    assert plan.standing == ()
    assert plan.aside == (record,)


def test_a_table_that_is_at_fault_again_stands_where_it_stood(capture):
    """The snapshot of its release needs the rows that are left out now: it is given up, and the next release has its own."""
    change(capture, BAD_TEXT)
    rounds(capture)
    capture.execute("DELETE FROM bad WHERE id = 2")
    table = f"{capture.database}.bad"
    first = capture.pipeline.release(table, by="test")
    capture.execute("INSERT INTO bad VALUES (7, _cp1250 X'81')")
    capture.execute("DELETE FROM bad WHERE id = 7")
    rounds(capture, 2)
    again = cursor(capture).aside_of(table)
    assert (again.open, again.start, again.stands) == (True, first.until, first.stands)
    plan = capture.pipeline.plan_merge(by="test")
    assert not [key for key in plan.batches if "/snapshots/" in key]
    assert [(one.table, one.position) for one in plan.standing] == [(table, first.stands)]
    second = capture.pipeline.release(table, by="test")
    assert second.snapshot_id != first.snapshot_id
    assert rounds(capture).aside == ()


def test_a_snapshot_at_fault_sets_a_released_table_aside_again(capture):
    """The row that is no text is still there; released once it is mended, the table goes on."""
    change(capture, BAD_TEXT)
    rounds(capture)
    table = f"{capture.database}.bad"
    first = capture.pipeline.release(table, by="test")
    (again,) = rounds(capture).aside
    assert (again.table, again.start, again.stands, again.open) == (table, first.until, first.stands, True)
    assert "81" not in again.fault.reason
    assert capture.pipeline.plan(by="test") == []
    capture.execute("DELETE FROM bad WHERE id = 2")
    capture.pipeline.release(table, by="test")
    ack = rounds(capture)
    assert (ack.aside, ack.waiting, ack.chunks) == ((), 0, 1)


def test_a_dropped_table_is_released_without_a_snapshot(capture):
    """Its lake table stays as it stood."""
    change(capture, BAD_TEXT, "DROP TABLE bad")
    rounds(capture)
    table = f"{capture.database}.bad"
    record = capture.pipeline.release(table, by="test")
    assert (record.open, record.snapshot_id) == (False, "")
    assert cursor(capture).tables_aside == ()
    assert capture.pipeline.status().aside == ()


def test_only_what_is_set_aside_can_be_released(capture):
    """The error names what is."""
    change(capture, BAD_TEXT)
    rounds(capture)
    with pytest.raises(ConfigError, match=rf"good is not set aside.*{capture.database}\.bad"):
        capture.pipeline.release(f"{capture.database}.good", by="test")


def test_rows_of_a_transaction_that_is_prepared_meanwhile_come_with_the_snapshot(capture):
    """Its rows were left out where it was prepared: the release waits for its decision."""
    change(capture, BAD_TEXT)
    rounds(capture)
    xa.prepare(capture.server, capture.database, "'x1'", "INSERT INTO bad VALUES (8, 'xa')")
    rounds(capture)
    capture.execute("DELETE FROM bad WHERE id = 2")
    with ThreadPoolExecutor(1) as pool:
        try:
            release = pool.submit(capture.pipeline.release, f"{capture.database}.bad", by="test")
            time.sleep(1)
            assert not release.done()
        finally:
            xa.commit(capture.server, "'x1'")
        release.result()
    rounds(capture, 2)
    (chunk,) = capture.drainer.chunks(cursor(capture).snapshots[-1])
    assert [row["id"] for row in capture.rows(chunk, "bad")] == [1, 8]


def test_status_and_doctor_tell_what_is_set_aside(capture):
    """As of where it stands, why, and the command that brings it back."""
    change(capture, BAD_TEXT)
    rounds(capture)
    (one,) = capture.pipeline.status().aside
    assert (one.table, one.position) == (f"{capture.database}.bad", cursor(capture).aside[0].start)
    (finding,) = [found for found in capture.pipeline.preflight() if "set aside" in found.what]
    assert finding.level == "warning"
    assert f"cdc release {SOURCE} {capture.database}.bad" in finding.mend
