"""A server that leaves columns unnamed is read as one that names them; what the history cannot know stops the window."""

from __future__ import annotations

import dataclasses
from collections import Counter
from datetime import UTC, datetime

import pytest

from cdc_lib import requests
from cdc_lib.binlog.ddl.history import window as history
from cdc_lib.binlog.ddl.history.window import touched
from cdc_lib.errors import UnknownSchema
from cdc_lib.model.cursor import DRAIN, Move
from cdc_lib.model.schema_version import SchemaVersion
from cdc_lib.mysql.binlog_stream import binlog_dump
from cdc_lib.schema_history import versions
from cdc_lib.status.overview import findings_of
from cdc_lib.store import documents, layout
from cdc_lib.store.schemas import SchemaVersions
from tests.harness.binlog.capture import SOURCE, Capture, row_metadata
from tests.harness.servers.features import has
from tests.harness.shop.quarantine import cursor, rounds


@pytest.fixture(params=["MINIMAL", "NO_LOG"])
def unnamed(request, any_server):
    """The server, which names no columns."""
    with row_metadata(any_server, request.param):
        yield any_server


@pytest.fixture
def capture(unnamed, database, tmp_path):
    """A source that follows the binlog from after the making of table a."""
    capture = Capture(unnamed, database, tmp_path, start="latest")
    capture.execute("CREATE TABLE a (id INT UNSIGNED PRIMARY KEY, v VARCHAR(20) CHARACTER SET latin1)")
    assert not capture.pipeline.plan(by="test")
    return capture


def drained(capture):
    """Plan, drain and acknowledge; returns the manifests."""
    units = capture.pipeline.plan(by="test")
    for unit in units:
        capture.pipeline.drain(unit)
    capture.pipeline.ack_drain(by="test")
    return [capture.manifest(layout.manifest_key(unit)) for unit in units]


SCENARIO = [
    (
        "CREATE TABLE {t} (id INT UNSIGNED PRIMARY KEY, v VARCHAR(20), e ENUM('x','y'), n SMALLINT, UNIQUE KEY u (n)) "
        "DEFAULT CHARSET latin1"
    ),
    "INSERT INTO {t} VALUES (4000000000, 'Müller', 'y', -1)",
    "ALTER TABLE {t} ADD COLUMN first_one BIGINT UNSIGNED FIRST, ADD w VARCHAR(10) AFTER id",
    "INSERT INTO {t} VALUES (18446744073709551615, 2, 'é', 'ü', 'x', 2)",
    "ALTER TABLE {t} MODIFY e ENUM('neu','x','y') AFTER id, DROP COLUMN first_one",
    "INSERT INTO {t} VALUES (3, 'neu', 'é', 'ü', 3)",
    "UPDATE {t} SET n = id % 1000, v = 'plain'",
    "ALTER TABLE {t} MODIFY n INT UNSIGNED NOT NULL, MODIFY v TEXT CHARACTER SET cp1251",
    "INSERT INTO {t} VALUES (4, 'x', 'é', 'Привет', 4000000000)",
    "ALTER TABLE {t} CONVERT TO CHARACTER SET utf8mb4",
    "UPDATE {t} SET v = '日本', w = '€' WHERE id = 4",
    "INSERT INTO {t} VALUES (5, 'y', 'q', 'r', 5)",
    "DROP INDEX u ON {t}",
    "INSERT INTO {t} VALUES (6, 'y', 'q', 'r', 6)",
    "CREATE UNIQUE INDEX again ON {t} (id)",
    "DELETE FROM {t} WHERE id = 5",
]


def rows_and_versions(capture, manifest, table):
    """Rows and versions of a table without what differs between two runs."""
    rows = [{k: v for k, v in row.items() if k[0] != "_" or k == "_op"} for row in capture.rows(manifest, table)]
    names = {file.schema_id for file in manifest.files if file.table.endswith(f".{table}")}
    schemas = [manifest.schemas[name] for name in names]
    return rows, {(schema.columns, schema.primary_key) for schema in schemas}


def test_changes_of_a_table_in_mid_window_are_followed(unnamed, database, tmp_path):
    """Rows and definitions are those of a server that names its columns."""
    capture = Capture(unnamed, database, tmp_path)
    start = capture.head()
    for statement in SCENARIO:
        capture.execute(statement.format(t="unnamed"))
    with row_metadata(unnamed, "FULL"):
        for statement in SCENARIO:
            capture.execute(statement.format(t="named"))
    manifest = capture.drain(capture.window_from(start))
    found, wanted = (rows_and_versions(capture, manifest, table) for table in ("unnamed", "named"))
    assert len(wanted[0]) == 11
    assert len(wanted[1]) == 4
    assert found == wanted
    assert found[0][0]["id"] == 4000000000


