"""Windows and snapshots of real servers hold what SELECT shows, once and only once."""

from __future__ import annotations

import hashlib
import re
import threading
import time
from dataclasses import replace
from itertools import pairwise

import pytest

from cdc_lib.binlog.framing.receiver import Receiver
from cdc_lib.errors import PositionPurged, ServerChanged
from cdc_lib.model import pace
from cdc_lib.model.position import Position
from cdc_lib.model.window import Window
from cdc_lib.mysql.binlog_stream import ServerStream
from cdc_lib.store import layout
from cdc_lib.store.objects.local import LocalStore
from tests.harness.binlog.capture import Capture
from tests.harness.binlog.windows import follows


@pytest.fixture
def capture(any_server, database, tmp_path):
    return Capture(any_server, database, tmp_path)


def test_changes_are_in_the_order_of_the_binlog(capture):
    """Insert, update and delete as c, u and d; an update keeps its after image."""
    capture.execute("CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(10))")
    start = capture.head()
    capture.execute("INSERT INTO a VALUES (1, 'x'), (2, 'y')")
    capture.execute("UPDATE a SET v = 'z' WHERE id = 1")
    capture.execute("DELETE FROM a WHERE id = 2")
    manifest = capture.drain(capture.window_from(start))
    rows = [(row["_op"], row["id"], row["v"]) for row in capture.rows(manifest, "a")]
    assert rows == [("c", 1, "x"), ("c", 2, "y"), ("u", 1, "z"), ("d", 2, "y")]
    assert manifest.transactions == 3
    assert manifest.gtid_first
    assert manifest.gtid_last == capture.rows(manifest, "a")[-1]["_gtid"]


def test_an_update_that_changes_the_key_becomes_delete_and_update(capture):
    """The old key must vanish from the lake."""
    capture.execute("CREATE TABLE a (id INT PRIMARY KEY, v INT)")
    capture.execute("INSERT INTO a VALUES (1, 10)")
    start = capture.head()
    capture.execute("UPDATE a SET id = 2 WHERE id = 1")
    manifest = capture.drain(capture.window_from(start))
    assert capture.ops(manifest, "a") == [("d", 1), ("u", 2)]


def test_an_update_of_a_table_without_a_key_becomes_delete_and_update(capture):
    """Both images are needed to find the row."""
    capture.execute("CREATE TABLE a (id INT, v INT)")
    capture.execute("INSERT INTO a VALUES (1, 10), (1, 10)")
    start = capture.head()
    capture.execute("UPDATE a SET v = 11 LIMIT 1")
    manifest = capture.drain(capture.window_from(start))
    assert [(row["_op"], row["v"]) for row in capture.rows(manifest, "a")] == [("d", 10), ("u", 11)]


def test_a_key_of_several_columns_is_compared_in_whole(capture):
    """A change in any of its columns is a change of the key; in none, it is a plain update."""
    capture.execute("CREATE TABLE a (x INT, y VARCHAR(9), v INT, PRIMARY KEY (y, x))")
    capture.execute("INSERT INTO a VALUES (1, 'p', 0), (2, 'q', 0)")
    start = capture.head()
    capture.execute("UPDATE a SET v = 1 WHERE x = 1")
    capture.execute("UPDATE a SET y = 'Q' WHERE x = 2")
    manifest = capture.drain(capture.window_from(start))
    assert capture.ops(manifest, "a", "y") == [("u", "p"), ("d", "q"), ("u", "Q")]


def busy(capture):
    """Rows of two tables over a layout change and back, so that several parts and row groups arise."""
    capture.execute("CREATE TABLE a (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(200))")
    capture.execute("CREATE TABLE b (id INT PRIMARY KEY AUTO_INCREMENT, v BLOB)")
    start = capture.head()
    for turn in range(6):
        capture.execute("INSERT INTO a (v) VALUES " + ",".join(f"('{turn}-{i}')" for i in range(20)))
        capture.execute(f"INSERT INTO b (v) VALUES (REPEAT('{turn}', 3000)), (NULL)")
        capture.execute("UPDATE a SET v = CONCAT(v, 'é') WHERE id % 7 = 0")
        if turn == 2:
            capture.execute("ALTER TABLE a ADD COLUMN extra INT NULL")
        if turn == 4:
            capture.execute("ALTER TABLE a DROP COLUMN extra")
    return capture.window_from(start)


