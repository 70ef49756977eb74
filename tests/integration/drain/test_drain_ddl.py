"""Statements that take the rows of captured tables, as the manifest tells them."""

from __future__ import annotations

from decimal import Decimal

import pymysql
import pytest

from cdc_lib.errors import UnknownEvent
from cdc_lib.model.ddl_effect import AddedDefault
from tests.harness.binlog.capture import Capture, row_metadata
from tests.harness.shop.quarantine import cursor, manifest_of, rounds


@pytest.fixture(params=["FULL", "MINIMAL"])
def capture(request, any_server, database, tmp_path):
    """Two tables, followed from now on."""
    with row_metadata(any_server, request.param):
        capture = Capture(any_server, database, tmp_path, start="latest")
        for name in ("a", "b"):
            capture.execute(f"CREATE TABLE {name} (id INT PRIMARY KEY, v VARCHAR(20))")
        assert not capture.pipeline.plan(by="test")
        yield capture


def drained_statements(capture, *statements):
    """Run statements, drain them in one window and return what its manifest tells: (kind, table) each."""
    for statement in statements:
        capture.execute(statement)
    (window,) = capture.pipeline.plan(by="test")
    capture.pipeline.drain(window)
    manifest = manifest_of(capture, window)
    places = [one.position for one in manifest.statements]
    assert places == sorted(places)
    assert all(window.start < place < window.stop for place in places)
    again = Capture(capture.server, capture.database, capture.store.root.parent / "again", start="latest")
    for key in capture.visible():
        if "/schemas/" in key:
            again.store.put(key, capture.store.get(key).data)
    assert (again.drain(window).statements, again.drain(window).files) == (manifest.statements, manifest.files)
    return manifest, [(one.kind, one.table.partition(".")[2]) for one in manifest.statements]


@pytest.mark.needs("CREATE TABLE ... SELECT with GTIDs")
def test_table_statements_are_recorded_in_order(capture):
    """Rows around it are read as ever; what concerns no captured table, or a temporary one, is not recorded."""
    manifest, found = drained_statements(
        capture,
        "INSERT INTO a VALUES (1, 'x')",
        "/* app */ truncate a",
        "INSERT INTO a VALUES (2, 'y')",
        "DROP TABLE a",
        "CREATE TABLE IF NOT EXISTS b (id INT)",
        "CREATE TABLE a LIKE b",
        "INSERT INTO a VALUES (3, 'z')",
        "CREATE TABLE c AS SELECT * FROM a",
    )
    # MariaDB leaves out a CREATE that did nothing.
    nothing = [("create_if_missing", "b")] if capture.server.flavor == "mysql" else []
    assert found == [("truncate", "a"), ("drop", "a"), *nothing, ("create", "a"), ("create", "c")]
    assert capture.ops(manifest, "a") == [("c", 1), ("c", 2), ("c", 3)]
    assert capture.ops(manifest, "c") == [("c", 3)]
    places = {one.kind: one.position.offset for one in manifest.statements if one.table.endswith(".a")}
    offsets = {row["id"]: row["_offset"] for row in capture.rows(manifest, "a")}
    assert offsets[1] < places["truncate"] < offsets[2] < places["drop"] < places["create"] < offsets[3]


def test_temporary_tables_never_matter(capture):
    """Of whatever name."""
    with capture.server.connect(database=capture.database) as session, session.cursor() as sql:
        for statement in (
            "CREATE TEMPORARY TABLE a (x INT)",
            "INSERT INTO a VALUES (1)",
            "TRUNCATE TABLE a",
            "DROP TABLE a",
        ):
            sql.execute(statement)
    capture.execute("INSERT INTO a VALUES (1, 'x')")
    manifest, found = drained_statements(capture, "INSERT INTO b VALUES (1, 'x')")
    assert found == []
    assert capture.ops(manifest, "a") == [("c", 1)]