def test_named_and_unnamed_rows_share_a_file(unnamed, database, tmp_path):
    """Their definitions are equal in every part."""
    capture = Capture(unnamed, database, tmp_path)
    capture.execute(
        "CREATE TABLE a (id BIGINT UNSIGNED NOT NULL, v TEXT CHARACTER SET latin1, e SET('q','ü'), b BINARY(4), UNIQUE (id))"
    )
    start = capture.head()
    capture.execute("INSERT INTO a VALUES (1, 'ä', 'ü', 'b')")
    with row_metadata(unnamed, "FULL"):
        capture.execute("FLUSH TABLES")
        capture.execute("INSERT INTO a VALUES (2, 'ä', 'ü', 'b')")
    manifest = capture.drain(capture.window_from(start))
    (file,) = manifest.files
    assert file.rows == 2
    assert manifest.schemas[file.schema_id].primary_key == ("id",)
    (chunk,) = capture.snapshot("a")
    assert set(chunk.schemas) == {file.schema_id}


COLLATIONS = ["utf8mb4_general_ci", "utf8_general_ci", "latin1_swedish_ci", "uca1400_ai_ci"]


@pytest.mark.parametrize("collation", COLLATIONS)
def test_a_new_column_has_the_character_set_that_the_server_shows_of_its_table(
    any_server, database, tmp_path, collation
):
    """The old name of utf8mb3, and a collation that information_schema.COLLATIONS shows without a character set."""
    if collation.startswith("uca1400") and not has(any_server, "UCA 14 collations"):
        pytest.skip(f"{any_server.version} has no such collation")
    charset = {"uca": "utf8mb4", "utf": "utf8mb4" if "mb4" in collation else "utf8", "lat": "latin1"}[collation[:3]]
    with row_metadata(any_server, "MINIMAL"):
        capture = Capture(any_server, database, tmp_path, start="latest")
        capture.execute(f"CREATE TABLE a (id INT PRIMARY KEY) CHARACTER SET {charset} COLLATE {collation}")
        assert drained(capture) == []
        capture.execute("INSERT INTO a VALUES (1)")
        capture.execute("ALTER TABLE a ADD COLUMN v VARCHAR(200), ADD COLUMN e ENUM('ü', 'z')")
        capture.execute("INSERT INTO a VALUES (2, 'Größe', 'ü')")
        (manifest,) = drained(capture)
    rows = [(row["id"], row.get("v"), row.get("e")) for row in capture.rows(manifest, "a")]
    assert rows == [(1, None, None), (2, "Größe", "ü")]
    (chunk,) = capture.snapshot("a")
    assert set(chunk.schemas) <= set(manifest.schemas)


UTF8 = [
    "CREATE TABLE {t} (id INT PRIMARY KEY, v VARCHAR(9) CHARACTER SET utf8)",
    "CREATE TABLE {t} (id INT PRIMARY KEY, v VARCHAR(9)) CHARSET=utf8",
    "CREATE TABLE {t} (id INT PRIMARY KEY, v VARCHAR(9) COLLATE utf8_bin)",
    "CREATE TABLE {t} (id INT PRIMARY KEY, v VARCHAR(9)) CHARSET=utf8mb4; ALTER TABLE {t} ADD w TINYTEXT CHARACTER SET 'utf8'",
    "ALTER DATABASE {d} CHARACTER SET utf8; CREATE TABLE {t} (id INT PRIMARY KEY, v VARCHAR(9))",
    "CREATE OR REPLACE DATABASE {d} CHARACTER SET utf8; CREATE TABLE {t} (id INT PRIMARY KEY, v VARCHAR(9))",
]


@pytest.mark.parametrize("later", ["", "ALTER TABLE {t} ADD n INT"])
@pytest.mark.parametrize("made", UTF8)
def test_utf8_is_what_the_old_mode_of_mariadb_says(mariadb_server, mariadb_database, tmp_path, made, later):
    """Statements do not say it: the server's columns count, or else a new snapshot is read."""
    if mariadb_server.release < (10, 6):
        pytest.skip("utf8 is utf8mb3 there")
    former = mariadb_server.variable("old_mode")
    mariadb_server.execute("SET GLOBAL old_mode = ''")
    try:
        with row_metadata(mariadb_server, "MINIMAL"):
            capture = Capture(mariadb_server, mariadb_database, tmp_path, start="latest")
            capture.execute("CREATE TABLE a (id INT PRIMARY KEY)")
            assert drained(capture) == []
            for statement in [*made.split("; "), "INSERT INTO {t} (id, v) VALUES (1, '😀')", *filter(None, [later])]:
                capture.execute(statement.format(d=mariadb_database, t=f"{mariadb_database}.utf"))
            (manifest,) = drained(capture)
            if later and "DATABASE" not in made:  # whose character set is read
                assert [(one.table.table, one.fault.code) for one in manifest.quarantined] == [
                    ("utf", "table_replaced")
                ]
            else:
                assert [(row["id"], row["v"]) for row in capture.rows(manifest, "utf")] == [(1, "😀")]
            rounds(capture)
            assert not cursor(capture).quarantined_tables
    finally:
        mariadb_server.execute(f"SET GLOBAL old_mode = '{former}'")


UNSHOWN = {
    "a session's old_mode": (
        "SET old_mode = ''",
        "CREATE TABLE utf (id INT PRIMARY KEY, v VARCHAR(9) CHARACTER SET utf8)",
    ),
    "a hash of MyISAM": (
        "CREATE TABLE utf (id INT PRIMARY KEY, v VARCHAR(700) CHARACTER SET ascii, w VARCHAR(700) CHARACTER SET ascii, UNIQUE (v, w)) ENGINE=MyISAM",
    ),
}


