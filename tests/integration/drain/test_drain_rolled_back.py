"""Transactions that MariaDB logs whole though they were rolled back, because of a temporary table made in them."""

from __future__ import annotations

from cdc_lib.binlog.framing.receiver import Receiver
from tests.harness.binlog.capture import Capture

SCRIPT = """
BEGIN; INSERT INTO a VALUES (1, 'gone'); CREATE TEMPORARY TABLE t1 (x INT); UPDATE a SET v = 'changed'; DELETE FROM a WHERE id = 100; ROLLBACK
INSERT INTO a VALUES (2, 'stays')
BEGIN; INSERT INTO a VALUES (3, 'stays'); CREATE TEMPORARY TABLE t2 SELECT * FROM a; SAVEPOINT one; INSERT INTO a VALUES (4, 'gone'); SAVEPOINT two; UPDATE a SET id = id + 1000; ROLLBACK TO ONE; INSERT INTO a VALUES (5, 'stays'); COMMIT
BEGIN; INSERT INTO kept VALUES (1); INSERT INTO a VALUES (6, REPEAT('gone', 1000)); DROP TEMPORARY TABLE t1; ROLLBACK
XA START 'x'; INSERT INTO a VALUES (7, 'gone'); CREATE TEMPORARY TABLE t3 (x INT); XA END 'x'; XA ROLLBACK 'x'
UPDATE a SET v = 'last' WHERE id = 2
"""


def test_a_transaction_that_was_rolled_back_leaves_nothing(mariadb_server, mariadb_database, tmp_path, monkeypatch):
    """Nor does what was rolled back up to a savepoint: the table is what SELECT shows, in the same files however it was received."""
    capture = Capture(mariadb_server, mariadb_database, tmp_path / "first")
    capture.execute("CREATE TABLE a (id INT PRIMARY KEY, v TEXT)")
    capture.execute("CREATE TABLE kept (id INT) ENGINE = MyISAM")
    start = capture.head()
    capture.execute("INSERT INTO a VALUES (100, 'first')")
    with mariadb_server.connect(database=mariadb_database) as session, session.cursor() as sql:
        for statement in SCRIPT.replace("\n", ";").strip(";").split(";"):
            sql.execute(statement)
    window = capture.window_from(start)
    shown = [row[2:6:3] for row in capture.execute(f"SHOW BINLOG EVENTS IN '{start.file}' FROM {start.offset}")]
    assert ("Query", "ROLLBACK") in shown
    assert any("ROLLBACK TO" in text for _, text in shown)
    manifest = capture.drain(window)
    table = {}
    for row in capture.rows(manifest, "a"):
        if row["_op"] == "d":
            del table[row["id"]]
        else:
            table[row["id"]] = row["v"]
    assert table == dict(capture.execute("SELECT id, v FROM a"))
    assert table == {2: "last", 3: "stays", 5: "stays", 100: "first"}
    assert capture.ops(manifest, "kept") == [("c", 1)]
    real = Receiver.__init__
    monkeypatch.setattr(Receiver, "__init__", lambda self, stream: real(self, stream, 256, 3))
    assert Capture(mariadb_server, mariadb_database, tmp_path / "second").drain(window).files == manifest.files
