"""Rows of a table whose changes are kept one by one are in its chunks or in its windows, never in both."""

from __future__ import annotations

import dataclasses
import threading
from contextlib import contextmanager

import pytest

from cdc_lib.drain.window import Drainer
from cdc_lib.errors import SourceUnavailable, UnsupportedServer
from cdc_lib.mysql import table_lock
from cdc_lib.mysql.watermark import Watermarks
from cdc_lib.snapshot import exact
from tests.harness.binlog.capture import Capture

BUSY = "INSERT INTO a VALUES ({number})"
KINDS = {
    "without a key": ("CREATE TABLE a (id INT)", {}),
    "append": ("CREATE TABLE a (id INT PRIMARY KEY)", {"modes": [{"tables": "*.a", "mode": "append"}]}),
    "scd2": ("CREATE TABLE a (id INT PRIMARY KEY)", {"modes": [{"tables": "*.a", "mode": "scd2"}]}),
}


@pytest.fixture(params=KINDS.values(), ids=KINDS)
def capture(any_server, database, tmp_path, request):
    made, settings = request.param
    capture = Capture(any_server, database, tmp_path, **settings)
    capture.execute(made)
    capture.execute("CREATE TABLE other (id INT PRIMARY KEY)")
    capture.execute("INSERT INTO a VALUES (-1), (-2)")
    return capture


@pytest.fixture
def after_watermark(monkeypatch):
    """Runs a statement right after each of the first low watermarks; returns how many were read."""
    read = []
    real = Watermarks.before_select

    def arrange(run, times):
        def before_select(self, *arguments):
            at = real(self, *arguments)
            if len(read) < times:
                run(len(read))
            read.append(at)
            return at

        monkeypatch.setattr(Watermarks, "before_select", before_select)
        return read

    return arrange


def all_rows(capture, start):
    """The ids that the lake gets: those of the chunks, and those of changes from their low watermark on."""
    chunks = capture.snapshot("a")
    found = [row["id"] for chunk in chunks for row in capture.rows(chunk, "a")]
    (chunk,) = chunks
    window = capture.drain(capture.window_from(start))
    low = chunk.chunk.low_watermark
    at = [(row["_binlog"], row["_offset"], row["id"]) for row in capture.rows(window, "a")]
    return found, [number for file, offset, number in at if (file, offset) >= (low.file_number, low.offset)]


def at_source(capture):
    return sorted(number for (number,) in capture.execute("SELECT id FROM a"))


def test_a_row_between_the_low_watermark_and_the_select_is_there_once(capture, after_watermark):
    """Rows that come right after each of the first three watermarks, and rows after the SELECT."""
    start = capture.head()
    after_watermark(lambda number: capture.execute(BUSY.format(number=number)), times=3)
    found, later = all_rows(capture, start)
    assert sorted(found + later) == at_source(capture)


def test_changes_of_other_tables_do_not_read_it_again(capture, after_watermark):
    """Only this table's changes count."""
    start = capture.head()
    read = after_watermark(lambda number: capture.execute(f"INSERT INTO other VALUES ({number})"), times=99)
    found, later = all_rows(capture, start)
    assert sorted(found + later) == at_source(capture)
    assert len(read) == 1


IN_BETWEEN = {
    "a compressed transaction": ["SET SESSION binlog_transaction_compression = ON", "INSERT INTO a VALUES (7)"],
    "an XA transaction": ["XA COMMIT 'x'"],
    "a statement": ["ALTER TABLE a ADD COLUMN w INT DEFAULT 5"],
    "all rows removed": ["TRUNCATE TABLE a"],
}


@pytest.mark.parametrize("statements", IN_BETWEEN.values(), ids=IN_BETWEEN)
def test_what_changes_the_table_between_watermark_and_select_reads_it_again(busy, after_watermark, statements):
    """In each form that the binlog has; the rows and columns are those of the source, and the position is after it."""
    capture = busy()
    capture.execute("INSERT INTO a VALUES (1)")
    with capture.server.connect(database=capture.database, autocommit=True) as session, session.cursor() as cursor:
        for statement in ("XA START 'x'", "INSERT INTO a VALUES (2)", "XA END 'x'", "XA PREPARE 'x'"):
            if statements == IN_BETWEEN["an XA transaction"]:
                cursor.execute(statement)

    def run(number):
        with capture.server.connect(database=capture.database, autocommit=True) as session, session.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    read = after_watermark(run, times=1)
    (chunk,) = capture.snapshot("a")
    assert len(read) == 2
    assert chunk.chunk.low_watermark == capture.head()
    columns = [name for (name, *_) in capture.execute("SHOW COLUMNS FROM a")]
    rows = [tuple(row[name] for name in columns) for row in capture.rows(chunk, "a")]
    assert sorted(rows) == sorted(capture.execute("SELECT * FROM a"))


