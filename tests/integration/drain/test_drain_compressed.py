"""Compressed transactions and events of real servers hold what SELECT shows, mixed with plain ones."""

from __future__ import annotations

import random

import pytest

from cdc_lib.binlog import reader
from cdc_lib.binlog.rows.inflate_buffer import InflateBuffer
from cdc_lib.mysql.binlog_stream import ServerStream
from cdc_lib.mysql.preflight import judge
from tests.harness.binlog.capture import Capture

ORDER = ("_epoch", "_binlog", "_offset", "_row")


@pytest.fixture(params=["NONE", "CRC32"])
def mysql(request, mysql_server, mysql_database, tmp_path):
    """Capture over MySQL, without and with checksums."""
    mysql_server.execute(f"SET GLOBAL binlog_checksum = {request.param}")
    yield Capture(mysql_server, mysql_database, tmp_path)
    mysql_server.execute("SET GLOBAL binlog_checksum = CRC32")


@pytest.fixture
def mariadb(mariadb_server, mariadb_database, tmp_path):
    mariadb_server.execute("SET GLOBAL log_bin_compress = ON")
    yield Capture(mariadb_server, mariadb_database, tmp_path)
    mariadb_server.execute("SET GLOBAL log_bin_compress = OFF")


def session(capture):
    return capture.server.connect(database=capture.database)


def replayed(capture, manifest, table):
    """The table that its changes make, each applied in their order."""
    rows = {}
    changes = capture.rows(manifest, table)
    keys = [tuple(row[name] for name in ORDER) for row in changes]
    assert len(set(keys)) == len(keys)
    for row in changes:
        if row["_op"] == "d":
            del rows[row["id"]]
        else:
            rows[row["id"]] = tuple(value for name, value in row.items() if not name.startswith("_"))
    return sorted(rows.values())


def selected(capture, table):
    return [tuple(row) for row in capture.execute(f"SELECT * FROM {table} ORDER BY id")]


def kinds(capture, window):
    """The types of the events of a window, as the server names them."""
    shown = capture.execute(f"SHOW BINLOG EVENTS IN '{window.start.file}' FROM {window.start.offset}")
    return {row[2] for row in shown}


def write_mixed(cursor, switch):
    """Transactions over two tables, with compression switched on and off between them."""
    cursor.execute("CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(2000), w DECIMAL(9,2))")
    cursor.execute("CREATE TABLE b (id INT PRIMARY KEY, v TEXT) ENGINE=InnoDB")
    for turn in range(9):
        cursor.execute(f"{switch} = {'OFF' if turn % 3 == 2 else 'ON'}")
        cursor.execute("BEGIN")
        for row in range(30):
            key = turn * 100 + row
            cursor.execute(
                f"INSERT INTO a VALUES ({key}, REPEAT('x{turn}', {row * 20}), {row}.25), ({key + 50}, NULL, 0)"
            )
            cursor.execute(f"INSERT INTO b (id, v) VALUES ({key}, REPEAT('größe', {row}))")
        cursor.execute("SAVEPOINT s")
        cursor.execute("DELETE FROM b")
        cursor.execute("ROLLBACK TO s")
        cursor.execute(f"UPDATE a SET v = CONCAT('changed ', id) WHERE id % 7 = {turn % 7}")
        cursor.execute(f"UPDATE a SET id = id + 10000 WHERE id = {turn * 100 + 3}")
        cursor.execute(f"DELETE FROM b WHERE id % 11 = {turn}")
        cursor.execute("COMMIT")
        if turn == 4:
            cursor.execute("ALTER TABLE b ADD COLUMN extra INT NULL")


@pytest.mark.needs("compressed transactions")
def test_compressed_transactions_of_mysql_hold_what_select_shows(mysql):
    """Between plain ones, over several tables, in the order of their commits."""
    start = mysql.head()
    with session(mysql) as connection, connection.cursor() as cursor:
        write_mixed(cursor, "SET SESSION binlog_transaction_compression")
    window = mysql.window_from(start)
    assert {"Transaction_payload", "Write_rows"} <= kinds(mysql, window)
    manifest = mysql.drain(window)
    assert replayed(mysql, manifest, "a") == selected(mysql, "a")
    assert [row[:2] for row in replayed(mysql, manifest, "b")] == [row[:2] for row in selected(mysql, "b")]
    gtids = {row["_gtid"] for row in mysql.rows(manifest, "a")}
    assert len(gtids) == 9
    assert manifest.transactions == 12