def test_draining_a_window_again_elsewhere_gives_the_same_bytes(any_server, database, tmp_path, monkeypatch):
    """Also when the bytes come in other portions: nothing of the wire's timing reaches the files."""
    settings = {"drain": {"row_group_rows": 35}}
    first = Capture(any_server, database, tmp_path / "first", **settings)
    window = busy(first)
    once = first.drain(window)
    assert len(once.files) >= 3
    for number, most in enumerate((16 << 20, 61, 1024)):
        monkeypatch.setattr(ServerStream, "read_into", _at_most(most))
        other = Capture(any_server, database, tmp_path / str(number), **settings)
        again = other.drain(window)
        assert again.files == once.files
        assert replace(again, ddl=()) == replace(once, ddl=())
        for file in again.files:
            data = other.store.get(layout.beside(layout.manifest_key(window), file.path))
            assert hashlib.sha256(data.data).hexdigest() == file.sha256


def test_the_parts_of_a_table_are_numbered_alike_in_any_portions(any_server, database, tmp_path, monkeypatch):
    """Also when a later layout fills its first row group before an earlier one that comes back."""
    settings = {"drain": {"row_group_rows": 10}}
    first = Capture(any_server, database, tmp_path / "first", **settings)
    first.execute("CREATE TABLE a (id INT PRIMARY KEY AUTO_INCREMENT, v INT)")
    start = first.head()
    rows = "INSERT INTO a (v) VALUES " + ",".join(["(1)"] * 7)
    first.execute(rows)
    first.execute("ALTER TABLE a ADD COLUMN extra INT NULL")
    first.execute(rows)
    first.execute(rows)
    first.execute("ALTER TABLE a DROP COLUMN extra")
    first.execute(rows)
    window = first.window_from(start)
    once = first.drain(window)
    monkeypatch.setattr(ServerStream, "read_into", _at_most(61))
    assert Capture(any_server, database, tmp_path / "second", **settings).drain(window).files == once.files


_READ = ServerStream.read_into


def _at_most(most):
    return lambda stream, view: _READ(stream, view[:most])


def test_small_receive_buffers_give_the_same_rows(any_server, database, tmp_path, monkeypatch):
    """Events that fit in no buffer are gathered."""
    first = Capture(any_server, database, tmp_path / "first")
    window = busy(first)
    once = first.drain(window)
    real = Receiver.__init__
    monkeypatch.setattr(Receiver, "__init__", lambda self, stream: real(self, stream, 256, 3))
    assert Capture(any_server, database, tmp_path / "second").drain(window).files == once.files


def test_a_long_window_and_a_long_snapshot_log_their_progress(capture, monkeypatch, caplog):
    """How much of it is done, with every portion once the time for a line has come; short work logs nothing."""
    capture.execute("CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(10))")
    start = capture.head()
    capture.execute("INSERT INTO a VALUES (1, 'x'), (2, 'y')")
    caplog.set_level("INFO", "cdc_lib")
    window = capture.window_from(start)
    capture.drain(Window(window.source, 2, window.start, window.stop))
    capture.run_snapshot("a")
    assert caplog.messages == []
    monkeypatch.setattr(pace, "EVERY", 0.0)
    capture.drain(window)
    lines = [line for line in caplog.messages if line.startswith(f"window {window.id}: ")]
    assert lines
    assert all(re.search(r": [\d,]+ bytes of about [\d,]+ in \d+ s, ", line) for line in lines)
    caplog.clear()
    capture.reader.read(replace(capture.task("a"), snapshot_id="000002-test"), capture.facts().identity)
    assert [line.partition(" in ")[0] for line in caplog.messages] == [f"snapshot of {capture.database}.a: 2 rows"]