@pytest.mark.parametrize("on_error", ["stop", "quarantine"])
@pytest.mark.parametrize("made", UNSHOWN.values(), ids=UNSHOWN.keys())
def test_a_definition_that_its_statement_does_not_show_has_a_way_out(
    mariadb_server, mariadb_database, tmp_path, made, on_error
):
    """That of the message: a new snapshot."""
    if mariadb_server.release < (10, 6):
        pytest.skip("utf8 is utf8mb3 there")
    with row_metadata(mariadb_server, "MINIMAL"):
        capture = Capture(mariadb_server, mariadb_database, tmp_path, start="latest", on_error=on_error)
        capture.execute("CREATE TABLE a (id INT PRIMARY KEY)")
        assert drained(capture) == []
        with mariadb_server.connect(database=mariadb_database) as session, session.cursor() as sql:
            for statement in (*made, "INSERT INTO utf (id, v) VALUES (1, 'a')"):
                sql.execute(statement)
            session.commit()
        (window,) = capture.pipeline.plan(by="test")
        if on_error == "stop":
            with pytest.raises(UnknownSchema, match="disagree") as stopped:
                capture.pipeline.drain(window)
            assert "cdc snapshot" in str(stopped.value.hint)
        else:
            rounds(capture)
        requests.resnapshot(capture.pipeline, [f"{mariadb_database}.utf"], by="test", why="the message says so")
        rounds(capture, 3)
        assert cursor(capture).position == capture.head()
        assert not cursor(capture).quarantined_tables
        capture.execute("INSERT INTO utf (id, v) VALUES (2, 'b')")
        (manifest,) = drained(capture)
    assert [(row["id"], row["v"]) for row in capture.rows(manifest, "utf")] == [(2, "b")]


def test_a_column_that_is_put_first_comes_after_a_key_that_mysql_generated(mysql_server, mysql_database, tmp_path):
    """Both are of one type: the values were exchanged without a word."""
    with row_metadata(mysql_server, "MINIMAL"):
        capture = Capture(mysql_server, mysql_database, tmp_path, start="latest")
        with mysql_server.connect(database=mysql_database) as session, session.cursor() as cursor:
            cursor.execute("SET sql_generate_invisible_primary_key = ON")
            cursor.execute("CREATE TABLE a (n INT)")
            assert drained(capture) == []
            cursor.execute("ALTER TABLE a ADD COLUMN c BIGINT UNSIGNED NOT NULL FIRST")
            cursor.execute("INSERT INTO a (c, n) VALUES (50, 5)")
            session.commit()
        (manifest,) = drained(capture)
    assert [(row["my_row_id"], row["c"], row["n"]) for row in capture.rows(manifest, "a")] == [(1, 50, 5)]


def backlog(unnamed, database, folder):
    """A source with five windows in flight, each with a change of the table in it, and a second one over the same stretch."""
    settings = {"start": "latest", "drain": {"max_window_bytes": "1KiB"}}
    captures = [Capture(unnamed, database, folder / name, **settings) for name in ("one", "two", "three")]
    captures[0].execute("CREATE TABLE a (id INT UNSIGNED PRIMARY KEY)")
    for capture in captures:
        assert not capture.pipeline.plan(by="test")
    for number in range(5):
        captures[0].execute(f"INSERT INTO a (id) VALUES (400000000{number})")
        captures[0].execute(f"ALTER TABLE a ADD c{number} VARCHAR(2000) CHARACTER SET latin1 FIRST")
        captures[0].execute(f"INSERT INTO a (id, c{number}) VALUES ({number}, REPEAT('é', 1500))")
        captures[0].execute("FLUSH BINARY LOGS")
    return captures


def test_windows_drained_in_any_order_are_the_same_to_the_byte(unnamed, database, tmp_path):
    """In order, the last one first, and long after the table was changed again."""
    forth, back, late = backlog(unnamed, database, tmp_path)
    plans = [capture.pipeline.plan(by="test") for capture in (forth, back, late)]
    # MariaDB writes a checkpoint into the newest file whenever it likes: the last windows may end elsewhere.
    windows = [window for window in plans[0] if window in plans[1] and window in plans[2]]
    assert len(windows) >= 4
    for window in windows:
        forth.pipeline.drain(window)
    for window in reversed(windows):
        back.pipeline.drain(window)
    forth.execute("ALTER TABLE a DROP COLUMN c1, MODIFY id BIGINT")
    for window in (*windows[::2], *windows[1::2]):
        late.pipeline.drain(window)
    rows = 0
    for window in windows:
        key = layout.manifest_key(window)
        one, two, three = (capture.manifest(key) for capture in (forth, back, late))
        assert one == two == three
        rows += one.rows
    assert rows == 10
    assert [key for key in forth.visible() if "/schemas/" in key] == [
        key for key in back.visible() if "/schemas/" in key
    ]


