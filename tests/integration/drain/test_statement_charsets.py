"""Statements of sessions in other character sets and SQL modes, on real servers: the tables that they name are the right ones."""

from __future__ import annotations

import random

import pymysql
import pytest

from cdc_lib.errors import UnknownEvent
from cdc_lib.model.ddl_effect import AddedDefault
from tests.harness.binlog.capture import Capture, row_metadata
from tests.harness.shop.quarantine import cursor, manifest_of, rounds
from tests.integration.drain.test_columns_and_masks import captured, everything

NAMES = 200
PIECES = [
    *(bytes([one]) for one in b"aZ\x80\xbf\xc0\xc3\xa4\xe2\x82\xac\xed\xa0\xef\xf0\x9f\x98\xf4\x90\xf6\xff"),
    "ä".encode(),
    "\N{GRINNING FACE}".encode(),
]
"""Of names: also parts of characters, and bytes that are in none."""


@pytest.fixture(params=["FULL", "MINIMAL"])
def capture(request, any_server, database, tmp_path):
    """An empty database, followed from now on."""
    with row_metadata(any_server, request.param):
        capture = Capture(any_server, database, tmp_path, start="latest")
        assert not capture.pipeline.plan(by="test")
        yield capture


def run(capture, *statements, charset="utf8mb4", mode=None):
    """Run statements, given as bytes, in one session."""
    with capture.server.connect(database=capture.database) as session:
        session.query(f"SET NAMES {charset}")
        if mode is not None:
            session.query(f"SET sql_mode = '{mode}'")
        for statement in statements:
            session.query(statement)


def drained(capture):
    """Return the manifest of all that was not drained yet, and what it tells of tables: (kind, name) each."""
    (window,) = capture.pipeline.plan(by="test")
    capture.pipeline.drain(window)
    manifest = manifest_of(capture, window)
    return manifest, [(one.kind, one.table.table) for one in manifest.statements]


@pytest.mark.parametrize(
    ("charset", "codec", "name", "other"),
    [
        ("latin1", "cp1252", "größe", "ähnlich"),
        ("sjis", "cp932", "表", "ソ"),  # their second byte is a backslash
        ("gbk", "gbk", "誠", "乣"),  # a backslash, a backtick
        ("binary", "utf-8", "größe", "表"),
    ],
)
def test_tables_are_named_in_the_character_set_of_the_session(capture, charset, codec, name, other):
    """As the client sent it, or as the server writes it: DROP."""
    statements = [
        f"CREATE TABLE `{name}` (id INT PRIMARY KEY)",
        f"INSERT INTO `{name}` VALUES (1)",
        f"ALTER TABLE `{name}` ADD COLUMN v VARCHAR(9) CHARACTER SET utf8mb4 NOT NULL DEFAULT '{name}'",
        f"INSERT INTO `{name}` (id) VALUES (2)",
        f"TRUNCATE TABLE `{name}`",
        f"CREATE TABLE `{other}` (id INT PRIMARY KEY)",
        f"DROP TABLE `{other}`",
        f"RENAME TABLE `{name}` TO new",
    ]
    run(capture, *(statement.encode(codec) for statement in statements), charset=charset)
    manifest, found = drained(capture)
    assert found == [
        ("create", name), ("add_default", name), ("truncate", name), ("create", other), ("drop", other), ("drop", name)
    ]  # fmt: skip
    assert [one.table.table for one in manifest.quarantined] == ["new"]  # it has the rows of another
    assert manifest.statements[1].added_defaults == (AddedDefault("v", name),)
    rows = [one.to_pylist() for one in capture.tables(manifest, name)]
    assert sorted((row["id"], row.get("v")) for part in rows for row in part) == [(1, None), (2, name)]
    assert all(name in one.statement or other in one.statement for one in manifest.ddl)


@pytest.mark.needs("CREATE TABLE ... SELECT with GTIDs")
def test_a_table_with_the_rows_of_a_select_is_named_in_utf8(capture):
    """So servers write it, in every session."""
    run(
        capture,
        b"CREATE TABLE gr\xf6\xdfe (id INT PRIMARY KEY)",
        b"INSERT INTO gr\xf6\xdfe VALUES (1)",
        b"CREATE TABLE gr\xf6\xdfer AS SELECT id, '\xe4' AS v FROM gr\xf6\xdfe",
        charset="latin1",
    )
    manifest, found = drained(capture)
    assert found == [("create", "größe"), ("create", "größer")]
    ((row,),) = [one.to_pylist() for one in capture.tables(manifest, "größer")]
    assert (row["id"], row["v"]) == (1, "ä")


