"""Names, labels and comments that are no UTF-8, which MariaDB takes from sessions in utf8mb3: halves of surrogate pairs."""

from __future__ import annotations

import pytest

from cdc_lib.mysql.connection import connect
from cdc_lib.mysql.information_schema import InformationSchema
from tests.harness.binlog.capture import Capture, row_metadata
from tests.harness.shop.quarantine import cursor, manifest_of, rounds
from tests.harness.store.stored_values import everything

HALF = b"\xed\xa0\x80"
"""The first half of a pair, as UTF-8 would have it."""

COM_QUERY = 3


def run(server, database, *statements, charset="utf8mb3"):
    """Run statements of bytes in one session."""
    with server.connect(database=database) as session, session.cursor() as sql:
        sql.execute(f"SET NAMES {charset}")
        for statement in statements:
            session._execute_command(COM_QUERY, statement.replace(b"HALF", HALF))
            session._read_query_result()
        session.commit()


def source(server, database, folder, start, **settings):
    capture = Capture(server, database, folder, on_error="quarantine", start=start, **settings)
    capture.execute("CREATE TABLE good (id INT PRIMARY KEY)")
    rounds(capture, 2)
    return capture


def last_window(capture):
    return next(window for window, _ in cursor(capture).acked_windows)


def goes_on(capture, statement):
    """Run a statement, and rounds that reach the end of the binlog; returns why tables are quarantined."""
    run(capture.server, capture.database, statement, b"INSERT INTO t (id) VALUES (1)")
    capture.execute("INSERT INTO good VALUES (1)")
    rounds(capture, 2)
    assert cursor(capture).position == capture.head()
    return {one.table.pair[1]: one.fault.reason for one in cursor(capture).quarantined_tables}


@pytest.mark.parametrize("start", ["snapshot", "latest"])
@pytest.mark.parametrize("what", ["COMMENT 'HALF a') COMMENT ''", ") COMMENT 'HALF a'"])
def test_comments_stop_no_table(mariadb_server, mariadb_database, tmp_path, start, what):
    """Neither its snapshot nor its windows; what is no text is U+FFFD."""
    capture = source(mariadb_server, mariadb_database, tmp_path, start)
    assert goes_on(capture, b"CREATE TABLE t (id INT PRIMARY KEY %s" % what.encode()) == {}
    connection = connect(capture.config.server, capture.credentials)
    found = InformationSchema(connection).comments(mariadb_database, "t")
    connection.close()
    assert [found.comment, *found.columns.values()][-1] == "\ufffd\ufffd\ufffd a"


@pytest.mark.parametrize("start", ["snapshot", "latest"])
@pytest.mark.parametrize("column", ["`HALF` INT", "v ENUM('a', 'HALF')", "v SET('HALF') CHARACTER SET ucs2"])
def test_names_and_labels_quarantine_their_table_alone(mariadb_server, mariadb_database, tmp_path, start, column):
    capture = source(mariadb_server, mariadb_database, tmp_path, start)
    why = goes_on(capture, b"CREATE TABLE t (id INT PRIMARY KEY, %s) CHARACTER SET utf8mb3" % column.encode())
    assert why.keys() == {"t"}
    assert "a name or label of the table is no text" in why["t"]


@pytest.mark.parametrize("column", ["`HALF` INT", "v ENUM('a', 'HALF') CHARACTER SET utf8mb3"])
def test_a_snapshot_of_such_a_table_ends_without_it(mariadb_server, mariadb_database, tmp_path, column):
    """It was there before the source began."""
    run(mariadb_server, mariadb_database, b"CREATE TABLE t (id INT PRIMARY KEY, %s)" % column.encode())
    capture = source(mariadb_server, mariadb_database, tmp_path, "snapshot")
    assert [str(one.table) for one in cursor(capture).quarantined_tables] == [f"{mariadb_database}.t"]


def test_the_name_of_a_key_that_identifies_no_row_stops_no_table(mariadb_server, mariadb_database, tmp_path):
    capture = source(mariadb_server, mariadb_database, tmp_path, "snapshot")
    assert goes_on(capture, b"CREATE TABLE t (id INT PRIMARY KEY, v INT, UNIQUE KEY `HALF` (v))") == {}


