"""Tagged GTIDs of a real MySQL, by the words that the server has for them."""

from __future__ import annotations

import pytest

from tests.harness.binlog.capture import Capture


@pytest.mark.needs("tagged GTIDs")
def test_tagged_gtids_are_written_as_by_the_server(mysql_server, mysql_database, tmp_path):
    """Automatic and given ones, between plain ones, also before a compressed transaction."""
    capture = Capture(mysql_server, mysql_database, tmp_path)
    capture.execute("CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(200))")
    start = capture.head()
    other = "8a94f357-aab4-11df-86ab-c80aa9429562"
    with mysql_server.connect(database=mysql_database) as connection, connection.cursor() as cursor:
        cursor.execute("SET gtid_next = 'AUTOMATIC:nightly_batch'")
        cursor.execute("INSERT INTO a VALUES (1, 'x')")
        cursor.execute("INSERT INTO a VALUES (2, 'x')")
        cursor.execute("SET SESSION binlog_transaction_compression = ON")
        cursor.execute("INSERT INTO a VALUES (3, REPEAT('x', 200))")
        cursor.execute(f"SET gtid_next = '{other}:{'t' * 32}:4000000000'")
        cursor.execute("INSERT INTO a VALUES (4, 'x')")
        cursor.execute("SET gtid_next = 'AUTOMATIC'")
        cursor.execute("INSERT INTO a VALUES (5, 'x')")
        cursor.execute("SELECT @@server_uuid")
        ((uuid,),) = cursor.fetchall()
    window = capture.window_from(start)
    manifest = capture.drain(window)
    shown = capture.execute(f"SHOW BINLOG EVENTS IN '{start.file}' FROM {start.offset}")
    texts = [row[5].split("'")[1] for row in shown if "GTID_NEXT" in row[5]]
    rows = capture.rows(manifest, "a")
    assert [row["_gtid"] for row in rows] == texts
    assert texts[0] == f"{uuid}:nightly_batch:1"
    assert texts[3] == f"{other}:{'t' * 32}:4000000000"
    assert (manifest.gtid_first, manifest.gtid_last) == (texts[0], texts[-1])
    seconds = [(row["_ts"] - rows[0]["_ts"]).total_seconds() for row in rows]
    assert seconds == sorted(seconds)
    assert 0 < seconds[-1] < 60
