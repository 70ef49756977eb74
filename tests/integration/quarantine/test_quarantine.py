"""`on_error: quarantine`: the one table of which something is not understood is quarantined, and the others continue exactly."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_lib import requests
from cdc_lib.errors import ChecksumMismatch, DecodeError, UnknownEvent, UnsupportedValue
from cdc_lib.mysql.binlog_stream import ServerStream
from cdc_lib.status.overview import status_of
from cdc_lib.store import documents, layout
from cdc_lib.store.schemas import SchemaVersions
from tests.harness.binlog.capture import SOURCE, Capture, row_metadata
from tests.harness.shop.quarantine import (
    BAD_TEXT,
    LOSSY,
    STATEMENT_LOGGED,
    as_statement,
    capturing,
    change,
    cursor,
    manifest_of,
    planned,
    rounds,
)


@pytest.fixture
def capture(any_server, database, tmp_path):
    return capturing(any_server, database, tmp_path)


def test_a_faulty_table_is_quarantined_and_the_other_continues(capture):
    """The manifest names it, its place and why; the cursor remembers it, and both move on."""
    change(capture, BAD_TEXT, LOSSY)
    window = planned(capture)
    result = capture.pipeline.drain(window)
    table = f"{capture.database}.bad"
    fault = {one.table: one.fault for one in result.quarantined}[table]
    assert fault.code == "unsupported_value"
    assert "not valid in the character set cp1250" in fault.reason
    assert window.start < fault.position < window.stop
    manifest = manifest_of(capture, window)
    assert capture.ops(manifest, "good") == [("c", 1), ("c", 3)]
    assert capture.tables(manifest, "bad") == []
    ack = capture.pipeline.ack_drain(by="test")
    assert ack.stop == window.stop
    record = cursor(capture).quarantine_record(table)
    assert record in ack.quarantined
    assert (record.start, record.as_of, record.skip_decode_from, record.is_open) == (
        window.start,
        window.start,
        window.stop,
        True,
    )
    assert record.fault == fault


def test_draining_again_gives_the_same_bytes(capture, tmp_path):
    """Also where the fault is met in another portion of the stream."""
    change(capture, BAD_TEXT, *(f"INSERT INTO good VALUES ({n}, 'x')" for n in range(10, 60)), LOSSY)
    window = planned(capture)
    other = Capture(capture.server, capture.database, tmp_path / "other", start="latest", on_error="quarantine")
    one, two = (each.drain(window) for each in (capture, other))
    assert one.files == two.files
    assert [each.table for each in one.quarantined] == [each.table for each in two.quarantined]
    stop = window.start
    assert stop < one.quarantined[0].fault.position


def test_windows_that_are_drained_in_reverse_leave_out_the_same(any_server, database, tmp_path):
    """A later window, drained first, holds rows of the table; the record says that they are left out."""
    capture = capturing(any_server, database, tmp_path, drain={"max_window_bytes": 1})
    change(capture, BAD_TEXT, "FLUSH BINARY LOGS", "INSERT INTO bad VALUES (4, 'later')")
    windows = capture.pipeline.plan(by="test")
    assert len(windows) == 2
    for window in reversed(windows):
        capture.pipeline.drain(window)
    first, second = (manifest_of(capture, window) for window in windows)
    assert [one.table for one in first.quarantined] == [f"{database}.bad"]
    assert second.quarantined == ()
    assert capture.ops(second, "bad") == [("c", 4)]
    capture.pipeline.ack_drain(by="test")
    record = cursor(capture).quarantine_record(f"{database}.bad")
    assert record.covers(1, windows[1].start)
    assert not record.skips_decode(1, windows[1].start)
    plan = capture.pipeline.plan_merge(by="test")
    assert plan.quarantine == (record,)
    assert [(one.table, one.position) for one in plan.lagging] == [(f"{database}.bad", windows[0].start)]


def test_a_later_window_does_not_decode_the_table(capture):
    """It was planned knowing of it: what is right again waits until the table is released."""
    change(capture, BAD_TEXT)
    capture.pipeline.drain(planned(capture))
    capture.pipeline.ack_drain(by="test")
    capture.execute("INSERT INTO bad VALUES (5, 'right')")
    capture.execute("INSERT INTO good VALUES (5, 'right')")
    window = planned(capture)
    capture.pipeline.drain(window)
    manifest = manifest_of(capture, window)
    assert capture.ops(manifest, "good") == [("c", 5)]
    assert capture.tables(manifest, "bad") == []
    assert manifest.quarantined == ()
    assert capture.pipeline.ack_drain(by="test").quarantined == ()
    assert len(cursor(capture).quarantine) == 1


def test_all_faulty_tables_of_a_window_are_quarantined(capture):
    """Each by its own fault, and one by a statement that names two."""
    capture.execute("CREATE TABLE c (id INT PRIMARY KEY) PARTITION BY RANGE (id) (PARTITION p VALUES LESS THAN (9))")
    capture.execute("CREATE TABLE d (id INT PRIMARY KEY)")
    change(capture, BAD_TEXT, "ALTER TABLE c EXCHANGE PARTITION p WITH TABLE d")
    window = planned(capture)
    capture.pipeline.drain(window)
    manifest = manifest_of(capture, window)
    assert [one.table.partition(".")[2] for one in manifest.quarantined] == ["bad", "c", "d"]
    assert capture.ops(manifest, "good") == [("c", 1), ("c", 3)]


def test_a_compressed_transaction_is_taken_apart(any_server, database, tmp_path):
    """The table's rows in it are left out; the other table's rows are read."""
    capture = capturing(any_server, database, tmp_path)
    if any_server.flavor == "mysql":
        setting, off = "SET SESSION binlog_transaction_compression = ON", "SELECT 1"
    else:
        setting, off = "SET GLOBAL log_bin_compress = ON", "SET GLOBAL log_bin_compress = OFF"
    with any_server.connect(database=database) as session, session.cursor() as sql:
        sql.execute(setting)
        try:
            sql.execute("BEGIN")
            sql.execute("INSERT INTO good VALUES (1, REPEAT('x', 9)), (2, REPEAT('x', 9)), (3, 'aaaaaaaaa')")
            sql.execute(BAD_TEXT)
            sql.execute("INSERT INTO bad SELECT id + 10, 'aaaaaaaaa' FROM good")
            sql.execute("COMMIT")
        finally:
            sql.execute(off)
    window = planned(capture)
    capture.pipeline.drain(window)
    manifest = manifest_of(capture, window)
    assert [row["id"] for row in capture.rows(manifest, "good")] == [1, 2, 3]
    assert [one.table for one in manifest.quarantined] == [f"{database}.bad"]
    assert capture.tables(manifest, "bad") == []


def test_a_table_whose_schema_history_does_not_fit_is_quarantined(any_server, database, tmp_path):
    """And read again from the server when it is released."""
    with row_metadata(any_server, "MINIMAL"):
        capture = capturing(any_server, database, tmp_path)
        versions = SchemaVersions(capture.store, SOURCE, 1)
        version = versions.at(database, "bad", capture.head())
        columns = version.definition.schema.columns
        schema = replace(version.definition.schema, columns=(columns[0], replace(columns[0], name="wrong")))
        spoilt = replace(version, definition=replace(version.definition, schema=schema))
        change(capture)
        window = planned(capture)
        capture.store.put(layout.version_key(version), documents.dump(spoilt))  # a plan would notice it
        capture.pipeline.drain(window)
        manifest = manifest_of(capture, window)
        assert [(one.table, one.fault.code) for one in manifest.quarantined] == [(f"{database}.bad", "unknown_schema")]
        assert capture.ops(manifest, "good") == [("c", 1), ("c", 3)]
        capture.pipeline.ack_drain(by="test")
        requests.resume_table(capture.pipeline, f"{database}.bad", by="test")
        capture.execute("INSERT INTO bad VALUES (3, 'ż')")
        rounds(capture, 2)
        (last,) = [m for m in status_of(capture.pipeline).last_batches if capture.tables(m, "bad")]
        assert [(row["id"], row["v"]) for row in capture.rows(last, "bad")] == [(3, "ż")]


def test_nothing_is_stored_of_a_table_with_masks(any_server, database, tmp_path):
    """What must not be stored is not stored when a table is left out either, and no reason tells a value."""
    masks = [{"tables": "*.bad", "columns": ["v"], "mask": "redact"}]
    capture = capturing(any_server, database, tmp_path, masks=masks)
    change(capture, BAD_TEXT)
    as_statement(capture, STATEMENT_LOGGED.format("good"))
    window = planned(capture)
    capture.pipeline.drain(window)
    manifest = manifest_of(capture, window)
    assert [one.table for one in manifest.quarantined] == [f"{database}.bad", f"{database}.good"]
    assert [key for key in capture.visible() if "/batches/" in key] == [layout.manifest_key(window)]
    assert not [word for word in (b"in clear", b"secret") if word in documents.dump(manifest)]


def test_no_quarantine_reason_shows_a_value(capture):
    """Neither of a statement that changed rows itself."""
    as_statement(capture, STATEMENT_LOGGED.format("bad"))
    window = planned(capture)
    capture.pipeline.drain(window)
    manifest = manifest_of(capture, window)
    assert manifest.quarantined[0].fault.reason.endswith("\"INSERT INTO bad VALUES (?, '?')\"")
    assert b"secret" not in documents.dump(manifest)


def test_by_default_the_window_stops(any_server, database, tmp_path):
    """And the error names the table."""
    capture = capturing(any_server, database, tmp_path, on_error="stop")
    change(capture, BAD_TEXT)
    with pytest.raises(UnsupportedValue, match=r"bad"):
        capture.pipeline.drain(planned(capture))
    assert not [key for key in capture.visible() if "/batches/" in key]


@pytest.mark.parametrize(
    "statement",
    ["UPDATE good JOIN bad ON good.id = bad.id SET good.v = 'x'", "INSERT INTO good SELECT f(1), 'x'"],
)
def test_what_does_not_concern_single_tables_stops_all_the_same(capture, statement):
    """A join has no plain answer to what it writes, nor has a function that writes."""
    change(capture)
    capture.execute("CREATE FUNCTION f(x INT) RETURNS INT NOT DETERMINISTIC NO SQL RETURN x + 70")
    as_statement(capture, statement)
    before = cursor(capture)
    (window,) = capture.pipeline.plan(by="test")
    with pytest.raises(UnknownEvent):
        capture.pipeline.drain(window)
    assert not [key for key in capture.visible() if "/batches/" in key]
    assert cursor(capture).position == before.position


def test_a_wrong_checksum_stops_all_the_same(capture, monkeypatch):
    """It says that bytes were lost, of whatever table."""
    change(capture, BAD_TEXT)
    window = planned(capture)
    read = ServerStream.read_into

    def broken(self, view):
        count = read(self, view)
        at = bytes(view[:count]).find(b"after")
        if at >= 0:
            view[at] ^= 1
        return count

    monkeypatch.setattr(ServerStream, "read_into", broken)
    with pytest.raises(ChecksumMismatch):
        capture.pipeline.drain(window)
    assert issubclass(ChecksumMismatch, DecodeError)


def test_a_table_whose_first_snapshot_fails_is_quarantined(any_server, database, tmp_path):
    """Nothing of it is merged, and the other table's snapshot is."""
    capture = Capture(any_server, database, tmp_path, on_error="quarantine")
    capture.execute("CREATE TABLE bad (id INT PRIMARY KEY, v VARCHAR(9) CHARACTER SET cp1250)")
    capture.execute("CREATE TABLE good (id INT PRIMARY KEY)")
    capture.execute(BAD_TEXT)
    capture.execute("INSERT INTO good VALUES (1)")
    for unit in capture.pipeline.plan(by="test"):
        capture.pipeline.drain(unit)
    ack = capture.pipeline.ack_drain(by="test")
    assert [one.table for one in ack.quarantined] == [f"{database}.bad"]
    assert ack.waiting == 0
    plan = capture.pipeline.plan_merge(by="test")
    assert ["good" in key for key in plan.batches] == [True]
    assert capture.pipeline.plan(by="test") == []