def test_draining_a_unit_again_writes_nothing(capture):
    """The manifest that is counts."""
    window = busy(capture)
    identity = capture.facts().identity
    first = capture.drainer.window(window, identity)
    before = {info.key: info.modified for info in capture.store.list("")}
    again = capture.drainer.window(window, identity)
    assert (first.batches, again.batches) == (1, 0)
    assert again.rows == first.rows
    assert {info.key: info.modified for info in capture.store.list("")} == before
    assert capture.run_snapshot("a").batches == 1
    assert capture.run_snapshot("a").batches == 0


def test_two_drains_of_one_window_at_the_same_time_leave_one_batch(capture):
    """As when a task is cleared while its process still runs."""
    window = busy(capture)
    identity = capture.facts().identity
    faults = []

    def drain():
        try:
            capture.drainer.window(window, identity)
        except Exception as error:  # noqa: BLE001 - shown by the assertion
            faults.append(error)

    threads = [threading.Thread(target=drain) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # The server may end the dump of one in favour of the other, which is then tried again.
    assert all(getattr(fault, "retryable", False) for fault in faults), faults
    assert len(faults) < 2
    assert capture.drain(window).rows


def test_a_failed_drain_leaves_no_threads_or_files(capture, monkeypatch):
    """Neither a manifest nor a part that a reader could see."""
    window = busy(capture)
    read, calls = ServerStream.read_into, []

    def broken(stream, view):
        calls.append(1)
        if len(calls) > 40:
            raise ZeroDivisionError
        return read(stream, view[:400])

    monkeypatch.setattr(ServerStream, "read_into", broken)
    with pytest.raises(ZeroDivisionError):
        capture.drain(window)
    monkeypatch.undo()
    assert capture.visible() == []
    assert capture.drain(window).rows


def test_a_drain_whose_store_fails_leaves_no_manifest(capture, monkeypatch):
    """The last thing written is what makes the batch exist."""
    window = busy(capture)
    monkeypatch.setattr(LocalStore, "put_if_absent", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        capture.drain(window)
    monkeypatch.undo()
    assert capture.store.get(layout.manifest_key(window)) is None
    assert capture.drain(window).rows


def test_a_row_of_twenty_megabytes_arrives_whole(any_server, database, tmp_path):
    """Its event goes over two packets of the wire, in the binlog and in the SELECT."""
    capture = Capture(any_server, database, tmp_path)
    capture.execute("CREATE TABLE a (id INT PRIMARY KEY, v LONGBLOB)")
    start = capture.head()
    value = bytes(range(256)) * (20 << 12)
    old = any_server.variable("max_allowed_packet")
    any_server.execute(f"SET GLOBAL max_allowed_packet = {64 << 20}")
    try:
        capture.execute("INSERT INTO a VALUES (0, 'before')")
        with any_server.connect(database=database, max_allowed_packet=64 << 20) as session, session.cursor() as cursor:
            cursor.execute("INSERT INTO a VALUES (1, _binary %s)", [value])
        capture.execute("INSERT INTO a VALUES (2, 'after')")
        manifest = capture.drain(capture.window_from(start))
        (chunk,) = capture.snapshot("a")
    finally:
        any_server.execute(f"SET GLOBAL max_allowed_packet = {old}")
    for batch in (manifest, chunk):
        rows = {row["id"]: row["v"] for row in capture.rows(batch, "a")}
        assert rows.keys() == {0, 1, 2}
        assert rows[1] == value
        assert (rows[0], rows[2]) == (b"before", b"after")


def test_windows_over_several_files_tile_the_stream(any_server, database, tmp_path):
    """Each change is in exactly one of them."""
    capture = Capture(any_server, database, tmp_path, start="latest", drain={"max_window_bytes": "1KiB"})
    capture.execute("CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(2000))")
    assert not capture.pipeline.plan(by="test")
    for turn in range(5):
        capture.execute(f"INSERT INTO a VALUES ({turn}, REPEAT('x', 2000))")
        capture.execute("FLUSH BINARY LOGS")
    capture.execute("INSERT INTO a VALUES (5, '')")
    before = capture.head()
    windows = capture.pipeline.plan(by="test")
    assert len(windows) == 6
    assert all(follows(later, earlier) for earlier, later in pairwise(windows))
    assert before <= windows[-1].stop <= capture.head()  # MariaDB notes the end of a file a little later
    found = [row["id"] for window in windows for row in capture.rows(capture.drain(window), "a")]
    assert found == [0, 1, 2, 3, 4, 5]


def test_a_window_over_several_files_is_read_in_one(any_server, database, tmp_path):
    """The stream continues in the next file; offsets begin again there."""
    capture = Capture(any_server, database, tmp_path)
    capture.execute("CREATE TABLE a (id INT PRIMARY KEY)")
    start = capture.head()
    for turn in range(3):
        capture.execute(f"INSERT INTO a VALUES ({turn})")
        capture.execute("FLUSH BINARY LOGS")
    manifest = capture.drain(capture.window_from(start))
    rows = capture.rows(manifest, "a")
    assert [row["id"] for row in rows] == [0, 1, 2]
    assert [row["_binlog"] for row in rows] == [start.file_number + turn for turn in range(3)]


def purge(capture, file):
    """Purge up to the end of the binlog until a file is gone: a server keeps files that its engine still needs, or a replica reads."""
    if capture.server.variable("slave_connections_needed_for_purge"):  # MariaDB waits for a replica otherwise
        capture.execute("SET GLOBAL slave_connections_needed_for_purge = 0")
    deadline = time.monotonic() + 60
    while file in [row[0] for row in capture.execute("SHOW BINARY LOGS")]:
        assert time.monotonic() < deadline, capture.execute("SHOW PROCESSLIST")
        capture.execute("FLUSH BINARY LOGS")
        capture.execute(f"PURGE BINARY LOGS TO '{capture.head().file}'")
        time.sleep(0.2)


def test_a_purged_file_is_reported(any_server, database, tmp_path):
    """The cursor cannot continue, and does not skip."""
    capture = Capture(any_server, database, tmp_path, start="latest")
    capture.execute("CREATE TABLE a (id INT PRIMARY KEY)")
    capture.pipeline.plan(by="test")
    capture.execute("INSERT INTO a VALUES (1)")
    capture.execute("FLUSH BINARY LOGS")
    capture.execute("FLUSH BINARY LOGS")
    (window,) = capture.pipeline.plan(by="test")
    purge(capture, window.start.file)
    with pytest.raises(PositionPurged):
        capture.pipeline.plan(by="test")
    with pytest.raises(Exception, match=window.start.file):
        capture.drain(window)
    assert not [key for key in capture.visible() if key.endswith("manifest.json")]


def test_another_server_is_reported(mysql_server, mariadb_server, mysql_database, tmp_path):
    """Positions of one server mean nothing on another."""
    capture = Capture(mysql_server, mysql_database, tmp_path, start="latest")
    capture.pipeline.plan(by="test")
    mysql_server.execute("CREATE TABLE a (id INT PRIMARY KEY)", database=mysql_database)
    (window,) = capture.pipeline.plan(by="test")
    other = Capture(mariadb_server, mysql_database, tmp_path, start="latest")
    with pytest.raises(ServerChanged):
        other.pipeline.plan(by="test")
    with pytest.raises(ServerChanged):
        other.pipeline.drain(window)
    with pytest.raises(ServerChanged):
        other.reader.read(capture.task("a"), capture.facts().identity)


def test_tables_that_are_not_captured_stop_nothing(any_server, database, tmp_path):
    """Neither their rows nor their DDL, whatever they do."""
    capture = Capture(any_server, database, tmp_path, tables={"include": [f"{database}.a"]})
    capture.execute("CREATE TABLE a (id INT PRIMARY KEY)")
    start = capture.head()
    capture.execute("CREATE TABLE b (id INT PRIMARY KEY, g GEOMETRY NULL)")
    capture.execute("INSERT INTO b VALUES (1, ST_GeomFromText('POINT(1 1)'))")
    capture.execute("INSERT INTO a VALUES (1)")
    capture.execute("ALTER TABLE b ADD COLUMN v INT")
    capture.execute("TRUNCATE TABLE b")
    capture.execute("RENAME TABLE b TO c")
    capture.execute("DROP TABLE c")
    capture.execute("CREATE VIEW w AS SELECT * FROM a")
    capture.execute("CREATE USER IF NOT EXISTS nobody@localhost")
    capture.execute("DROP USER nobody@localhost")
    capture.execute("INSERT INTO a VALUES (2)")
    manifest = capture.drain(capture.window_from(start))
    assert capture.ops(manifest, "a") == [("c", 1), ("c", 2)]
    assert {file.table for file in manifest.files} == {f"{database}.a"}
    assert not manifest.ddl


def test_a_rolled_back_transaction_leaves_nothing_and_a_savepoint_what_it_kept(capture):
    """What was rolled back inside a transaction is not in the binlog."""
    capture.execute("CREATE TABLE a (id INT PRIMARY KEY)")
    start = capture.head()
    with capture.server.connect(database=capture.database, autocommit=False) as session, session.cursor() as cursor:
        cursor.execute("INSERT INTO a VALUES (1)")
        session.rollback()
        cursor.execute("INSERT INTO a VALUES (2)")
        cursor.execute("SAVEPOINT s")
        cursor.execute("INSERT INTO a VALUES (3)")
        cursor.execute("ROLLBACK TO s")
        cursor.execute("INSERT INTO a VALUES (4)")
        session.commit()
    manifest = capture.drain(capture.window_from(start))
    assert capture.ops(manifest, "a") == [("c", 2), ("c", 4)]
    assert manifest.transactions == 1


def test_ddl_of_a_captured_table_is_in_the_manifest(capture):
    """With its position and text; rows after it have the new columns."""
    capture.execute("CREATE TABLE a (id INT PRIMARY KEY)")
    start = capture.head()
    capture.execute("INSERT INTO a VALUES (1)")
    capture.execute("ALTER TABLE a ADD COLUMN imported_at DATETIME NULL")
    capture.execute("INSERT INTO a VALUES (2, '2026-01-02 03:04:05')")
    manifest = capture.drain(capture.window_from(start))
    (ddl,) = manifest.ddl
    assert ddl.statement == "ALTER TABLE a ADD COLUMN imported_at DATETIME NULL"
    assert start < ddl.position
    assert [one.column_names for one in capture.tables(manifest, "a")][1][-1] == "imported_at"
    assert len(manifest.schemas) == 2


def test_an_empty_window_leaves_a_batch_without_files(capture):
    """So that it can be acknowledged."""
    start = capture.head()
    capture.server.execute("FLUSH BINARY LOGS")
    manifest = capture.drain(capture.window_from(start))
    assert manifest.files == ()
    assert manifest.first_time is None


def test_a_position_inside_a_transaction_is_refused(capture):
    """A window that starts or ends there is no window."""
    capture.execute("CREATE TABLE a (id INT PRIMARY KEY)")
    start = capture.head()
    capture.execute("INSERT INTO a VALUES (1)")
    whole = capture.window_from(start)
    offset = capture.rows(capture.drain(whole), "a")[0]["_offset"]
    inside = Position(start.file, offset)
    for bounds in ((inside, whole.stop), (start, inside)):
        with pytest.raises(Exception, match=start.file):
            capture.drain(replace(whole, start=bounds[0], stop=bounds[1]))
