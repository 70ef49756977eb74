"""XA transactions in the drain: what is prepared lies apart, what is decided is listed, on both servers."""

from __future__ import annotations

import pytest

from tests.harness.binlog import xa
from tests.harness.binlog.capture import Capture


@pytest.fixture
def capture(any_server, database, tmp_path):
    capture = Capture(
        any_server, database, tmp_path, start="latest", tables={"include": [f"{database}.*"], "exclude": ["*.no"]}
    )
    for table in ("a", "b", "no"):
        capture.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY, v VARCHAR(20))")
    capture.execute("INSERT INTO a VALUES (1, 'x'), (2, 'y')")
    yield capture
    xa.rollback_all(any_server)


def prepare(capture, xid, *statements):
    xa.prepare(capture.server, capture.database, xid, *statements)


def xids(manifest):
    """Return the ids that a manifest names: prepared, committed, rolled back."""
    prepared = [one.xid for one in manifest.prepared]
    committed = [one.xid for one in manifest.xa_decisions if one.committed]
    return prepared, committed, [one.xid for one in manifest.xa_decisions if not one.committed]


X1, X2 = "X'7831',X'',1", "X'7832',X'6271',7"


def test_a_transaction_prepared_and_committed_in_one_window_is_stored_apart(capture):
    """Its rows bear the place where it began, and the decision names the place where they count."""
    start = capture.head()
    prepare(capture, "'x1'", "INSERT INTO a VALUES (3, 'p'), (4, 'p')", "UPDATE a SET v = 'q' WHERE id = 3")
    prepared_to = capture.head()
    capture.execute("INSERT INTO a VALUES (5, 'plain')")
    between = capture.head()
    xa.commit(capture.server, "'x1'")
    manifest = capture.drain(capture.window_from(start))
    assert capture.ops(manifest, "a") == [("c", 5)]
    assert xids(manifest) == ([X1], [X1], [])
    (prepared,), (decision,) = manifest.prepared, manifest.xa_decisions
    assert prepared.tables == (f"{capture.database}.a",)
    assert start <= prepared.start < prepared.position < prepared_to
    assert between < decision.position < manifest.window.stop
    assert decision.time.timestamp() > 1_600_000_000
    assert decision.gtid == manifest.gtid_last != manifest.gtid_first
    rows = capture.prepared_rows(manifest, "a")
    assert [(row["_op"], row["id"], row["v"]) for row in rows] == [("c", 3, "p"), ("c", 4, "p"), ("u", 3, "q")]
    assert len({row["_row"] for row in rows}) == len(rows)
    assert {(row["_binlog"], row["_offset"]) for row in rows} == {(prepared.start.file_number, prepared.start.offset)}


def test_a_format_of_more_than_32_bits_is_prepared_and_committed_as_one_transaction(capture):
    """MySQL takes it, and leaves the upper bits out of the event; MariaDB takes 31 bits."""
    if capture.server.flavor != "mysql":
        pytest.skip("MariaDB refuses the statement")
    start = capture.head()
    prepare(capture, "'x1','',8589934593", "INSERT INTO a VALUES (3, 'p')")
    xa.commit(capture.server, "'x1','',8589934593")
    manifest = capture.drain(capture.window_from(start))
    assert xids(manifest) == (["X'7831',X'',8589934593"], ["X'7831',X'',8589934593"], [])


def test_prepare_and_commit_in_two_windows_and_two_files(capture):
    """Each window tells its half, whichever is drained first."""
    start = capture.head()
    prepare(capture, "'x2','bq',7", "DELETE FROM a WHERE id = 1")
    first = capture.window_from(start)
    capture.execute("FLUSH BINARY LOGS")
    middle = capture.window_from(first.stop)
    xa.commit(capture.server, "'x2','bq',7")
    last = capture.window_from(middle.stop)
    decided = capture.drain(last)
    assert xids(decided) == ([], [X2], [])
    assert decided.xa_decisions[0].position.file_number == start.file_number + 1
    assert xids(capture.drain(middle)) == ([], [], [])
    opened = capture.drain(first)
    assert xids(opened) == ([X2], [], [])
    assert opened.files == decided.files == ()
    assert [(row["_op"], row["id"]) for row in capture.prepared_rows(opened, "a")] == [("d", 1)]