@pytest.mark.parametrize("name", ["1st", "2e5x", "a$b", "ตารางที่", "cafe\u0301", "a☃b", "`1.5`", "`we``ird -- /*`"])
def test_names_are_read_as_the_server_reads_them(capture, name):
    """Without quotes they may begin with a digit, and hold letters of all scripts and signs."""
    table = f"{capture.database}.{name}"
    manifest, _ = drained_statements(
        capture,
        f"CREATE TABLE {table} (id INT PRIMARY KEY)",
        f"/* app */ ALTER TABLE {table} ADD v DECIMAL(3,1) NOT NULL DEFAULT 1.5 -- it's new",
        f"INSERT INTO {table} VALUES (1, 2.5)",
        f"TRUNCATE/**/{table}",
    )
    plain = name.strip("`").replace("``", "`")
    assert [(one.kind, one.table.table) for one in manifest.statements] == [
        ("create", plain),
        ("add_default", plain),
        ("truncate", plain),
    ]
    assert manifest.statements[1].added_defaults == (AddedDefault("v", "1.5"),)
    ((row,),) = [one.to_pylist() for one in capture.tables(manifest, name)]
    assert (row["id"], row["v"]) == (1, Decimal("2.5"))


def test_dropping_the_database_drops_its_tables(capture):
    """Which those are, the lake knows."""
    capture.execute("INSERT INTO a VALUES (1, 'x')")
    capture.server.execute(f"DROP DATABASE {capture.database}")
    capture.server.execute(f"CREATE DATABASE {capture.database}")
    _, found = drained_statements(
        capture, "CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(20))", "INSERT INTO a VALUES (2, 'x')"
    )
    assert found == [("drop", "*"), ("create", "a")]


def test_a_table_that_gets_the_rows_of_another_is_resnapshotted_automatically(capture):
    """Quarantined with its window, whatever on_error says, and released by the next plan with a snapshot."""
    table = f"{capture.database}.a"
    capture.execute("INSERT INTO a VALUES (1, 'x')")
    manifest, found = drained_statements(capture, "RENAME TABLE a TO old, b TO a", "INSERT INTO a VALUES (2, 'y')")
    assert [(one.table.partition(".")[2], one.fault.code) for one in manifest.quarantined] == [
        ("a", "table_replaced"), ("old", "table_replaced"),
    ]  # fmt: skip
    assert found == [("drop", "b")]
    assert manifest.files == ()
    assert not [key for key in capture.visible() if "quarantine" in key]
    capture.pipeline.ack_drain(by="test")
    assert cursor(capture).quarantine_record(table).is_open
    rounds(capture)
    record = cursor(capture).quarantine_record(table)
    assert not record.is_open
    assert {task.name.partition(".")[2] for task in cursor(capture).snapshots} == {"a", "old"}
    (snapshot,) = [task for task in cursor(capture).snapshots if task.name == table]
    assert (snapshot.snapshot_id, snapshot.complete) == (record.snapshot_id, True)


def test_a_statement_that_renames_a_table_and_back_changes_nothing(capture):
    """Neither is the table gone, nor are its rows others."""
    manifest, found = drained_statements(capture, "RENAME TABLE a TO x, x TO a", "INSERT INTO a VALUES (2, 'y')")
    assert (found, manifest.quarantined) == ([], ())
    assert capture.ops(manifest, "a") == [("c", 2)]


@pytest.fixture(params=["FULL", "MINIMAL"])
def mariadb(request, mariadb_server, mariadb_database, tmp_path):
    """One table with a row, followed from now on."""
    with row_metadata(mariadb_server, request.param):
        capture = Capture(mariadb_server, mariadb_database, tmp_path, start="latest")
        capture.execute("CREATE TABLE a (id INT PRIMARY KEY, v INT)")
        assert not capture.pipeline.plan(by="test")
        capture.execute("INSERT INTO a VALUES (1, 1), (2, 1)")
        yield capture