@pytest.mark.needs("compressed transactions")
def test_draining_compressed_transactions_again_gives_the_same_bytes(
    mysql_server, mysql_database, tmp_path, monkeypatch
):
    """Whatever the wire's portions and the buffers' sizes are."""
    settings = {"drain": {"row_group_rows": 35}}
    first = Capture(mysql_server, mysql_database, tmp_path / "first", **settings)
    start = first.head()
    with session(first) as connection, connection.cursor() as cursor:
        write_mixed(cursor, "SET SESSION binlog_transaction_compression")
    window = first.window_from(start)
    once = first.drain(window)
    read = ServerStream.read_into
    for most, size in ((16 << 20, 100), (61, 5000), (1024, 1 << 20)):
        monkeypatch.setattr(ServerStream, "read_into", lambda stream, view, most=most: read(stream, view[:most]))
        monkeypatch.setattr(reader, "InflateBuffer", lambda size=size: InflateBuffer(size))
        again = Capture(mysql_server, mysql_database, tmp_path / str(size), **settings).drain(window)
        assert again.files == once.files


@pytest.mark.needs("compressed transactions")
def test_a_payload_larger_than_64_mebibytes_is_drained_in_bounded_memory(
    mysql_server, mysql_database, tmp_path, monkeypatch
):
    """One transaction of 90 MiB in one event: no buffer of the reader comes near that."""
    capture = Capture(mysql_server, mysql_database, tmp_path)
    capture.execute("CREATE TABLE big (id INT PRIMARY KEY, v MEDIUMTEXT)")
    sizes = []
    grow = InflateBuffer._grow
    monkeypatch.setattr(InflateBuffer, "_grow", lambda self, size: (sizes.append(size), grow(self, size)))
    start = capture.head()
    with session(capture) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION binlog_transaction_compression = ON")
        cursor.execute("BEGIN")
        for key in range(90):
            cursor.execute(f"INSERT INTO big VALUES ({key}, REPEAT('{key:04d}', 262144))")
        cursor.execute("COMMIT")
    window = capture.window_from(start)
    assert window.stop.offset - window.start.offset < 1 << 20
    manifest = capture.drain(window)
    found = {row["id"]: row["v"] for row in capture.rows(manifest, "big")}
    assert found == {key: f"{key:04d}" * 262144 for key in range(90)}
    assert max(sizes) <= 16 << 20


@pytest.mark.needs("compressed transactions")
def test_a_compressed_row_longer_than_the_buffer_is_drained(mysql_server, mysql_database, tmp_path):
    """Inside a payload there are no packets: the row is there in one piece."""
    capture = Capture(mysql_server, mysql_database, tmp_path)
    capture.execute("CREATE TABLE big (id INT PRIMARY KEY, v LONGBLOB)")
    start = capture.head()
    with session(capture) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION binlog_transaction_compression = ON")
        cursor.execute("INSERT INTO big VALUES (1, REPEAT('abcd', 5000000)), (2, 'x')")
    manifest = capture.drain(capture.window_from(start))
    assert [(row["id"], len(row["v"]), row["v"][-4:]) for row in capture.rows(manifest, "big")] == [
        (1, 20_000_000, b"abcd"),
        (2, 1, b"x"),
    ]


