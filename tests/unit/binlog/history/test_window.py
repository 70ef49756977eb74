"""Definitions inside one window: where they come from, and what is asked only when rows need it."""

from __future__ import annotations

import pytest

from cdc_lib.binlog.ddl.history.advance import advance
from cdc_lib.binlog.ddl.history.column import Rules
from cdc_lib.binlog.ddl.history.window import UnknownDefinition, WindowHistory
from cdc_lib.binlog.ddl.statement import Statement
from cdc_lib.errors import UnknownSchema
from cdc_lib.model.position import Position
from cdc_lib.model.schema import TableSchema
from cdc_lib.model.schema_version import Definition
from cdc_lib.mysql.information_schema import source_type

RULES = Rules(source_type, mariadb=False)
DATABASE = Definition(TableSchema("db", "", ()), "utf8mb4")
TABLE = advance(("db", "t"), Statement("CREATE TABLE t (id INT)", "db"), {("db", ""): DATABASE}.get, RULES)
START = at = Position("binlog.000002", 1000)


def position(offset):
    return Position("binlog.000002", offset)


class Known:
    """What the store and the server would say."""

    def __init__(self, versions, gap=(), server=None):
        self.versions = versions
        self.gap = list(gap)
        self.server = server
        self.asked = []
        self.databases = []
        self.history = WindowHistory(self.base, lambda: self.gap, self.reread, RULES)

    def base(self, entity):
        self.asked.append(entity)
        return self.versions.get(entity, (START, UnknownDefinition(START, None, "never read")))

    def reread(self, entity, lost):
        if not entity[1]:
            self.databases.append(entity[0])
            raise UnknownSchema("dropped")
        self.asked.append(lost)
        assert entity == ("db", "t")
        if self.server is None:
            raise UnknownSchema("dropped")
        return self.server

    def took(self, offset, text):
        self.history.took(position(offset), Statement(text, "db"))

    def names(self, table="t"):
        return [column.name for column in self.history.definition("db", table).schema.columns]


def known(**more):
    return Known({("db", "t"): (position(500), TABLE), ("db", ""): (position(4), DATABASE)}, **more)


def test_statements_count_from_their_position_on():
    """Rows before one have the columns before it."""
    one = known()
    assert one.names() == ["id"]
    one.took(1100, "ALTER TABLE t ADD a INT")
    assert one.names() == ["id", "a"]
    one.took(1200, "ALTER TABLE other.t ADD b INT")
    assert one.names() == ["id", "a"]


def test_statements_between_the_version_and_the_window_count():
    """Those that the version has in it already do not."""
    gap = [
        (position(400), Statement("ALTER TABLE t ADD before_it INT", "db")),
        (position(500), Statement("ALTER TABLE t ADD made_it INT", "db")),
        (position(600), Statement("ALTER TABLE t ADD behind_it INT", "db")),
    ]
    assert known(gap=gap).names() == ["id", "behind_it"]


def test_a_lost_definition_is_read_when_rows_need_it_and_not_before():
    """And once."""
    one = known(server=TABLE)
    one.took(1100, "ALTER TABLE t FROBNICATE")
    assert one.asked == []
    assert one.names() == ["id"]
    assert one.names() == ["id"]
    (lost,) = [asked for asked in one.asked if isinstance(asked, UnknownDefinition)]
    assert (lost.position, lost.statement.text) == (position(1100), "ALTER TABLE t FROBNICATE")
    one.took(1300, "ALTER TABLE t ADD z INT")
    assert one.names() == ["id", "z"]


def test_a_statement_on_a_lost_definition_moves_the_loss():
    """What is read from the server must hold since the last statement."""
    one = known(server=TABLE)
    one.took(1100, "ALTER TABLE t FROBNICATE")
    one.took(1200, "ALTER TABLE t ADD a INT")
    one.names()
    (lost,) = [asked for asked in one.asked if isinstance(asked, UnknownDefinition)]
    assert lost.position == position(1200)
    assert "FROBNICATE" in lost.why


