"""A definition that statements advance equals the one that the server has after each of them."""

from __future__ import annotations

import random

import pytest

from cdc_lib.binlog.ddl.history.advance import advance
from cdc_lib.binlog.ddl.history.column import Rules
from cdc_lib.binlog.ddl.history.words import CannotFollow
from cdc_lib.binlog.ddl.statement import Statement
from cdc_lib.model.schema_version import decode_alike
from cdc_lib.mysql.information_schema import source_type
from cdc_lib.mysql.table_definition import Definitions
from tests.harness.generated.tables import RandomTable


class Follower:
    """Runs statements on a real server and advances a definition beside it."""

    def __init__(self, server, database):
        self.database = database
        self.server = server
        self.definitions = Definitions(server.connect())
        self.rules = Rules(source_type, mariadb=server.flavor == "mariadb")
        self.known = {(database, ""): self.definitions.database(database)}

    def run(self, statement, table="a"):
        """Run a statement and advance; returns what follows from it and what the server says."""
        self.server.execute(statement, database=self.database)
        entity = (self.database, table)
        given = Statement(statement, self.database, server_charset="utf8mb4")
        self.known[entity] = advance(entity, given, self.known.get, self.rules)
        return self.known[entity], self.read(table)

    def read(self, table="a"):
        with self.definitions.locked(self.database, table) as definition:
            return definition


@pytest.fixture
def follower(any_server, database):
    return Follower(any_server, database)


def plain(definition):
    """What must be equal: a TIMESTAMP's nullability is the server's choice, and so is the text of a type."""
    if definition is None:
        return None
    columns = [
        (c.name, c.type.kind, c.type.width, c.type.unsigned, c.type.precision, c.type.scale, c.type.charset, c.type.members,
         c.nullable or c.type.kind == "timestamp")
        for c in definition.schema.columns
    ]  # fmt: skip
    return columns, definition.schema.primary_key, definition.charset, definition.keys


def flat(found):
    return [*found[0], *found[1:]] if found else []


def assert_follows(follower, statement, table="a"):
    definitions = follower.run(statement, table)
    followed, there = map(plain, definitions)
    wrong = [pair for pair in zip(flat(followed), flat(there), strict=False) if pair[0] != pair[1]]
    assert not wrong, f"{statement}: followed and there: {wrong}"
    assert followed == there
    assert None in definitions or decode_alike(*definitions)


SHARED = [
    "CREATE TABLE a (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY COMMENT 'a, (b)', b INT(10) ZEROFILL)",
    "ALTER TABLE a ADD COLUMN c VARCHAR(20) CHARACTER SET latin1 DEFAULT 'x''y\\'z' AFTER id, ADD d TEXT(300) FIRST",
    "ALTER TABLE a ADD (e ENUM('x','y''z') NOT NULL DEFAULT 'x', f SET('p','q') COLLATE latin1_bin)",
    r"ALTER TABLE a ADD el ENUM('a\\b','it''s','new\nline','cr\r','nul\0','q\"q','trail\\', '\_', 'tab\t'), ADD sl SET('x\\','y\n')",
    "alter table `a` modify `e` enum('x','y''z','neu') default null after `id`, drop d, engine=InnoDB",
    "ALTER TABLE a CHANGE b c2 BIGINT, CHANGE c b CHAR(5) FIRST",
    "ALTER TABLE a CHANGE b c2 INT, CHANGE c2 b VARCHAR(30)",
    "ALTER TABLE a RENAME COLUMN b TO c, RENAME COLUMN c2 TO b",
    "ALTER TABLE a DROP PRIMARY KEY, MODIFY id BIGINT, ADD PRIMARY KEY USING BTREE (b, id)",
    "ALTER TABLE a ADD u1 INT NOT NULL UNIQUE, ADD UNIQUE KEY (u1), ADD CONSTRAINT named UNIQUE (c(3), id)",
    "ALTER TABLE a DROP PRIMARY KEY",
    "ALTER TABLE a DROP INDEX u1",
    "CREATE UNIQUE INDEX u3 ON a (id, b)",
    "DROP INDEX u1_2 ON a",
    "ALTER TABLE a RENAME INDEX u3 TO u4, ALTER COLUMN c SET DEFAULT 'q', COMMENT = 'CHARSET latin1'",
    "ALTER TABLE a DEFAULT CHARACTER SET = latin1, ADD g VARCHAR(10), ADD h VARCHAR(10) CHARSET utf8mb4",
    "ALTER TABLE a MODIFY h VARCHAR(10)",
    "ALTER TABLE a ADD t1 TINYTEXT, ADD t2 TEXT, ADD t3 MEDIUMTEXT, ADD bl BLOB, ADD j JSON",
    "ALTER TABLE a CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
    (
        "ALTER TABLE a ADD cv VARCHAR(9) CHARACTER SET eucjpms DEFAULT 'a', CONVERT TO CHARACTER SET latin1, ADD cn NATIONAL CHAR(3), "
        "ADD ct TEXT(300) CHARSET ucs2, ADD cb VARBINARY(9), ADD ce ENUM('ü') CHARACTER SET utf8mb4, MODIFY b VARCHAR(29) CHARSET ucs2"
    ),
    "ALTER TABLE a DROP ce, CONVERT TO CHARSET utf8mb3",
    "ALTER TABLE a CONVERT TO CHARSET latin1",
    "ALTER TABLE a ADD v INT GENERATED ALWAYS AS (id + 1) VIRTUAL, ADD w INT AS (id * (2 + 1)) STORED",
    (
        "ALTER TABLE a ADD ts TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3), "
        "ADD dt DATETIME DEFAULT '2020-01-01 00:00:00', ADD y YEAR(4), ADD n1 NATIONAL VARCHAR(10), ADD n2 NCHAR(3)"
    ),
    "ALTER TABLE a ADD f1 FLOAT(30), ADD f2 FLOAT(7,2), ADD f3 DOUBLE PRECISION, ADD f4 REAL, ADD d1 DEC(4), ADD d2 NUMERIC",
    (
        "ALTER TABLE a ADD b1 BIT, ADD b2 BIT(12), ADD b3 BOOL DEFAULT TRUE, ADD b4 BINARY(4) DEFAULT x'00', ADD b5 BINARY, "
        "ADD b6 CHAR(4) BYTE, ADD b7 VARCHAR(9) CHARACTER SET binary, ADD b8 LONG VARBINARY, ADD b9 LONG, ADD c9 CHAR VARYING(7)"
    ),
    "ALTER TABLE a ADD KEY k1 (u1 DESC), ADD FULLTEXT ft (c), ADD CHECK (u1 > 0)",
    "ALTER TABLE a DROP KEY k1, DROP INDEX ft",
    "ALTER TABLE a ADD m1 MEDIUMINT UNSIGNED, ADD m2 INT1, ADD m3 MIDDLEINT, ADD m4 INTEGER SIGNED, ADD x1 CHAR ASCII",
    "/* app */ ALTER /*!50000 TABLE */ a -- comment, with a comma\n DROP x1 # and, another",
    "ALTER TABLE a ORDER BY id",
    "ALTER TABLE a ADD s SERIAL",
    "ALTER TABLE a CONVERT TO CHARSET binary, ADD last TEXT CHARSET latin1",
]  # fmt: skip