@pytest.mark.parametrize("typed", [False, True])
def test_a_table_that_may_have_either_of_two_names_is_read_again_alone(capture, typed):
    """A copy of a temporary table is written as text in UTF-8, of a session in latin1: the same may have been typed."""
    capture.execute("CREATE TABLE other (id INT PRIMARY KEY)")
    name = "größe".encode().decode("cp1252") if typed else "größe"
    made = [b"CREATE TEMPORARY TABLE t (id INT PRIMARY KEY, v INT)", b"CREATE TABLE gr\xf6\xdfe LIKE t"]
    if typed:
        made = ["CREATE TABLE `größe` (\n  `id` int PRIMARY KEY, v INT)".encode()]
    run(capture, *made, charset="latin1")
    assert name in {row[0] for row in capture.execute("SHOW TABLES")}
    capture.execute(f"INSERT INTO `{name}` VALUES (1, 2)")
    capture.execute("INSERT INTO other VALUES (1)")
    manifest, found = drained(capture)
    assert found == [("create", "other")]
    assert {one.table.table for one in manifest.quarantined} == {"größe", "größe".encode().decode("cp1252")}
    assert len(capture.tables(manifest, "other")) == 1
    capture.pipeline.ack_drain(by="test")
    rounds(capture, 2)
    assert [task.table for task in cursor(capture).snapshots] == [name]
    assert cursor(capture).quarantined_tables == ()
    capture.execute(f"INSERT INTO `{name}` VALUES (3, 4)")
    manifest, _ = drained(capture)
    assert [(row["id"], row["v"]) for one in capture.tables(manifest, name) for row in one.to_pylist()] == [(3, 4)]


@pytest.mark.parametrize("quote", [b"`", b'"'])
def test_a_name_with_bytes_that_are_no_text_is_the_one_that_mysql_keeps(mysql_server, mysql_database, tmp_path, quote):
    """It cuts a name whose last character is not whole, as of a client in latin1: this empties gr."""
    capture = Capture(mysql_server, mysql_database, tmp_path, start="latest")
    assert not capture.pipeline.plan(by="test")
    names = [b"gr\xf6", b"gr\xf6\xdfen", b"\xc0``\xe4b", b"a\xed\xa0\x80", b"\xf0\x9f\x98\x80\xe9"]
    quoted = [quote + name.replace(quote, quote * 2) + quote for name in names]
    run(capture, *(b"CREATE TABLE %s (id INT PRIMARY KEY)" % name for name in quoted), mode="ANSI_QUOTES")
    run(capture, *(b"INSERT INTO %s VALUES (1)" % name for name in quoted), mode="ANSI_QUOTES")
    run(capture, *(b"ALTER TABLE %s ADD c INT DEFAULT 5" % name for name in quoted), mode="ANSI_QUOTES")
    run(capture, *(b"TRUNCATE %s" % name for name in quoted), mode="ANSI_QUOTES")
    kept = [row[0] for row in capture.execute("SHOW TABLES")]
    assert "gr" in kept
    found = drained(capture)[1]
    for kind in ("create", "add_default", "truncate"):
        assert sorted(name for one, name in found if one == kind) == sorted(kept)


def test_names_of_any_bytes_are_those_that_mysql_keeps(mysql_server, mysql_database, tmp_path):
    capture = Capture(mysql_server, mysql_database, tmp_path, start="latest")
    assert not capture.pipeline.plan(by="test")
    chosen, made, expected = random.Random(38), 0, []
    with capture.server.connect(database=capture.database) as session:
        session.query("SET NAMES utf8mb4")
        while made < NAMES:
            name = b"".join(chosen.choices(PIECES, k=chosen.randint(1, 5)))
            try:
                session.query(b"CREATE TABLE `" + name + b"` (id INT PRIMARY KEY)")
            except pymysql.Error:  # nothing is left of the name
                continue
            made += 1
            ((kept,),) = capture.execute("SHOW TABLES")
            capture.execute(f"DROP TABLE `{kept}`")
            expected += [("create", kept), ("drop", kept)]
    assert drained(capture)[1] == expected