def test_a_window_that_is_drained_again_is_the_same_to_the_byte(capture):
    """From the documents that the first time left, though the server has gone on."""
    capture.execute("INSERT INTO a VALUES (1, 'x')")
    capture.execute("ALTER TABLE a ADD w INT")
    capture.execute("INSERT INTO a VALUES (2, 'ü', 2)")
    (first,) = drained(capture)
    capture.execute("ALTER TABLE a DROP v")
    capture.store.delete([layout.key_of(first)])
    assert capture.drain(first.window) == first


def spoiled(capture, statement):
    """Run a statement in an SQL mode in which it is not followed."""
    mode = "SET SESSION sql_mode = 'NO_BACKSLASH_ESCAPES,STRICT_ALL_TABLES'"
    with capture.server.connect(database=capture.database, init_command=mode) as session, session.cursor() as cursor:
        cursor.execute(statement)


NOT_FOLLOWED = "ALTER TABLE a MODIFY v VARCHAR(30) COMMENT 'x\\y' FIRST"
"""It adds no column: what rows then have in one would be asked for by a new snapshot."""


def test_a_statement_that_is_not_followed_is_made_up_for_by_the_server(capture):
    """As long as the table is as the statement left it; the answer is kept."""
    spoiled(capture, NOT_FOLLOWED)
    capture.execute("INSERT INTO a VALUES ('ü', 4000000000)")
    (manifest,) = drained(capture)
    (row,) = capture.rows(manifest, "a")
    assert (row["id"], row["v"]) == (4000000000, "ü")
    capture.execute("ALTER TABLE a DROP v")
    capture.store.delete([layout.key_of(manifest)])
    again = capture.drain(manifest.window)
    assert [one.columns for one in (*manifest.comments, *again.comments)] == [
        {"v": "x\\y"},
        {},
    ]  # as they are when it is drained
    assert dataclasses.replace(again, comments=manifest.comments) == manifest


def test_rows_after_a_statement_that_is_not_followed_are_read_by_a_new_snapshot(capture):
    """When the table was changed again since; the fault has the names of both statements. No person has to do anything."""
    capture.execute("INSERT INTO a VALUES (1, 'x')")
    spoiled(capture, NOT_FOLLOWED)
    capture.execute("INSERT INTO a VALUES ('y', 2)")
    capture.execute("ALTER TABLE a DROP v")
    (manifest,) = drained(capture)
    (left_out,) = manifest.quarantined
    assert (left_out.table, left_out.fault.code) == (f"{capture.database}.a", "table_replaced")
    assert all(part in left_out.fault.reason for part in ("MODIFY v VARCHAR", "DROP v", "SQL mode"))
    rounds(capture)
    assert [task.table for task in cursor(capture).snapshots if task.complete] == ["a"]
    capture.execute("ALTER TABLE a ADD w INT FIRST")
    capture.execute("INSERT INTO a VALUES (7, 3)")
    (manifest,) = drained(capture)
    assert [(row["id"], row["w"]) for row in capture.rows(manifest, "a")] == [(3, 7)]


def test_a_statement_that_is_not_followed_harms_no_rows_that_are_not_there(capture):
    """The next plan reads the table again."""
    capture.execute("INSERT INTO a VALUES (1, 'x')")
    spoiled(capture, NOT_FOLLOWED)
    capture.execute("ALTER TABLE a DROP v")
    (manifest,) = drained(capture)
    assert len(capture.rows(manifest, "a")) == 1
    capture.pipeline.plan(by="test")
    capture.execute("INSERT INTO a VALUES (2)")
    capture.execute("ALTER TABLE a ADD w INT")
    (manifest,) = drained(capture)
    assert [row["id"] for row in capture.rows(manifest, "a")] == [2]


@pytest.mark.parametrize("kind", ["VARCHAR(9)", "TEXT", "ENUM('a')"])
def test_a_database_that_had_no_table_gives_its_character_set(unnamed, database, tmp_path, kind):
    """Its definition was not read before the statement, which does not say whether it made the database."""
    capture = Capture(unnamed, database, tmp_path, start="latest")
    assert not capture.pipeline.plan(by="test")
    capture.execute(f"CREATE DATABASE IF NOT EXISTS {database}")
    capture.execute(f"CREATE TABLE a (id INT PRIMARY KEY, d {kind})")
    capture.execute("INSERT INTO a VALUES (1, 'a')")
    (manifest,) = drained(capture)
    assert [(row["id"], row["d"]) for row in capture.rows(manifest, "a")] == [(1, "a")]


@pytest.mark.parametrize("after", ["RENAME TABLE a TO b", "DROP TABLE a", "ALTER TABLE a ADD w INT FIRST"])
@pytest.mark.parametrize("made", ["", "CREATE DATABASE IF NOT EXISTS {}", "ALTER DATABASE {} CHARACTER SET latin1"])
def test_a_table_that_became_another_since_has_the_character_set_of_its_database(
    unnamed, database, tmp_path, made, after
):
    """The database still has it, when the table can no longer be looked up."""
    capture = Capture(unnamed, database, tmp_path, start="latest", tables={"include": [f"{database}.a"]})
    assert not capture.pipeline.plan(by="test")
    if made:
        capture.execute(made.format(database))
    capture.execute("CREATE TABLE a (id INT PRIMARY KEY, d ENUM('é', '€'), e TEXT)")
    capture.execute("INSERT INTO a VALUES (1, '€', 'é')")
    capture.execute(after)
    (manifest,) = drained(capture)
    assert [(row["id"], row["d"], row["e"]) for row in capture.rows(manifest, "a")] == [(1, "€", "é")]