def test_a_rollback_is_recorded(capture):
    """In the transaction's window and in another, so that the lake forgets the transaction."""
    start = capture.head()
    prepare(capture, "'x1'", "INSERT INTO a VALUES (3, 'p')")
    first = capture.window_from(start)
    xa.rollback(capture.server, "'x1'")
    both = capture.drain(capture.window_from(start))
    assert xids(both) == ([X1], [], [X1])
    assert both.files == ()
    assert xids(capture.drain(capture.window_from(first.stop))) == ([], [], [X1])
    assert xids(capture.drain(first)) == ([X1], [], [])


def test_a_commit_in_one_phase_counts_in_its_own_window(capture):
    """MariaDB writes an ordinary transaction; MySQL one that is prepared and committed by one event."""
    start = capture.head()
    xa.in_one_phase(capture.server, capture.database, "'x1'", "INSERT INTO a VALUES (3, 'p')")
    manifest = capture.drain(capture.window_from(start))
    if capture.server.flavor == "mariadb":
        assert capture.ops(manifest, "a") == [("c", 3)]
        assert xids(manifest) == ([], [], [])
    else:
        assert xids(manifest) == ([X1], [X1], [])
        assert manifest.xa_decisions[0].position == manifest.prepared[0].position
        assert [row["id"] for row in capture.prepared_rows(manifest, "a")] == [3]


def test_overlapping_transactions_are_distinguished(capture):
    """By where they began."""
    start = capture.head()
    prepare(capture, "'x1'", "INSERT INTO a VALUES (3, 'x1'), (4, 'x1')", "INSERT INTO b VALUES (3, 'x1')")
    prepare(capture, "'x2','bq',7", "INSERT INTO a VALUES (5, 'x2')")
    capture.execute("INSERT INTO a VALUES (6, 'plain')")
    xa.commit(capture.server, "'x2','bq',7")
    xa.commit(capture.server, "'x1'")
    manifest = capture.drain(capture.window_from(start))
    assert xids(manifest) == ([X1, X2], [X2, X1], [])
    began = {one.xid: one.start.offset for one in manifest.prepared}
    rows = capture.prepared_rows(manifest, "a")
    assert [(row["_offset"], row["id"]) for row in rows] == [(began[X1], 3), (began[X1], 4), (began[X2], 5)]
    assert [row["id"] for row in capture.prepared_rows(manifest, "b")] == [3]
    assert manifest.prepared[0].tables == (f"{capture.database}.a", f"{capture.database}.b")


def test_a_transaction_without_captured_rows_costs_nothing(capture):
    """Over two windows its id is remembered, so that its commit is known; no file is written."""
    start = capture.head()
    prepare(capture, "'x1'", "INSERT INTO no VALUES (1, 'p')")
    first = capture.window_from(start)
    xa.commit(capture.server, "'x1'")
    both = capture.drain(capture.window_from(start))
    assert xids(both) == ([], [], [])
    assert (both.files, both.prepared_files) == ((), ())
    opened = capture.drain(first)
    assert xids(opened) == ([X1], [], [])
    assert opened.prepared[0].tables == ()


def test_a_commit_after_a_restart_of_the_server_is_recorded(capture):
    """The transaction outlives the server; its commit is in a new file."""
    start = capture.head()
    prepare(capture, "'x1'", "INSERT INTO a VALUES (3, 'p')")
    first = capture.window_from(start)
    capture.server.restart()
    second = capture.window_from(first.stop)
    xa.commit(capture.server, "'x1'")
    assert xids(capture.drain(first)) == ([X1], [], [])
    assert xids(capture.drain(second)) == ([], [], [])
    assert xids(capture.drain(capture.window_from(second.stop))) == ([], [X1], [])


def test_a_rollback_to_a_savepoint_and_reserved_bytes_in_an_id_are_read(capture):
    """Only what is prepared is in the binlog; ids are bytes."""
    start = capture.head()
    prepare(
        capture, "X'0027ff','b',3",
        "INSERT INTO a VALUES (3, 'stays')", "SAVEPOINT s", "INSERT INTO a VALUES (4, 'goes')", "ROLLBACK TO s",
    )  # fmt: skip
    xa.commit(capture.server, "X'0027ff','b',3")
    manifest = capture.drain(capture.window_from(start))
    assert xids(manifest)[1] == ["X'0027ff',X'62',3"]
    assert [row["id"] for row in capture.prepared_rows(manifest, "a")] == [3]