def test_a_table_that_is_made_in_the_window_needs_no_server():
    """Nor one that is made like another."""
    one = known()
    one.took(1100, "CREATE TABLE u (a INT, b VARCHAR(10))")
    one.took(1200, "ALTER TABLE t ADD c INT")
    one.took(1300, "CREATE TABLE v LIKE t")
    one.took(1400, "ALTER TABLE t DROP c")
    assert one.names("u") == ["a", "b"]
    assert one.names("v") == ["id", "c"]
    assert one.names("t") == ["id"]


def test_a_table_that_was_never_read_is_asked_for_once():
    """Later rows have the answer at hand."""
    one = Known({}, server=TABLE)
    assert one.names() == one.names() == ["id"]
    assert len([asked for asked in one.asked if isinstance(asked, UnknownDefinition)]) == 1


def test_truncate_leaves_a_definition_as_it_is():
    """Comments before it or not."""
    one = known()
    one.took(1100, "TRUNCATE TABLE t")
    one.took(1200, "/* app */ truncate t")
    assert one.names() == ["id"]


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE INDEX i ON t (id)",
        "CREATE FULLTEXT INDEX i ON t (v)",
        "ALTER TABLE t ADD INDEX (id), ADD CONSTRAINT f FOREIGN KEY (id) REFERENCES u (id), DROP FOREIGN KEY g",
        "ALTER TABLE t ENGINE=InnoDB COMMENT 'CHARACTER SET latin1', AUTO_INCREMENT 7, ALTER COLUMN id SET DEFAULT 5",
        "ALTER TABLE t PARTITION BY HASH (id) PARTITIONS 4",
    ],
)
def test_a_statement_that_changes_no_column_leaves_a_definition_as_it_is(statement):
    """A loss too: what the server has since then is what it had."""
    one = known(server=TABLE)
    one.took(1100, "ALTER TABLE t FROBNICATE")
    one.took(1200, statement)
    one.names()
    (lost,) = [asked for asked in one.asked if isinstance(asked, UnknownDefinition)]
    assert lost.position == position(1100)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE UNIQUE INDEX i ON t (id)",
        "CREATE OR REPLACE INDEX i ON t (id)",
        "DROP INDEX i ON t",
        "ALTER TABLE t ADD UNIQUE (id)",
        "ALTER TABLE t DROP INDEX i",
        "ALTER TABLE t ENGINE=InnoDB CHARACTER SET latin1",
        "ALTER TABLE t ADD INDEX (id), ADD c INT",
        "ALTER TABLE t CONVERT PARTITION p TO TABLE u",
    ],
)
def test_a_statement_that_may_change_a_key_or_a_character_set_counts(statement):
    one = known(server=TABLE)
    one.took(1100, "ALTER TABLE t FROBNICATE")
    one.took(1200, statement)
    one.names()
    assert [asked.position for asked in one.asked if isinstance(asked, UnknownDefinition)] == [position(1200)]


@pytest.mark.parametrize(
    "made",
    [
        ["CREATE DATABASE new"],
        ["DROP DATABASE new", "CREATE DATABASE IF NOT EXISTS new"],
        ["DROP TABLE new.t"],
        ["RENAME TABLE new.t TO new.u"],
    ],
)
def test_a_create_if_not_exists_makes_a_table_where_there_was_none(made):
    """Of a new database, and after what took the table away."""
    one = Known({("new", "u"): (START, None)})
    versions = {("new", "t"): (START, TABLE)} if made[0].startswith("RENAME") else {}
    one.versions.update(versions)
    for number, statement in enumerate(
        [*made, "CREATE TABLE IF NOT EXISTS new.t (a INT, b INT)", "ALTER TABLE new.t DROP a"]
    ):
        one.took(1100 + number, statement)
    assert [column.name for column in one.history.definition("new", "t").schema.columns] == ["b"]