@pytest.mark.parametrize("charset", ["latin2", "utf8mb4"])
def test_a_new_table_has_the_character_set_of_its_database_not_of_a_variable(unnamed, database, tmp_path, charset):
    """As where the output of mysqlbinlog is run again, which sets collation_database."""
    unnamed.execute(f"ALTER DATABASE {database} CHARACTER SET utf8mb4")
    capture = Capture(unnamed, database, tmp_path, start="latest")
    assert not capture.pipeline.plan(by="test")
    with unnamed.connect(database=database) as session, session.cursor() as sql:
        sql.execute(f"SET character_set_database = {charset}")
        sql.execute("CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(9), w TEXT)")
        sql.execute("INSERT INTO a VALUES (1, '日', '本')")
        session.commit()
    (manifest,) = drained(capture)
    assert [(row["v"], row["w"]) for row in capture.rows(manifest, "a")] == [("日", "本")]


@pytest.mark.parametrize("after", ["RENAME TABLE a TO c", "DROP TABLE a", "DROP DATABASE {}"])
def test_rows_of_unknown_columns_stop_nothing_where_their_table_is_not_there_any_more(capture, after):
    """No snapshot can have it. A table that has its rows under another name is read as a new one."""
    capture.execute("CREATE TABLE b (id INT PRIMARY KEY)")
    spoiled(capture, NOT_FOLLOWED)
    capture.execute("INSERT INTO a VALUES ('y', 2)")
    capture.execute("INSERT INTO b VALUES (1)")
    capture.server.execute(after.format(capture.database), database=capture.database)
    (manifest,) = drained(capture)
    new = ["c"] if after.endswith("c") else []
    left_out = [(one.table, one.fault.code) for one in manifest.quarantined]
    assert left_out == [(f"{capture.database}.{name}", "table_replaced") for name in ("a", *new)]
    assert [row["id"] for row in capture.rows(manifest, "b")] == [1]
    rounds(capture, 2)
    assert not cursor(capture).quarantined_tables
    assert not cursor(capture).tables_to_resnapshot
    assert [task.table for task in cursor(capture).snapshots if task.complete] == new


def test_rows_in_front_of_the_first_reading_are_read_by_a_new_snapshot(unnamed, database, tmp_path):
    """Their columns are gone for good: the statement is named."""
    capture = Capture(unnamed, database, tmp_path)
    capture.execute("CREATE TABLE a (id INT PRIMARY KEY)")
    start = capture.head()
    capture.execute("INSERT INTO a VALUES (1)")
    capture.execute("ALTER TABLE a ADD v INT")
    (left_out,) = capture.drain(capture.window_from(start)).quarantined
    assert left_out.fault.code == "table_replaced"
    assert "ADD v INT" in left_out.fault.reason


def test_rows_whose_columns_nobody_knows_stop_the_window_where_no_snapshot_can_replace_them(
    unnamed, database, tmp_path
):
    """A masked key: the lake cannot tell which rows a new snapshot has."""
    masks = [{"tables": f"{database}.a", "columns": ["id"], "mask": "redact"}]
    capture = Capture(unnamed, database, tmp_path, masks=masks)
    capture.execute("CREATE TABLE a (id VARCHAR(9) PRIMARY KEY)")
    start = capture.head()
    capture.execute("INSERT INTO a VALUES (1)")
    capture.execute("ALTER TABLE a ADD v INT")
    with pytest.raises(UnknownSchema, match="cannot be read from the server"):
        capture.drain(capture.window_from(start))


SCHEMA_OF_AN_APPLICATION = [
    "CREATE TABLE IF NOT EXISTS {db}.hosts (id INT PRIMARY KEY, v VARCHAR(20) CHARACTER SET latin1, n INT)",
    "CREATE INDEX by_v ON {db}.hosts (v)",
    "ALTER TABLE {db}.hosts ADD INDEX by_n (n), AUTO_INCREMENT = 5, COMMENT 'x'",
    "INSERT INTO {db}.hosts VALUES (1, 'é', 4)",
    "ALTER TABLE {db}.hosts ADD COLUMN w INT DEFAULT 7 FIRST",
    "INSERT INTO {db}.hosts VALUES (8, 2, 'ü', 5)",
]


