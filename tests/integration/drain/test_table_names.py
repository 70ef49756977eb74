"""The tables that a server changed are those that its statements are read to name, in every spelling that it takes."""

from __future__ import annotations

from contextlib import closing

import pymysql
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from cdc_lib.binlog.ddl.ddl import meaning
from cdc_lib.binlog.statement_reader import read_statements
from cdc_lib.binlog.stream_facts import StreamFacts
from cdc_lib.model.lexer import quoted
from cdc_lib.mysql.binlog_stream import binlog_dump
from cdc_lib.mysql.connection import connect
from cdc_lib.mysql.server_facts import read_charsets
from tests.harness.binlog.capture import Capture
from tests.harness.generated.examples import examples
from tests.harness.shop.quarantine import cursor, rounds

NAMES = ["t", "1a", "1", "1e5", "0x1F", "rename", "table", "wait", "if", "größe", "a\xa0b", "a b", "a.b", "new"]
SIGN = st.sampled_from(["`{}`"] * 2 + ["{}"] * 4 + ['"{}"'])
POINT = st.sampled_from([".", " .", ". ", " . ", "/**/.", "./* x */", "..", ".\n"])
FRONT = st.sampled_from(["", "", ".", " . ", "./**/"])
FORMS = [
    *("ALTER TABLE {a} ADD n INT", "ALTER TABLE IF EXISTS {a} ADD n INT", "ALTER TABLE {a} WAIT 1 ADD n INT", "ALTER TABLE{a}DROP x"),
    *("ALTER TABLE {a} RENAME {b}", "ALTER TABLE {a} RENAME TO {b}", "ALTER TABLE {a} ADD n INT, RENAME AS {b}", "ALTER TABLE {a} RENAME={b}"),
    *("RENAME TABLE {a} TO {b}", "RENAME TABLES {a} TO {b}, {c} TO {a}", "RENAME TABLE {a} NOWAIT TO {b}", "RENAME TABLE {a} TO {b} /*M! , {c} TO `new2` */"),
    *("DROP TABLE {a}", "DROP TABLE {a}, {c}", "DROP TABLES IF EXISTS {a} RESTRICT", "DROP TABLE {a} WAIT 1"),
    *("TRUNCATE {a}", "TRUNCATE TABLE {a}", "/*!40000 TRUNCATE TABLE {a} */", "TRUNCATE TABLE {a} NOWAIT -- .u", "TRUNCATE/*!50000TABLE*/{a}"),
    *("CREATE TABLE {b} (id INT)", "CREATE TABLE IF NOT EXISTS {b} LIKE {a}", "CREATE TABLE {b} (LIKE {a})", "CREATE OR REPLACE TABLE {a} (id INT)"),
    *("CREATE INDEX i ON {a} (x)", "CREATE UNIQUE INDEX i USING BTREE ON {a} (x)", "ALTER IGNORE TABLE {a} ADD n INT", "ALTER TABLE {a} CHANGE x y INT;"),
]  # fmt: skip
MODES = ["", "ANSI_QUOTES", "IGNORE_SPACE"]


@st.composite
def spelled(draw):
    """A table's name with or without its database, quoted or not."""
    sign, name = draw(SIGN), draw(st.sampled_from(NAMES))
    if draw(st.booleans()):
        return draw(FRONT) + sign.format(name)
    return draw(SIGN).format("{db}") + draw(POINT) + sign.format(name)