def test_a_table_whose_name_is_no_text_stops_no_source_that_begins_after_it(
    mariadb_server, mariadb_database, tmp_path, caplog
):
    """Its rows are no table's: a window with some leaves them out and says so."""
    run(mariadb_server, mariadb_database, b"CREATE TABLE `HALF` (id INT PRIMARY KEY)")
    capture = source(mariadb_server, mariadb_database, tmp_path, "snapshot")
    assert "their names are no UTF-8" in caplog.text
    run(mariadb_server, mariadb_database, b"INSERT INTO `HALF` VALUES (1)")
    capture.execute("INSERT INTO good VALUES (1)")
    rounds(capture)
    assert cursor(capture).position == capture.head()
    assert [one.table.pair[1] for one in cursor(capture).quarantined_tables] == ["\ufffd\ufffd\ufffd"]


@pytest.mark.parametrize("metadata", ["FULL", "MINIMAL"])
@pytest.mark.parametrize("charset", ["utf8mb3", "utf8mb4", "binary"])
def test_statements_on_a_table_whose_name_is_no_text_stop_no_source(
    mariadb_server, mariadb_database, tmp_path, metadata, charset
):
    """Tables with other names are followed beside it; with rows it is quarantined."""
    with row_metadata(mariadb_server, metadata):
        capture = source(mariadb_server, mariadb_database, tmp_path, "snapshot")
        capture.execute("CREATE TABLE late (id INT PRIMARY KEY)")
        run(
            mariadb_server,
            mariadb_database,
            b"CREATE TABLE `HALF` (id INT PRIMARY KEY)",
            b"ALTER TABLE `HALF` ADD v INT",
            b"TRUNCATE TABLE `HALF`",
            b"CREATE TABLE `other HALF` LIKE `HALF`",
            b"DROP TABLE `HALF`, late",
            b"INSERT INTO `other HALF` VALUES (1, 2)",
            charset=charset,
        )
        capture.execute("INSERT INTO good VALUES (1)")
        rounds(capture)
        assert cursor(capture).position == capture.head()
        assert [one.table.table for one in cursor(capture).quarantined_tables] == ["other \ufffd\ufffd\ufffd"]
        manifest = manifest_of(capture, last_window(capture))
        assert [(one.kind, one.table.table) for one in manifest.statements] == [("create", "late"), ("drop", "late")]


@pytest.mark.parametrize("metadata", ["FULL", "MINIMAL"])
@pytest.mark.parametrize("rename", [b"RENAME TABLE `HALF` TO t", b"ALTER TABLE `HALF` RENAME t"])
def test_a_table_that_gets_a_name_is_read_again(mariadb_server, mariadb_database, tmp_path, metadata, rename):
    """Its rows are another table's until then, and the definition of one of several whose names are the same here is not taken for it."""
    with row_metadata(mariadb_server, metadata):
        capture = source(mariadb_server, mariadb_database, tmp_path, "snapshot")
        capture.execute("CREATE TABLE a (id INT PRIMARY KEY, x INT)")
        capture.execute("CREATE TABLE b (y INT, id INT PRIMARY KEY)")
        capture.execute("INSERT INTO a VALUES (1, 2)")
        rounds(capture, 2)
        run(mariadb_server, mariadb_database, b"RENAME TABLE a TO `HALF`", b"RENAME TABLE b TO `\xed\xa0\x81`", rename)
        capture.execute("INSERT INTO t VALUES (3, 4)")
        rounds(capture, 3)
        assert cursor(capture).position == capture.head()
        assert cursor(capture).quarantined_tables == ()
        capture.execute("INSERT INTO t VALUES (5, 6)")
        rounds(capture)
        found = capture.tables(manifest_of(capture, last_window(capture)), "t")
        assert [(row["id"], row["x"]) for one in found for row in one.to_pylist()] == [(5, 6)]


def test_the_rows_of_a_table_whose_name_is_no_text_may_have_had_masks(mariadb_server, mariadb_database, tmp_path):
    """Under its new name no rule of the file hides them, and another table may have had the same name here."""
    masks = [{"tables": "*.users", "columns": ["mail"], "mask": "redact"}]
    capture = source(mariadb_server, mariadb_database, tmp_path, "snapshot", masks=masks)
    capture.execute("CREATE TABLE users (id INT PRIMARY KEY, mail VARCHAR(20))")
    rounds(capture, 2)
    run(
        mariadb_server,
        mariadb_database,
        b"RENAME TABLE users TO `HALF`",
        b"CREATE TABLE `\xed\xa0\x81` (id INT PRIMARY KEY)",
        b"DROP TABLE `\xed\xa0\x81`",
        b"RENAME TABLE `HALF` TO clear",
        b"INSERT INTO clear VALUES (1, 'my secret')",
    )
    rounds(capture, 2)
    assert cursor(capture).position == capture.head()
    assert "clear" in {one.table.table for one in cursor(capture).quarantined_tables}
    assert "secret" not in everything(capture.store)