def test_compressed_events_of_mariadb_hold_what_select_shows(mariadb):
    """Rows and statements, between plain ones."""
    start = mariadb.head()
    with session(mariadb) as connection, connection.cursor() as cursor:
        write_mixed(cursor, "SET GLOBAL log_bin_compress")
        cursor.execute("SET GLOBAL log_bin_compress = ON")
        cursor.execute(f"ALTER TABLE a ADD COLUMN later INT NULL /* {'long ' * 100} */")
        cursor.execute("INSERT INTO a VALUES (99999, REPEAT('y', 1000), 1, 2)")
    window = mariadb.window_from(start)
    assert {"Write_rows_compressed_v1", "Write_rows_v1", "Query_compressed"} <= kinds(mariadb, window)
    manifest = mariadb.drain(window)
    assert [row[:3] for row in replayed(mariadb, manifest, "a")] == [row[:3] for row in selected(mariadb, "a")]
    assert [row[:2] for row in replayed(mariadb, manifest, "b")] == [row[:2] for row in selected(mariadb, "b")]
    assert [ddl.statement[:21] for ddl in manifest.ddl][-1] == "ALTER TABLE a ADD COL"


def test_draining_compressed_events_again_gives_the_same_bytes(mariadb, tmp_path, monkeypatch):
    """Whatever the wire's portions and the buffers' sizes are."""
    start = mariadb.head()
    with session(mariadb) as connection, connection.cursor() as cursor:
        write_mixed(cursor, "SET GLOBAL log_bin_compress")
    window = mariadb.window_from(start)
    once = mariadb.drain(window)
    read = ServerStream.read_into
    for most, size in ((16 << 20, 100), (61, 5000)):
        monkeypatch.setattr(ServerStream, "read_into", lambda stream, view, most=most: read(stream, view[:most]))
        monkeypatch.setattr(reader, "InflateBuffer", lambda size=size: InflateBuffer(size))
        again = Capture(mariadb.server, mariadb.database, tmp_path / str(size)).drain(window)
        assert again.files == once.files


@pytest.mark.needs("compressed transactions")
def test_an_incompressible_payload_spans_several_packets(mysql_server, mysql_database, tmp_path):
    """40 MiB of random bytes in one event: gathered once, checked, inflated portion by portion."""
    capture = Capture(mysql_server, mysql_database, tmp_path)
    capture.execute("CREATE TABLE big (id INT PRIMARY KEY, v LONGBLOB)")
    start = capture.head()
    values = [random.Random(key).randbytes(8 << 20) for key in range(5)]
    with session(capture) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION binlog_transaction_compression = ON")
        cursor.execute("BEGIN")
        for key, value in enumerate(values):
            cursor.execute("INSERT INTO big VALUES (%s, UNHEX(%s))", [key, value[: 4 << 20].hex()])
            cursor.execute("UPDATE big SET v = CONCAT(v, UNHEX(%s)) WHERE id = %s", [value[4 << 20 :].hex(), key])
        cursor.execute("COMMIT")
    window = capture.window_from(start)
    assert window.stop.offset - window.start.offset > 40 << 20
    manifest = capture.drain(window)
    assert {row["id"]: row["v"] for row in capture.rows(manifest, "big")} == dict(enumerate(values))


def test_preflight_takes_compression(mariadb):
    """It is read."""
    assert not [finding for finding in judge(mariadb.facts()) if finding.level == "error"]


@pytest.mark.needs("compressed transactions")
def test_other_row_images_are_read_from_a_payload_too(mysql_server, mysql_database, tmp_path):
    """Changes of parts of JSON documents among whole rows, in one compressed transaction."""
    capture = Capture(mysql_server, mysql_database, tmp_path)
    capture.execute("CREATE TABLE j (id INT PRIMARY KEY, v JSON)")
    start = capture.head()
    with session(capture) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION binlog_transaction_compression = ON")
        cursor.execute("SET SESSION binlog_row_value_options = 'PARTIAL_JSON'")
        cursor.execute("BEGIN")
        for key in range(20):
            cursor.execute(f"""INSERT INTO j VALUES ({key}, '{{"k": "long enough to be replaced", "l": {key}}}')""")
            cursor.execute(f"UPDATE j SET v = JSON_SET(v, '$.l', {key + 1}) WHERE id = {key}")
        cursor.execute("COMMIT")
    manifest = capture.drain(capture.window_from(start))
    assert capture.ops(manifest, "j") == [(op, key) for key in range(20) for op in "cu"]
    assert replayed(capture, manifest, "j") == selected(capture, "j")