def test_a_database_that_may_have_been_there_says_nothing_of_its_tables():
    """CREATE DATABASE IF NOT EXISTS, and ALTER DATABASE: what is known of a table stays, and what is not as well."""
    one = known(server=TABLE)
    one.took(1100, "CREATE DATABASE IF NOT EXISTS db")
    one.took(1200, "ALTER DATABASE db CHARACTER SET latin1")
    assert one.names() == ["id"]
    one = Known({}, server=TABLE)
    one.took(1100, "CREATE DATABASE IF NOT EXISTS db")
    one.took(1200, "ALTER DATABASE db CHARACTER SET latin1")
    assert one.names() == ["id"]
    (lost,) = [asked for asked in one.asked if isinstance(asked, UnknownDefinition)]
    assert lost.position == START


def test_a_database_that_the_server_does_not_have_any_more_is_asked_for_once():
    """However many tables are made in it."""
    one = Known({}, server=TABLE)
    one.took(1100, "CREATE TABLE t (v TEXT)")
    one.took(1200, "CREATE TABLE u (v TEXT)")
    assert one.names() == ["id"]
    assert one.history.known("db", "u") is None
    assert one.databases == ["db"]


def test_rows_of_a_dropped_table_stop_the_window():
    """They cannot be."""
    one = known()
    one.took(1100, "DROP TABLE t")
    with pytest.raises(UnknownSchema):
        one.names()


def test_the_changes_of_a_window_are_returned_in_order():
    """Each with the loss or the state that it leaves."""
    one = known()
    one.took(1100, "ALTER TABLE t ADD a INT")
    one.took(1200, "ALTER TABLE t FROBNICATE")
    one.took(1300, "CREATE TABLE u (a INT)")
    found = list(one.history.changes(lambda entity: entity != ("db", "u"), {}))
    assert [(change.position.offset, type(change.state)) for change in found] == [
        (1100, Definition),
        (1200, UnknownDefinition),
    ]


def test_a_dropped_database_ends_its_tables():
    """Those known before the window and those that the statements before the DROP make, each if it is there."""
    one = known(gap=[(position(600), Statement("CREATE TABLE early (id INT)", "db"))])
    one.took(1100, "CREATE TABLE here (id INT)")
    one.took(1200, "CREATE TABLE removed (id INT)")
    one.took(1300, "DROP TABLE removed")
    one.took(1400, "CREATE TABLE elsewhere.t (id INT)")
    one.took(1500, "DROP DATABASE db")
    one.took(1600, "CREATE TABLE db.after (id INT)")
    assert list(one.history.dropped_databases()) == ["db"]
    changes = list(one.history.changes(lambda _: True, {"db": [("db", "t")]}))
    assert [change.entity for change in changes if change.position == position(1500)] == [
        ("db", name) for name in ("", "early", "here", "t")
    ]
    assert [change.state for change in changes if change.position == position(1500)] == [None] * 4


def test_a_table_is_temporary_if_the_window_makes_it_and_takes_it_away():
    """By DROP or under another name; not if it was there before, remains, or was made before the window."""
    one = known(gap=[(position(600), Statement("CREATE TABLE early (id INT)", "db"))])
    one.took(1100, "CREATE TABLE dropped (id INT)")
    one.took(1200, "CREATE TABLE moved (id INT)")
    one.took(1300, "RENAME TABLE moved TO remains")
    one.took(1400, "DROP TABLE dropped, early, t")
    one.took(1500, "CREATE TABLE again (id INT)")
    one.took(1600, "DROP TABLE again")
    one.took(1700, "CREATE TABLE again (id INT)")
    tables = ["dropped", "moved", "remains", "early", "again", "never_named"]
    assert [table for table in tables if one.history.is_temporary(("db", table))] == ["dropped", "moved"]
    assert not one.history.is_temporary(("db", ""))
    assert list(one.history.entities()) == [
        ("db", name) for name in ("dropped", "moved", "remains", "early", "t", "again")
    ]


def test_statements_that_change_a_comment_alone_mention_their_table():
    """They define nothing again, so that no definition becomes unknown by them; comments are asked for nevertheless."""
    one = known(gap=[(position(600), Statement("ALTER TABLE early COMMENT='old'", "db"))])
    one.took(1100, "ALTER TABLE t COMMENT='orders'")
    one.took(1200, "TRUNCATE other")
    assert list(one.history.entities()) == []
    assert list(one.history.mentioned()) == [("db", "t")]