@contextmanager
def writers(capture, count):
    """Sessions that insert rows all the time."""
    stop = threading.Event()

    def write(first):
        with capture.server.connect(database=capture.database, autocommit=True) as session, session.cursor() as cursor:
            number = first
            while not stop.is_set():
                cursor.execute(BUSY.format(number=number))
                number += count

    threads = [threading.Thread(target=write, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


@pytest.fixture
def busy(mysql_server, mysql_database, tmp_path, monkeypatch):
    """Makes a source with a table without a key, in which a row comes after each low watermark."""
    monkeypatch.setattr(exact, "_TRIES", 3)

    def make(**settings):
        capture = Capture(mysql_server, mysql_database, tmp_path, **settings)
        capture.execute("CREATE TABLE a (id INT)")
        return capture

    return make


def test_a_table_that_changes_all_the_time_stops_until_it_may_be_locked(busy, after_watermark, mysql_database):
    """Its chunk is not written; the hints name the setting and the privilege, one after the other."""
    capture = busy()
    after_watermark(lambda number: capture.execute(BUSY.format(number=number)), times=99)
    with pytest.raises(SourceUnavailable, match="a table changes all the time") as caught:
        capture.snapshot("a")
    assert "snapshot.lock_tables" in caught.value.hint
    assert caught.value.retryable
    allowed = capture.config.snapshot.model_copy(update={"lock_tables": True})
    config = capture.config.model_copy(update={"snapshot": allowed})
    capture.drainer = Drainer(dataclasses.replace(capture.pipeline, config=config))
    with pytest.raises(UnsupportedServer, match="a table cannot be locked") as refused:
        capture.snapshot("a")
    assert f"GRANT LOCK TABLES ON `{mysql_database}`.*" in refused.value.hint
    assert not [key for key in capture.visible() if "/snapshots/" in key]
    capture.server.execute(f"GRANT LOCK TABLES ON `{mysql_database}`.* TO {capture.server.cdc_user}")
    (chunk,) = capture.snapshot("a")
    assert sorted(row["id"] for row in capture.rows(chunk, "a")) == at_source(capture)


def test_a_lock_waits_for_open_transactions_and_gives_up(busy, after_watermark, mysql_database, monkeypatch):
    """So that new writers do not wait for a forgotten transaction; the next try reads the table."""
    monkeypatch.setattr(table_lock, "LOCK_SECONDS", 1)
    capture = busy(snapshot={"lock_tables": True})
    capture.server.execute(f"GRANT LOCK TABLES ON `{mysql_database}`.* TO {capture.server.cdc_user}")
    after_watermark(lambda number: capture.execute(BUSY.format(number=number)), times=99)
    with capture.server.connect(database=capture.database) as session, session.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute(BUSY.format(number=77))
        with pytest.raises(SourceUnavailable, match="a table could not be locked within 1 seconds"):
            capture.snapshot("a")
        cursor.execute("COMMIT")
    (chunk,) = capture.snapshot("a")
    assert sorted(row["id"] for row in capture.rows(chunk, "a")) == at_source(capture)


def test_a_table_that_changes_all_the_time_is_locked_for_a_moment(busy, after_watermark, mysql_database):
    """With several writers, of whom none fails."""
    capture = busy(snapshot={"lock_tables": True})
    capture.server.execute(f"GRANT LOCK TABLES ON `{mysql_database}`.* TO {capture.server.cdc_user}")
    after_watermark(lambda number: capture.execute(BUSY.format(number=-1 - number)), times=99)
    start = capture.head()
    with writers(capture, 3):
        chunks = capture.snapshot("a")
    found = [row["id"] for chunk in chunks for row in capture.rows(chunk, "a")]
    window, low = capture.drain(capture.window_from(start)), chunks[0].chunk.low_watermark
    rows = [(row["_binlog"], row["_offset"], row["id"]) for row in capture.rows(window, "a")]
    later = [number for file, offset, number in rows if (file, offset) >= (low.file_number, low.offset)]
    assert later
    assert sorted(found + later) == at_source(capture)