@pytest.mark.parametrize(
    "made", ["CREATE DATABASE", "CREATE DATABASE IF NOT EXISTS", "DROP TABLE", "earlier DROP TABLE"]
)
def test_a_create_if_not_exists_is_followed_where_it_is_certain_that_there_was_none(capture, made):
    """As an application makes its tables: the database is new, or the table was dropped, in the window or before it."""
    settings = {"start": "latest", "tables": {"include": [f"{capture.database}.*", f"{capture.database}_new.*"]}}
    name = f"{capture.database}_new"
    if "TABLE" in made:
        capture.server.execute(f"CREATE DATABASE {name}")
        capture.server.execute(f"CREATE TABLE {name}.hosts (v INT)")
    capture = Capture(capture.server, capture.database, capture.store.root.parent / "more", **settings)
    assert not capture.pipeline.plan(by="test")
    try:
        if "DATABASE" in made:
            capture.server.execute(f"DROP DATABASE IF EXISTS {name}")
            capture.server.execute(f"{made} {name}")
        else:
            capture.server.execute(f"DROP TABLE {name}.hosts")
        if made.startswith("earlier"):
            drained(capture)
        for statement in SCHEMA_OF_AN_APPLICATION:
            capture.server.execute(statement.format(db=name))
        (manifest,) = drained(capture)
        capture.database = name
        assert manifest.quarantined == ()
        assert [(row["id"], row["v"], row.get("w")) for row in capture.rows(manifest, "hosts")] == [
            (1, "é", None),
            (2, "ü", 8),
        ]
    finally:
        capture.server.execute(f"DROP DATABASE {name}")


def test_a_create_if_not_exists_of_which_nothing_is_known_needs_no_person(capture):
    """MariaDB writes it only if it made the table. On MySQL the server's columns count, or else a new snapshot is read."""
    for statement in SCHEMA_OF_AN_APPLICATION[:4]:
        capture.execute(statement.format(db=capture.database))
    (manifest,) = drained(capture)
    assert [(row["id"], row["v"]) for row in capture.rows(manifest, "hosts")] == [(1, "é")]
    for statement in SCHEMA_OF_AN_APPLICATION:
        capture.execute(statement.format(db=capture.database).replace("hosts", "services"))
    (manifest,) = drained(capture)
    if capture.server.flavor == "mariadb":
        assert [row["id"] for row in capture.rows(manifest, "services")] == [1, 2]
    else:
        assert [(one.table.table, one.fault.code) for one in manifest.quarantined] == [("services", "table_replaced")]
    rounds(capture)
    assert not cursor(capture).quarantined_tables


def test_a_history_that_does_not_fit_the_rows_stops_the_window_and_shows_both(capture):
    """Side by side, with a mark where they differ."""
    entity = (capture.database, "a")
    versions = SchemaVersions(capture.store, SOURCE, 1)
    version = versions.at(*entity, capture.head())
    columns = version.definition.schema.columns
    wrong = dataclasses.replace(columns[1], type=dataclasses.replace(columns[1].type, width=40), name="wrong")
    schema = dataclasses.replace(version.definition.schema, columns=(columns[0], wrong))
    spoilt = dataclasses.replace(version, definition=dataclasses.replace(version.definition, schema=schema))
    capture.execute("INSERT INTO a VALUES (1, 'x')")
    (window,) = capture.pipeline.plan(by="test")  # it compares the history with the server
    capture.store.put(layout.version_key(version), documents.dump(spoilt))
    with pytest.raises(UnknownSchema) as caught:
        capture.pipeline.drain(window)
    (line,) = [line for line in str(caught.value).splitlines() if "<--" in line]
    assert "string of 20 bytes" in line
    assert "wrong string of 40 bytes" in line
    assert {"file", "offset", "table"} <= caught.value.context.keys()


def test_what_happens_to_a_table_while_it_is_not_captured_is_not_missed(unnamed, database, tmp_path):
    """Its history ends with the exclusion and begins again after it."""
    everything = {"include": [f"{database}.*"]}
    capture = Capture(unnamed, database, tmp_path, start="latest", tables=everything)
    without = Capture(unnamed, database, tmp_path, start="latest", tables={**everything, "exclude": ["*.a"]})
    capture.execute("CREATE TABLE a (id INT PRIMARY KEY, x INT, y INT)")
    assert not capture.pipeline.plan(by="test")
    capture.execute("INSERT INTO a VALUES (1, 2, 3)")
    assert len(capture.rows(drained(capture)[0], "a")) == 1
    drained(without)
    capture.execute("ALTER TABLE a MODIFY x INT AFTER y")
    drained(without)
    drained(capture)
    capture.execute("INSERT INTO a (id, x, y) VALUES (2, 2, 3)")
    (manifest,) = drained(capture)
    assert [(row["x"], row["y"]) for row in capture.rows(manifest, "a")] == [(2, 3)]


def test_a_cursor_that_jumps_over_statements_restarts_the_schema_history(capture):
    """What went by unseen cannot be followed."""
    capture.execute("ALTER TABLE a ADD unseen INT FIRST")
    cursors = capture.pipeline.cursors
    cursor = cursors.load(SOURCE, DRAIN)
    move = Move(datetime.now(UTC), "rewind", cursor.position, capture.head(), "test", "a statement to step over")
    cursors.swap(cursor, dataclasses.replace(cursor, position=capture.head(), moves=(*cursor.moves, move)))
    assert not capture.pipeline.plan(by="test")
    capture.execute("INSERT INTO a VALUES (7, 1, 'x')")
    capture.execute("ALTER TABLE a DROP v")
    (manifest,) = drained(capture)
    assert [(row["unseen"], row["v"]) for row in capture.rows(manifest, "a")] == [(7, "x")]