def test_statements_of_every_shape_are_followed(follower):
    """Each right after the one before, with the server's own definition as the judge."""
    for statement in SHARED:
        assert_follows(follower, statement)


def test_tables_are_made_like_others_and_renamed(follower):
    """Also with a chain of names in one statement."""
    assert_follows(
        follower, "CREATE TABLE a (id INT, v VARCHAR(9), UNIQUE KEY (id)) DEFAULT CHARSET latin1 COMMENT 'x'"
    )
    assert_follows(follower, "CREATE TABLE b LIKE a", "b")
    assert_follows(follower, "CREATE TABLE IF NOT EXISTS b (other INT)", "b")
    assert_follows(follower, "CREATE TABLE c (LIKE b)", "c")
    known = dict(follower.known)
    statement = Statement("RENAME TABLE a TO old, b TO a", follower.database)
    follower.server.execute(statement.text, database=follower.database)
    for table in ("a", "old", "b"):
        followed = advance((follower.database, table), statement, known.get, follower.rules)
        assert plain(followed) == plain(follower.read(table))
    follower.known[(follower.database, "a")] = follower.read()
    assert_follows(follower, "ALTER TABLE a MODIFY id INT NOT NULL, ADD w TEXT")
    followed, there = follower.run("DROP TABLE a")
    assert followed is None
    assert there is None


def test_a_database_s_character_set_counts_for_tables_that_name_none(follower):
    """At the time of their making."""
    name = follower.database
    follower.server.execute(f"ALTER DATABASE {name} CHARACTER SET latin1")
    given = Statement(f"ALTER DATABASE {name} CHARACTER SET latin1", name)
    follower.known[(name, "")] = advance((name, ""), given, follower.known.get, follower.rules)
    assert follower.known[(name, "")] == follower.definitions.database(name)
    assert_follows(follower, "CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(9), w VARCHAR(9) COLLATE utf8mb4_bin)")
    assert_follows(follower, "ALTER TABLE a ADD x TEXT")


def test_members_that_a_server_spoils_are_not_followed(follower):
    """Both servers take the bytes of one character set for those of another when they convert such an ENUM."""
    follower.run("CREATE TABLE a (id INT PRIMARY KEY, e ENUM('ü') CHARACTER SET utf8mb4) DEFAULT CHARSET latin1")
    with pytest.raises(CannotFollow, match="members"):
        follower.run("ALTER TABLE a CONVERT TO CHARACTER SET latin1")


def test_texts_that_mysql_declares_and_converts_at_once_are_not_followed(follower):
    """It makes MEDIUMTEXT of this one."""
    follower.run("CREATE TABLE a (id INT PRIMARY KEY, v TEXT) DEFAULT CHARSET latin1")
    statement = "ALTER TABLE a MODIFY v TEXT, CONVERT TO CHARACTER SET utf8mb4"
    if follower.rules.mariadb:
        assert_follows(follower, statement)
        return
    with pytest.raises(CannotFollow, match="another length"):
        follower.run(statement)
    assert follower.read().schema.columns[1].type.text == "mediumtext"


@pytest.mark.parametrize("seed", range(4))
def test_random_statements_are_followed(follower, seed):
    """A random table and thirty random changes of it."""
    chance = random.Random(seed)
    table = RandomTable(chance)
    assert_follows(follower, table.create())
    for _ in range(30):
        assert_follows(follower, table.alter())
