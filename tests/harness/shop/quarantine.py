"""A source with two tables; tests quarantine one of them."""

from __future__ import annotations

from cdc_lib.model.cursor import DRAIN
from cdc_lib.store import layout
from tests.harness.binlog.capture import SOURCE, Capture

BAD_TEXT = "INSERT INTO bad VALUES (2, _cp1250 X'6181C462')"
"""0x81 is not a character of cp1250."""

LOSSY = "ALTER TABLE bad TRUNCATE PARTITION p0"
"""No event names the deleted rows: the table gets a new snapshot automatically."""

STATEMENT_LOGGED = "INSERT INTO {} VALUES (8, 'secret')"
"""To be run by :func:`as_statement`, which leaves rows out of the binlog."""


def capturing(server, database, folder, **settings):
    """Capture two tables from now on: `bad`, in which tests cause faults, and `good`."""
    capture = Capture(server, database, folder, **{"start": "latest", "on_error": "quarantine", **settings})
    parts = "PARTITION BY HASH (id) PARTITIONS 1"
    capture.execute(f"CREATE TABLE IF NOT EXISTS bad (id INT PRIMARY KEY, v VARCHAR(9) CHARACTER SET cp1250) {parts}")
    capture.execute(f"CREATE TABLE IF NOT EXISTS good (id INT PRIMARY KEY, v VARCHAR(9)) {parts}")
    assert not capture.pipeline.plan(by="test")
    return capture


def change(capture, *statements):
    """Change both tables around some statements."""
    capture.execute("INSERT INTO bad VALUES (1, 'in clear')")
    capture.execute("INSERT INTO good VALUES (1, 'in clear')")
    for statement in statements:
        capture.execute(statement)
    capture.execute("INSERT INTO good VALUES (3, 'after')")


def as_statement(capture, statement):
    """Run a statement in a session that writes no row events."""
    with capture.server.connect(database=capture.database) as session, session.cursor() as sql:
        sql.execute("SET SESSION binlog_format = 'STATEMENT'")
        sql.execute(statement)
        session.commit()


def planned(capture):
    (window,) = capture.pipeline.plan(by="test")
    return window


def manifest_of(capture, window):
    manifest = capture.manifest(layout.manifest_key(window))
    assert manifest is not None
    return manifest


def rounds(capture, count=1):
    """Plan, drain and ack ``count`` times; returns the last ack."""
    for _ in range(count):
        for unit in capture.pipeline.plan(by="test"):
            capture.pipeline.drain(unit)
        ack = capture.pipeline.ack_drain(by="test")
    return ack


def cursor(capture):
    return capture.pipeline.cursors.load(SOURCE, DRAIN)
