"""The way back: a released table continues after a snapshot, and stands where it was when that is at fault as well."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from cdc_lib import requests
from cdc_lib.errors import ConfigError
from cdc_lib.status.overview import findings_of, status_of
from cdc_lib.store import layout
from tests.harness.binlog import xa
from tests.harness.binlog.capture import SOURCE
from tests.harness.lake.merging import merge_all
from tests.harness.shop.quarantine import BAD_TEXT, capturing, change, cursor, rounds


@pytest.fixture
def capture(any_server, database, tmp_path):
    return capturing(any_server, database, tmp_path)


def test_a_resumed_table_continues_after_its_snapshot(capture):
    """A window ends where it is released; the record says who, when and up to where, and what comes then is read again."""
    change(capture, BAD_TEXT)
    rounds(capture)
    capture.execute("INSERT INTO bad VALUES (5, _cp1250 X'81')")
    capture.execute("DELETE FROM bad WHERE id IN (2, 5)")
    record = requests.resume_table(capture.pipeline, f"{capture.database}.bad", by="somebody")
    assert (record.released_by, record.is_open) == ("somebody", False)
    assert record.released_position == capture.head()
    capture.execute("INSERT INTO bad VALUES (6, 'right')")
    task, window, rest = capture.pipeline.plan(by="test")
    assert (task.snapshot_id, task.table) == (record.snapshot_id, "bad")
    assert window.stop == rest.start == record.released_position
    ack = rounds(capture)
    assert (ack.waiting, ack.quarantined) == (0, ())
    (last,) = capture.chunks(task)
    assert [row["id"] for row in capture.rows(last, "bad")] == [1, 6]
    newest = status_of(capture.pipeline).last_batches[-1]
    assert newest.window.start == record.released_position
    assert capture.ops(newest, "bad") == [("c", 6)]


def test_a_snapshot_is_merged_only_after_the_windows_that_it_needs(capture):
    """Those up to its last chunk may still quarantine its table again."""
    change(capture, BAD_TEXT)
    rounds(capture)
    capture.execute("DELETE FROM bad WHERE id = 2")
    record = requests.resume_table(capture.pipeline, f"{capture.database}.bad", by="test")
    (task,) = capture.pipeline.plan(by="test")[:1]
    capture.execute("INSERT INTO bad VALUES (6, 'right')")
    rounds(capture)
    assert cursor(capture).snapshots[-1].complete
    plan = capture.pipeline.plan_merge(by="test")
    assert not any("/snapshots/" in key for key in plan.batches)
    assert [one.table for one in plan.lagging] == [record.table]
    merge_all(capture)
    rounds(capture)
    plan = capture.pipeline.plan_merge(by="test")
    assert plan.batches[0] == layout.chunk_manifest_key(task, 0)
    assert plan.lagging == ()
    assert plan.quarantine == (record,)


def test_a_table_that_is_at_fault_again_keeps_its_position(capture):
    """The snapshot of its release needs the rows that are left out now: it is cancelled, and the next release has its own."""
    change(capture, BAD_TEXT)
    rounds(capture)
    capture.execute("DELETE FROM bad WHERE id = 2")
    table = f"{capture.database}.bad"
    first = requests.resume_table(capture.pipeline, table, by="test")
    capture.execute("INSERT INTO bad VALUES (7, _cp1250 X'81')")
    capture.execute("DELETE FROM bad WHERE id = 7")
    rounds(capture, 2)
    again = cursor(capture).quarantine_record(table)
    assert (again.is_open, again.start, again.as_of) == (True, first.released_position, first.as_of)
    plan = capture.pipeline.plan_merge(by="test")
    assert not [key for key in plan.batches if "/snapshots/" in key]
    assert [(one.table, one.position) for one in plan.lagging] == [(table, first.as_of)]
    second = requests.resume_table(capture.pipeline, table, by="test")
    assert second.snapshot_id != first.snapshot_id
    assert rounds(capture).quarantined == ()


def test_a_snapshot_at_fault_quarantines_a_resumed_table_again(capture):
    """The row that is no text is still there; released once it is mended, the table continues."""
    change(capture, BAD_TEXT)
    rounds(capture)
    table = f"{capture.database}.bad"
    first = requests.resume_table(capture.pipeline, table, by="test")
    (again,) = rounds(capture).quarantined
    assert (again.table, again.start, again.as_of, again.is_open) == (table, first.released_position, first.as_of, True)
    assert "81" not in again.fault.reason
    assert capture.pipeline.plan(by="test") == []
    capture.execute("DELETE FROM bad WHERE id = 2")
    requests.resume_table(capture.pipeline, table, by="test")
    ack = rounds(capture)
    assert (ack.quarantined, ack.waiting, ack.chunks) == ((), 0, 1)


def test_a_dropped_table_is_released_without_a_snapshot(capture):
    """Its lake table stays as it stood."""
    change(capture, BAD_TEXT, "DROP TABLE bad")
    rounds(capture)
    table = f"{capture.database}.bad"
    record = requests.resume_table(capture.pipeline, table, by="test")
    assert (record.is_open, record.snapshot_id) == (False, "")
    assert cursor(capture).quarantined_tables == ()
    assert status_of(capture.pipeline).lagging == ()


def test_only_a_quarantined_table_can_be_resumed(capture):
    """The error names what is."""
    change(capture, BAD_TEXT)
    rounds(capture)
    with pytest.raises(ConfigError, match=rf"good is not quarantined.*{capture.database}\.bad"):
        requests.resume_table(capture.pipeline, f"{capture.database}.good", by="test")


def test_rows_of_a_transaction_that_is_prepared_meanwhile_come_with_the_snapshot(capture):
    """Its rows were left out where it was prepared: the release waits for its decision."""
    change(capture, BAD_TEXT)
    rounds(capture)
    xa.prepare(capture.server, capture.database, "'x1'", "INSERT INTO bad VALUES (8, 'xa')")
    rounds(capture)
    capture.execute("DELETE FROM bad WHERE id = 2")
    with ThreadPoolExecutor(1) as pool:
        try:
            release = pool.submit(requests.resume_table, capture.pipeline, f"{capture.database}.bad", by="test")
            time.sleep(1)
            assert not release.done()
        finally:
            xa.commit(capture.server, "'x1'")
        release.result()
    rounds(capture, 2)
    (chunk,) = capture.chunks(cursor(capture).snapshots[-1])
    assert [row["id"] for row in capture.rows(chunk, "bad")] == [1, 8]


def test_status_and_doctor_report_quarantined_tables(capture):
    """As of where it is, why, and the command that brings it back."""
    change(capture, BAD_TEXT)
    rounds(capture)
    (one,) = status_of(capture.pipeline).lagging
    assert (one.table, one.position) == (f"{capture.database}.bad", cursor(capture).quarantine[0].start)
    (finding,) = [found for found in findings_of(capture.pipeline) if "quarantined" in found.what]
    assert finding.level == "warning"
    assert f"cdc snapshot {SOURCE} {capture.database}.bad" in finding.hint  # which ends the quarantine


def test_a_table_that_continues_keeps_no_other_waiting(any_server, database, tmp_path):
    """One plan has the window that ends where the table continues, and all that comes after it."""
    capture = capturing(any_server, database, tmp_path)
    change(capture, BAD_TEXT)
    rounds(capture)
    capture.execute("DELETE FROM bad WHERE id = 2")
    capture.execute("INSERT INTO good VALUES (4, 'before')")
    record = requests.resume_table(capture.pipeline, f"{capture.database}.bad", by="test")
    capture.execute("INSERT INTO good VALUES (5, 'after')")
    capture.execute("INSERT INTO bad VALUES (6, 'after')")
    rounds(capture)
    found = cursor(capture)
    assert record.released_position < found.position
    assert not capture.pipeline.plan(by="test")