def test_a_point_before_a_table_s_name_is_no_part_of_it(mariadb):
    """Nor is one before a column's."""
    mariadb.execute("CREATE TABLE b (id INT PRIMARY KEY, a INT, b INT)")
    manifest, found = drained_statements(
        mariadb,
        "ALTER TABLE .a ADD COLUMN n INT NOT NULL DEFAULT 7",
        "INSERT INTO a VALUES (3, 3, 3)",
        "ALTER TABLE . a CHANGE .v .w INT",
        "INSERT INTO a (id, w) VALUES (4, 4)",
        "ALTER TABLE .b DROP COLUMN b.a",
        "INSERT INTO b VALUES (1, 5)",
        "TRUNCATE .a",
        "RENAME TABLE .b TO x, x TO .b",
        "INSERT INTO b VALUES (2, 6)",
        "DROP TABLE a, .b",
    )
    assert found == [
        ("create", "b"), ("add_default", "a"), ("rename_columns", "a"), ("truncate", "a"), ("drop", "a"), ("drop", "b"),
    ]  # fmt: skip
    assert [(row["id"], row["w"]) for row in mariadb.rows(manifest, "a") if row["id"] > 3] == [(4, 4)]
    assert [row["b"] for row in mariadb.rows(manifest, "b")] == [5, 6]


def test_a_statement_with_settings_of_its_own_counts_as_what_it_is(mariadb):
    """SET STATEMENT ... FOR is logged with what it is for: TRUNCATE, ALTER and DROP alike."""
    manifest, found = drained_statements(
        mariadb,
        "SET STATEMENT max_statement_time = 1000, sort_buffer_size = (262144) FOR TRUNCATE TABLE a",
        "INSERT INTO a VALUES (3, 3)",
        "/* app */ SET STATEMENT lock_wait_timeout=50 FOR ALTER TABLE a ADD COLUMN w INT DEFAULT 7",
        "INSERT INTO a (id) VALUES (4)",
        "SET STATEMENT max_statement_time=1000 FOR DROP TABLE a",
    )
    assert found == [("truncate", "a"), ("add_default", "a"), ("drop", "a")]
    assert [(row["id"], row.get("w")) for row in mariadb.rows(manifest, "a")][2:] == [(3, None), (4, 7)]


def test_rows_that_are_changed_by_a_statement_with_settings_of_its_own_stop_the_window(mariadb):
    """It is no more harmless than without."""
    with mariadb.server.connect(database=mariadb.database) as session, session.cursor() as sql:
        sql.execute("SET SESSION binlog_format = 'STATEMENT'")
        sql.execute("SET STATEMENT max_statement_time=1000 FOR UPDATE a SET v = 5")
    (window,) = mariadb.pipeline.plan(by="test")
    with pytest.raises(UnknownEvent, match="without writing them to the binlog"):
        mariadb.pipeline.drain(window)


@pytest.mark.needs("ALTER logged in two parts")
def test_an_alter_that_is_logged_in_two_parts_counts_once_and_not_when_it_fails(mariadb):
    """binlog_alter_two_phase: the statement is at its start and at its end; rows in between have the old columns."""
    with mariadb.server.connect(database=mariadb.database) as session, session.cursor() as sql:
        sql.execute("SET SESSION binlog_alter_two_phase = ON")
        with pytest.raises(pymysql.IntegrityError):
            sql.execute("ALTER TABLE a CHANGE v wrong INT, ADD UNIQUE KEY (wrong)")
        sql.execute("INSERT INTO a VALUES (3, 3)")
        sql.execute("ALTER TABLE a CHANGE v w INT")
        sql.execute("INSERT INTO a VALUES (4, 4)")
        sql.execute("ALTER TABLE a ADD COLUMN x INT DEFAULT 9")
        sql.execute("INSERT INTO a (id) VALUES (5)")
    manifest, found = drained_statements(mariadb, "INSERT INTO a (id) VALUES (6)")
    assert found == [("rename_columns", "a"), ("add_default", "a")]
    assert len(manifest.ddl) == 2
    rows = mariadb.rows(manifest, "a")
    assert [(row["id"], row.get("v"), row.get("w"), row.get("x")) for row in rows] == [
        (1, 1, None, None), (2, 1, None, None), (3, 3, None, None), (4, None, 4, None), (5, None, None, 9), (6, None, None, 9),
    ]  # fmt: skip