def test_tables_of_a_backlog_are_known_from_their_last_change_on(unnamed, database, tmp_path):
    """A cursor that starts before it reads all rows after it."""
    capture = Capture(unnamed, database, tmp_path, start="latest")
    assert not capture.pipeline.plan(by="test")
    capture.execute("CREATE TABLE seen (id INT PRIMARY KEY)")
    capture.execute("INSERT INTO seen VALUES (1)")
    spoiled(capture, "CREATE TABLE read_only (id INT PRIMARY KEY, s VARCHAR(9) DEFAULT 'x\\y')")
    capture.execute("INSERT INTO read_only VALUES (1, 'q')")
    units = capture.pipeline.plan(by="test")
    capture.execute("ALTER TABLE read_only ADD v INT FIRST")
    capture.execute("ALTER TABLE seen ADD v INT FIRST")
    for unit in units:
        capture.pipeline.drain(unit)
    (manifest,) = [capture.manifest(layout.manifest_key(unit)) for unit in units]
    assert capture.ops(manifest, "seen") == [("c", 1)]
    assert [row["s"] for row in capture.rows(manifest, "read_only")] == ["q"]


def test_a_table_that_is_made_in_a_backlog_is_known_to_windows_that_are_drained_before_its_own(
    unnamed, database, tmp_path
):
    """No version of it is stored yet: the statements before such a window make it."""
    capture = Capture(unnamed, database, tmp_path, start="latest", drain={"max_window_bytes": 1})
    capture.execute("CREATE TABLE a (id INT PRIMARY KEY)")
    assert not capture.pipeline.plan(by="test")
    capture.execute("CREATE TABLE late (id INT PRIMARY KEY, v VARCHAR(9) CHARACTER SET latin1)")
    for number in range(3):
        capture.execute("FLUSH BINARY LOGS")
        capture.execute(f"ALTER TABLE late ADD COLUMN c{number} INT DEFAULT {number}")
        capture.execute(f"INSERT INTO late (id, v) VALUES ({number}, 'é')")
    windows = capture.pipeline.plan(by="test")
    for window in reversed(windows):
        capture.pipeline.drain(window)
    rows = [row for one in windows for row in capture.rows(capture.manifest(layout.manifest_key(one)), "late")]
    assert [(row["id"], row["v"], row[f"c{row['id']}"]) for row in rows] == [(n, "é", n) for n in range(3)]


TEMPORARY = [
    "CREATE TABLE staging (id INT PRIMARY KEY, v VARCHAR(9))",
    "INSERT INTO staging VALUES (1, 'ü')",
    "ALTER TABLE staging ADD COLUMN w INT DEFAULT 7",
    "INSERT INTO staging VALUES (2, 'x', 3)",
    "DROP TABLE staging",
]


def versions_of(capture, table):
    """The keys of a table's versions."""
    return [key for key in capture.visible() if f"/{capture.database}.{table}/" in key and "/schemas/" in key]


def test_a_table_that_comes_and_goes_in_a_window_leaves_no_version(capture):
    """Its rows are read, and a later table of its name is another one, also where a statement says IF NOT EXISTS."""
    for _ in range(2):
        for statement in TEMPORARY:
            capture.execute(statement)
        (manifest,) = drained(capture)
        assert [row["id"] for row in capture.rows(manifest, "staging")] == [1, 2]
        assert versions_of(capture, "staging") == []
    capture.execute("CREATE TABLE IF NOT EXISTS staging (v INT, id INT PRIMARY KEY)")
    capture.execute("INSERT INTO staging VALUES (5, 6)")
    (manifest,) = drained(capture)
    assert [(row["id"], row["v"]) for row in capture.rows(manifest, "staging")] == [(6, 5)]
    assert versions_of(capture, "staging")
    capture.execute("DROP TABLE staging")
    drained(capture)
    assert versions_of(capture, "staging")[-1].endswith("-lost.json")


@pytest.mark.parametrize("order", [1, -1], ids=["forth", "back"])
def test_a_table_of_an_earlier_window_is_known_to_be_dropped(unnamed, database, tmp_path, order):
    """Though nothing of it is stored yet when its DROP is drained first."""
    capture = Capture(unnamed, database, tmp_path, start="latest", drain={"max_window_bytes": 1})
    capture.execute("CREATE TABLE a (id INT PRIMARY KEY)")
    assert not capture.pipeline.plan(by="test")
    for statement in TEMPORARY:
        capture.execute(statement)
        capture.execute("FLUSH BINARY LOGS")
    windows = capture.pipeline.plan(by="test")
    for window in windows[::order]:
        capture.pipeline.drain(window)
    capture.pipeline.ack_drain(by="test")
    assert [key.rpartition("-")[2] for key in versions_of(capture, "staging")] == ["ddl.json", "ddl.json", "lost.json"]
    capture.execute("CREATE TABLE IF NOT EXISTS staging (v INT, id INT PRIMARY KEY)")
    capture.execute("INSERT INTO staging VALUES (5, 6)")
    rows = [row for manifest in drained(capture) for row in capture.rows(manifest, "staging")]
    assert [(row["id"], row["v"]) for row in rows] == [(6, 5)]