@pytest.mark.parametrize("name", ["`a\N{GRINNING FACE}b`", "a\N{GRINNING FACE}b"])
@pytest.mark.parametrize(("charset", "codec"), [("utf8mb4", "utf-8"), ("gb18030", "gb18030")])
def test_characters_that_names_of_the_server_do_not_have_are_question_marks(
    mysql_server, mysql_database, tmp_path, name, charset, codec
):
    """MySQL makes them so: these statements are about a?b."""
    capture = Capture(mysql_server, mysql_database, tmp_path, start="latest")
    assert not capture.pipeline.plan(by="test")
    statements = [
        f"CREATE TABLE {name} (id INT PRIMARY KEY, \N{GRINNING FACE} INT)",
        f"INSERT INTO {name} VALUES (1, 2)",
        f"TRUNCATE TABLE {name}",
        f"ALTER TABLE {name} RENAME COLUMN \N{GRINNING FACE} TO v",
    ]
    run(capture, *(statement.encode(codec) for statement in statements), charset=charset)
    assert capture.execute("SELECT id, v FROM `a?b`") == []
    manifest, found = drained(capture)
    assert found == [("create", "a?b"), ("truncate", "a?b"), ("rename_columns", "a?b")]
    assert manifest.statements[-1].names == (("?", "v"),)


def test_a_database_that_is_not_captured_stops_nothing(any_server, database, tmp_path):
    """Whatever its tables are called."""
    capture = Capture(any_server, database, tmp_path, start="latest", tables={"include": ["elsewhere.*"]})
    assert not capture.pipeline.plan(by="test")
    run(capture, b"CREATE TABLE `c[d` (id INT)", charset="swe7")
    assert drained(capture)[1] == []


MODES = ["NO_BACKSLASH_ESCAPES", "ANSI_QUOTES", "ANSI_QUOTES,NO_BACKSLASH_ESCAPES", ""]


@pytest.mark.parametrize("mode", MODES[:-1])
def test_quotes_are_read_in_the_sql_mode_of_the_session(capture, mode):
    """A comment that ends in a backslash hides no name, and a name may end in one."""
    end = b"\\" if "NO_BACKSLASH" in mode else b"\\\\"
    quote = b'"' if "ANSI" in mode else b"`"
    name = quote + b"a\\" + quote
    run(
        capture,
        b"CREATE TABLE t (id INT PRIMARY KEY)",
        b"CREATE TABLE " + name + b" (id INT PRIMARY KEY)",
        b"ALTER TABLE t COMMENT 'it''s C:" + end + b"', RENAME TO u",
        b"RENAME TABLE " + name + b" TO " + quote + b"b" + quote,
        mode=mode,
    )
    assert drained(capture)[1] == [("create", "t"), ("create", "a\\"), ("drop", "t"), ("drop", "a\\")]


@pytest.mark.parametrize("mode", MODES)
def test_masked_values_are_in_no_object_whatever_the_sql_mode(any_server, database, tmp_path, mode):
    """Not after a text that ends in a backslash in the mode of its session, nor as what errors show."""
    capture = captured(any_server, database, tmp_path, [{"columns": ["mail"], "mask": "redact"}])
    start = capture.head()
    end = b"\\" if "NO_BACKSLASH" in mode else b"\\\\"
    run(
        capture,
        b"CREATE TABLE t (id INT PRIMARY KEY, note VARCHAR(30) DEFAULT 'C:" + end + b"', mail VARCHAR(30) DEFAULT 'my secret')",
        b"ALTER TABLE t ALTER note SET DEFAULT 'it''s C:" + end + b"', ALTER mail SET DEFAULT 'another secret'",
        b"INSERT INTO t (id) VALUES (1)",
        mode=mode,
    )  # fmt: skip
    manifest = capture.drain(capture.window_from(start))
    assert len(manifest.ddl) == 2
    assert manifest.ddl[1].statement == ("ALTER TABLE t ALTER note SET DEFAULT '?', ALTER mail SET DEFAULT '?'")
    assert "secret" not in everything(capture.store)


@pytest.mark.parametrize("hidden", [True, False])
def test_a_mode_that_is_set_for_one_statement_is_not_guessed(mariadb_server, mariadb_database, tmp_path, hidden):
    """MariaDB reads the text in the mode of the session and logs the other one: where names depend on it, the window stops."""
    capture = Capture(mariadb_server, mariadb_database, tmp_path, start="latest")
    assert not capture.pipeline.plan(by="test")
    change = b"COMMENT 'C:\\'" if hidden else b"COMMENT 'C:'"
    run(
        capture,
        b"CREATE TABLE t (id INT PRIMARY KEY)",
        b"SET STATEMENT sql_mode='' FOR ALTER TABLE t " + change + b", RENAME TO u",
        mode="NO_BACKSLASH_ESCAPES",
    )
    if not hidden:
        assert drained(capture)[1] == [("create", "t"), ("drop", "t")]
        return
    (window,) = capture.pipeline.plan(by="test")
    with pytest.raises(UnknownEvent, match="sets the SQL mode"):
        capture.pipeline.drain(window)
