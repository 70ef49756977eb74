"""What the binlog does not show row by row stops the window, by name, file and offset; the cursor stays."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_lib.errors import BatchNotDurable, DecodeError, UnknownEvent
from cdc_lib.model.cursor import DRAIN
from tests.harness.binlog.capture import SOURCE, Capture, row_metadata


@pytest.fixture
def capture(any_server, database, tmp_path):
    capture = Capture(any_server, database, tmp_path, start="latest")
    capture.execute("CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(20))")
    capture.execute("INSERT INTO a VALUES (1, 'x'), (2, 'y')")
    assert not capture.pipeline.plan(by="test")
    capture.execute("INSERT INTO a VALUES (3, 'z')")
    return capture


def in_session(capture, *statements, **options):
    with capture.server.connect(database=capture.database, **options) as session, session.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def assert_stops(capture, kind):
    """The window is refused at a place after the last good row, nothing is written, the cursor stays."""
    before = capture.pipeline.cursors.load(SOURCE, DRAIN)
    capture.execute("INSERT INTO a (id) VALUES (99) ON DUPLICATE KEY UPDATE v = v")
    (window,) = capture.pipeline.plan(by="test")
    with pytest.raises(kind) as caught:
        capture.pipeline.drain(window)
    assert isinstance(caught.value, DecodeError)
    assert not caught.value.retryable
    assert caught.value.hint
    assert caught.value.context["file"] == window.start.file
    assert window.start.offset < caught.value.context["offset"] < window.stop.offset
    with pytest.raises(BatchNotDurable):
        capture.pipeline.ack_drain(by="test")
    after = capture.pipeline.cursors.load(SOURCE, DRAIN)
    assert after.position == before.position == window.start
    assert not [key for key in capture.visible() if "/batches/" in key]
    return caught.value


def test_rows_removed_without_an_event_stop_a_table_that_cannot_be_resnapshotted(any_server, database, tmp_path):
    """Its key has a mask, so that no snapshot of it is taken; others are read again by themselves."""
    masks = [{"tables": "*.a", "columns": ["id"], "mask": "hash"}]
    capture = Capture(any_server, database, tmp_path, start="latest", masks=masks, mask_key_env="CDC_TEST_MASK_KEY")
    credentials = replace(capture.credentials, mask_key="a long key that nobody guesses")
    capture.pipeline = replace(capture.pipeline, credentials=credentials)
    capture.execute("CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(20)) PARTITION BY HASH (id) PARTITIONS 1")
    assert not capture.pipeline.plan(by="test")
    capture.execute("INSERT INTO a VALUES (3, 'z')")
    capture.execute("ALTER TABLE a TRUNCATE PARTITION p0")
    assert "a statement" in str(assert_stops(capture, UnknownEvent))


def test_a_statement_instead_of_rows_stops_the_window(capture):
    """A session may switch to STATEMENT, whatever the server's setting."""
    in_session(capture, "SET SESSION binlog_format = 'STATEMENT'", "INSERT INTO a VALUES (4, 's')")
    assert_stops(capture, UnknownEvent)


def test_a_delete_that_begins_with_a_query_stops_the_window(mysql_server, mysql_database, tmp_path):
    """Its first word is WITH."""
    capture = Capture(mysql_server, mysql_database, tmp_path, start="latest")
    capture.execute("CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(20))")
    assert not capture.pipeline.plan(by="test")
    in_session(
        capture,
        "SET SESSION binlog_format = 'STATEMENT'",
        "WITH x AS (SELECT 7 AS id) DELETE FROM a WHERE id IN (SELECT id FROM x)",
    )
    assert_stops(capture, UnknownEvent)


def test_rows_with_unknown_columns_are_read_by_a_new_snapshot(capture):
    """When binlog_row_metadata went back to its default for a while and the table is another one now."""
    with row_metadata(capture.server, "MINIMAL"):
        capture.execute("FLUSH TABLES a")
        capture.execute("INSERT INTO a VALUES (4, 'q')")
    capture.execute("ALTER TABLE a ADD w INT")
    (window,) = capture.pipeline.plan(by="test")
    assert [(one.table.table, one.fault.code) for one in capture.pipeline.drain(window).quarantined] == [
        ("a", "table_replaced")
    ]