class Tables:
    """A database with a table for each name, made again after each statement.

    Args:
        server: a running one.
        database: its name.
        folder: for a store that stays empty.
    """

    def __init__(self, server, database, folder):
        self.capture = Capture(server, database, folder, start="latest")
        self.server, self.database = server, database
        self.execute = self.capture.execute
        self._make(NAMES[:-1])

    def _make(self, names):
        for name in names:
            self.execute(f"CREATE TABLE {quoted(name)} (id INT, x INT) COMMENT '{NAMES.index(name)}'")
            self.execute(f"INSERT INTO {quoted(name)} VALUES (1, 1)")

    def state(self):
        names = [row[0] for row in self.execute("SHOW TABLES")]
        return {
            name: (self.execute(f"SHOW CREATE TABLE {quoted(name)}"), self.execute(f"SELECT * FROM {quoted(name)}"))
            for name in names
        }

    def changed(self, statement, charset, mode):
        """Run a statement; returns the tables that differ then, and those that its text in the binlog names."""
        start, before = self.capture.head(), self.state()
        with self.server.connect(database=self.database, charset=charset) as session, session.cursor() as sql:
            sql.execute(f"SET sql_mode = '{mode}'")
            try:
                sql.execute(statement)
            except (pymysql.Error, UnicodeEncodeError):
                return None
        after = self.state()
        differ = {name for name in {*before, *after} if before.get(name) != after.get(name)}
        named = self.named(self.capture.window_from(start))
        for name in {*after} & differ:
            self.execute(f"DROP TABLE {quoted(name)}")
        self._make(sorted(differ & {*NAMES[:-1]}))
        return {(self.database, name) for name in differ}, named

    def named(self, window):
        """Return the tables that the statements of a window name."""
        config, credentials, facts = self.capture.config, self.capture.credentials, self.capture.facts()
        with closing(connect(config.server, credentials)) as connection:
            charsets = read_charsets(connection)
        with binlog_dump(config.server, credentials, facts.identity, window.start) as stream:
            read = read_statements(window, stream, StreamFacts(facts.identity.flavor, facts.checksum, charsets))
        return {name for _, one in read for name in meaning(one.text, one.database, one.quotings[0]).tables}


@pytest.fixture
def tables(any_server, database, tmp_path):
    return Tables(any_server, database, tmp_path)


# The server refuses most names that are made at random.
@settings(
    max_examples=examples(30), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much]
)
@example("ALTER TABLE {a} ADD n INT", "{db}.rename", "new", "t", "utf8mb4", "")
@example("ALTER TABLE {a} ADD n INT", "{db}.table", "new", "t", "utf8mb4", "")
@example("ALTER TABLE {a} ADD n INT", "a\xa0b", "new", "t", "utf8mb4", "")
@example("ALTER TABLE\xa0{a}\xa0ADD n INT", "t", "new", "t", "latin1", "")
@example("RENAME TABLE {a} TO {b}, {c} TO {a}", ".t", ".new", ".if", "utf8mb4", "")
@example("RENAME TABLE {a} TO {b} /*M! , {c} TO `new2` */", "t", "new", "1a", "utf8mb4", "")
@example("DROP TABLE {a}, {c}", "t", "new", ".`1a`", "utf8mb4", "")
@given(
    st.sampled_from(FORMS),
    spelled(),
    spelled(),
    spelled(),
    st.sampled_from(["utf8mb4", "latin1"]),
    st.sampled_from(MODES),
)
def test_a_statement_names_the_tables_that_the_server_changes(tables, form, a, b, c, charset, mode):
    """Whatever the server takes; what it refuses is in no binlog."""
    text = form.replace("{a}", a).replace("{b}", b).replace("{c}", c).replace("{db}", tables.database)
    found = tables.changed(text, charset, mode)
    assume(found is not None)
    changed, named = found
    assert changed <= named
    assert named - changed <= {(tables.database, name) for name in NAMES}  # IF EXISTS and the like, of a name as it is


def test_a_database_whose_name_differs_from_a_servers_own_by_case_is_captured(any_server, tmp_path):
    """On a server where case counts: the snapshot finds its tables, and a window their changes."""
    any_server.execute("CREATE DATABASE `MYSQL`")
    try:
        capture = Capture(any_server, "MYSQL", tmp_path)
        capture.execute("CREATE TABLE user (id INT PRIMARY KEY)")
        capture.execute("INSERT INTO user VALUES (1)")
        rounds(capture)
        (task,) = cursor(capture).snapshots
        assert (task.name, task.complete) == ("MYSQL.user", True)
        start = capture.head()
        capture.execute("INSERT INTO user VALUES (2)")
        assert capture.ops(capture.drain(capture.window_from(start)), "user") == [("c", 2)]
    finally:
        any_server.execute("DROP DATABASE `MYSQL`")