def test_a_large_transaction_stays_in_order_over_its_events_and_row_groups(capture, tmp_path):
    """Drained again, into another store, it gives the same files."""
    settings = {"start": "latest", "drain": {"row_group_rows": 1000}}
    small = Capture(capture.server, capture.database, tmp_path / "small", **settings)
    start = capture.head()
    values = ", ".join(f"({i}, REPEAT('v', 20))" for i in range(10, 5010))
    prepare(capture, "'x1'", f"INSERT INTO a VALUES {values}", "UPDATE a SET v = 'u' WHERE id >= 10")
    xa.commit(capture.server, "'x1'")
    window = capture.window_from(start)
    manifest = small.drain(window)
    rows = small.prepared_rows(manifest, "a")
    assert len({row["_row"] for row in rows}) == 10_000
    assert [row["id"] for row in rows] == 2 * list(range(10, 5010))
    again = Capture(capture.server, capture.database, tmp_path / "again", **settings).drain(window)
    assert again.prepared_files == manifest.prepared_files
    assert (again.prepared, again.xa_decisions) == (manifest.prepared, manifest.xa_decisions)


@pytest.mark.needs("compressed transactions")
def test_a_compressed_transaction_is_prepared_and_committed_like_any_other(capture):
    """MySQL puts all of an XA transaction up to XA PREPARE into the payload; MariaDB compresses its events."""
    start = capture.head()
    mysql = capture.server.flavor == "mysql"
    if not mysql:
        capture.execute("SET GLOBAL log_bin_compress = ON, log_bin_compress_min_len = 10")
    try:
        compress = ["SET SESSION binlog_transaction_compression = ON"] if mysql else []
        with capture.server.connect(database=capture.database) as session, session.cursor() as cursor:
            many = ", ".join(f"({i}, REPEAT('p', 20))" for i in range(10, 2010))
            changes = (
                f"INSERT INTO a VALUES {many}",
                "UPDATE a SET v = 'u' WHERE id > 10",
                "DELETE FROM a WHERE id = 10",
            )
            for statement in (*compress, "XA START 'x1'", *changes, "XA END 'x1'", "XA PREPARE 'x1'"):
                cursor.execute(statement)
    finally:
        if not mysql:
            capture.execute("SET GLOBAL log_bin_compress = OFF, log_bin_compress_min_len = 256")
    capture.execute("INSERT INTO b VALUES (5, 'plain')")
    xa.commit(capture.server, "'x1'")
    manifest = capture.drain(capture.window_from(start))
    assert capture.ops(manifest, "b") == [("c", 5)]
    assert xids(manifest) == ([X1], [X1], [])
    prepared = capture.prepared_rows(manifest, "a")
    ids = range(10, 2010)
    expected = [*(("c", i, "p" * 20) for i in ids), *(("u", i, "u") for i in ids[1:]), ("d", 10, "p" * 20)]
    assert [(row["_op"], row["id"], row["v"]) for row in prepared] == expected
    assert len({row["_row"] for row in prepared}) == len(prepared)


def test_images_without_all_columns_come_in_the_order_of_the_transaction(capture):
    """They lie in another file than whole images, and in one order with them."""
    capture.execute("ALTER TABLE a ADD COLUMN w INT")
    start = capture.head()
    prepare(
        capture,
        "'x1'",
        "UPDATE a SET v = 'first' WHERE id = 1",
        "SET SESSION binlog_row_image = 'MINIMAL'",
        "UPDATE a SET v = 'second' WHERE id = 1",
        "SET SESSION binlog_row_image = 'NOBLOB'",
        "UPDATE a SET v = 'third' WHERE id = 1",
    )
    xa.commit(capture.server, "'x1'")
    manifest = capture.drain(capture.window_from(start))
    assert len(manifest.prepared_files) == 2
    assert sum(file.partial_rows for file in manifest.prepared_files) == 1
    assert [row["v"] for row in capture.prepared_rows(manifest, "a")] == ["first", "second", "third"]