def test_a_table_that_was_read_from_the_server_leaves_its_end(capture):
    """The definition that was read must not count after the DROP."""
    capture.execute("CREATE TABLE staging (id INT PRIMARY KEY)")
    spoiled(capture, NOT_FOLLOWED.replace("TABLE a", "TABLE staging").replace("MODIFY", "ADD"))
    capture.execute("INSERT INTO staging VALUES ('x', 1)")
    (window,) = capture.pipeline.plan(by="test")
    capture.pipeline.drain(window)
    capture.pipeline.ack_drain(by="test")
    capture.execute("DROP TABLE staging")
    drained(capture)
    assert versions_of(capture, "staging")[-1].endswith("-lost.json")


@pytest.mark.parametrize("order", [1, -1], ids=["forth", "back"])
@pytest.mark.parametrize(
    "dropped", ["DROP DATABASE {d}", "CREATE OR REPLACE DATABASE {d}"], ids=["dropped", "replaced"]
)
def test_tables_of_a_dropped_database_are_other_tables_when_it_is_made_again(
    unnamed, database, tmp_path, order, dropped
):
    """Also where a statement says IF NOT EXISTS, and where the DROP is drained before what made them."""
    if "REPLACE" in dropped and not has(unnamed, "CREATE OR REPLACE DATABASE"):
        pytest.skip(f"{unnamed.version} has no CREATE OR REPLACE DATABASE")
    capture = Capture(unnamed, database, tmp_path, start="latest", drain={"max_window_bytes": 1})
    capture.execute("CREATE TABLE a (id INT PRIMARY KEY, v INT)")
    assert not capture.pipeline.plan(by="test")
    for statement in (
        "CREATE TABLE {d}.b (id INT PRIMARY KEY, v INT)",
        "INSERT INTO {d}.b VALUES (1, 2)",
        dropped,
        "CREATE DATABASE IF NOT EXISTS {d}",
    ):
        with unnamed.connect() as session, session.cursor() as cursor:
            cursor.execute(statement.format(d=database))
            cursor.execute("FLUSH BINARY LOGS")
    windows = capture.pipeline.plan(by="test")
    for window in windows[::order]:
        capture.pipeline.drain(window)
    capture.pipeline.ack_drain(by="test")
    for table in ("a", "b"):
        assert versions_of(capture, table)[-1].endswith("-lost.json")
        capture.execute(f"CREATE TABLE IF NOT EXISTS {table} (v INT, id INT PRIMARY KEY)")
        capture.execute(f"INSERT INTO {table} VALUES (5, 6)")
    manifests = drained(capture)
    for table in ("a", "b"):
        rows = [row for manifest in manifests for row in capture.rows(manifest, table)]
        assert [(row["id"], row["v"]) for row in rows] == [(6, 5)]


def test_each_statement_of_a_backlog_is_parsed_once_and_not_once_for_each_table(
    unnamed, database, tmp_path, monkeypatch
):
    """By the plan, which reads the tables' definitions, and by each window of the backlog, which follows the statements before it too."""
    parsed, requested = Counter(), Counter()

    def counted(statement, *, fold):
        parsed[statement.text] += 1
        return touched(statement, fold=fold)

    def dumped(*arguments):
        requested["dump"] += 1
        return binlog_dump(*arguments)

    for module in (versions, history):
        monkeypatch.setattr(module, "touched", counted)
    monkeypatch.setattr(versions, "binlog_dump", dumped)
    tables, rounds = [f"t{n}" for n in range(12)], 3
    capture = Capture(unnamed, database, tmp_path, start="latest", drain={"max_window_bytes": 1})
    capture.execute("CREATE TABLE a (id INT PRIMARY KEY)")
    assert not capture.pipeline.plan(by="test")
    for table in tables:
        capture.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY)")
    for number in range(rounds):
        capture.execute("FLUSH BINARY LOGS")
        for table in tables:
            capture.execute(f"ALTER TABLE {table} ADD COLUMN c{number} INT")
            capture.execute(f"INSERT INTO {table} (id) VALUES ({number})")
    parsed.clear()
    windows = capture.pipeline.plan(by="test")
    mine = [one for one in parsed if "TABLE t" in one]
    assert len(mine) == len(tables) * (1 + rounds)
    assert {parsed[one] for one in mine} == {1}
    assert requested["dump"] == 1
    assert len(windows) == rounds + 1
    for window in reversed(windows):  # each has those before it to follow as well
        parsed.clear()
        capture.pipeline.drain(window)
        assert max(parsed.values()) == 1
    assert sum(capture.manifest(layout.manifest_key(window)).rows for window in windows) == len(tables) * rounds


def test_a_version_is_written_once(capture):
    """Whoever comes second takes what is."""
    versions = SchemaVersions(capture.store, SOURCE, 1)
    version = versions.at(capture.database, "a", capture.head())
    assert isinstance(version, SchemaVersion)
    other = dataclasses.replace(version, definition=dataclasses.replace(version.definition, charset="other"))
    assert versions.put(other) == version


def test_the_preflight_names_the_price(capture):
    """And the statement that saves it."""
    (finding,) = [finding for finding in findings_of(capture.pipeline) if "binlog_row_metadata" in finding.what]
    assert finding.level == "warning"
    assert "schema history" in finding.what
    assert "FULL" in finding.hint
