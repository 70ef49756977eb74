"""What statements make of definitions, without a server: only what is certain."""

from __future__ import annotations

import pytest

from cdc_lib.binlog.ddl.history.advance import advance
from cdc_lib.binlog.ddl.history.column import Rules
from cdc_lib.binlog.ddl.history.words import CannotFollow
from cdc_lib.binlog.ddl.statement import ANSI_QUOTES, ORACLE, Statement
from cdc_lib.model.schema import TableSchema
from cdc_lib.model.schema_version import Definition, Key
from cdc_lib.mysql.information_schema import source_type

RULES = Rules(source_type, mariadb=False)
DATABASE = Definition(TableSchema("db", "", ()), "utf8mb4")


def follow(*statements, entity=("db", "t"), rules=RULES, sql_mode=0):
    """Advance a table through statements from nothing."""
    known = {("db", ""): DATABASE}
    for text in statements:
        known[entity] = advance(entity, Statement(text, "db", sql_mode), known.get, rules)
    return known[entity]


def names(definition):
    return [column.name for column in definition.schema.columns]


CREATE = "CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT)"


@pytest.mark.parametrize(
    ("clause", "columns"),
    [
        ("ADD c INT", "id a b c"),
        ("ADD c INT FIRST, ADD d INT AFTER c", "c d id a b"),
        ("DROP a, ADD a BIGINT", "id b a"),
        ("DROP .a, ADD t.c INT, ADD .d INT AFTER id", "id d b c"),
        ("DROP a.b", "id a"),
        ("CHANGE .a .x INT, MODIFY db.t.b BIGINT FIRST", "b id x"),
        ("CHANGE a b INT, CHANGE b a INT", "id b a"),
        ("CHANGE a x INT AFTER b, ADD y INT AFTER x", "id b x y"),
        ("MODIFY b INT FIRST, ADD c INT AFTER b", "b c id a"),
        ("RENAME COLUMN a TO b, RENAME COLUMN b TO a", "id b a"),
        ("ADD IF NOT EXISTS a INT, DROP IF EXISTS nothing, MODIFY IF EXISTS no INT", "id a b"),
        ("ADD (c INT, d INT, KEY (c)), ALGORITHM=INPLACE, LOCK = NONE", "id a b c d"),
        (
            "REORGANIZE PARTITION p0, p1 INTO (PARTITION p2 VALUES LESS THAN (9), PARTITION p3 VALUES IN (1, 2))",
            "id a b",
        ),
        ("DROP PARTITION IF EXISTS p0, p1", "id a b"),
        ("ADD c INT FIRST, PARTITION BY RANGE COLUMNS (a, b) (PARTITION p0 VALUES LESS THAN (1, 2))", "c id a b"),
        ("ENGINE = InnoDB ROW_FORMAT=DYNAMIC COMMENT 'ADD z INT, DROP a'", "id a b"),
    ],
)
def test_columns_are_where_first_and_after_put_them(clause, columns):
    """Changes in place first, then additions and moves in their order."""
    assert names(follow(CREATE, f"ALTER TABLE t {clause}")) == columns.split()


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE t ADD c FANCY",
        "ALTER TABLE t ADD c INT WITH A TWIST",
        "ALTER TABLE t FROBNICATE",
        "ALTER TABLE t DROP nothing",
        "ALTER TABLE t ADD a INT",
        "ALTER TABLE t ADD c VARCHAR(20000)",
        "ALTER TABLE t ADD c VARCHAR(20) CHARACTER SET klingon",
        "ALTER TABLE t ADD SYSTEM VERSIONING",
        "ALTER TABLE t ADD c INT /*!99999 , ADD d INT */",
        "ALTER TABLE t ADD c ENUM(x'41')",
        "ALTER TABLE t DROP id, DROP a, DROP b",
        "CREATE TABLE t LIKE unknown",
        "CREATE TABLE t AS SELECT 1",
        "CREATE TABLE t (id INT) SELECT 1",
        "ALTER TABLE t ADD (c INT",
        "RENAME TABLE unknown TO t",
        "INSERT INTO t VALUES (1)",
        "",
    ],
)
def test_what_is_not_certain_is_not_followed(statement):
    """It says why, and nothing is guessed."""
    with pytest.raises(CannotFollow) as caught:
        follow(CREATE, statement)
    assert str(caught.value)


def test_first_may_be_after_a_key_that_mysql_generated():
    """It stays in front, and a user's own column of that name does not: of two types that are alike the values would be exchanged."""
    generated = "CREATE TABLE t (my_row_id BIGINT UNSIGNED NOT NULL PRIMARY KEY, a INT)"
    for clause in ("ADD c BIGINT UNSIGNED NOT NULL FIRST", "MODIFY a INT FIRST"):
        with pytest.raises(CannotFollow, match="generated"):
            follow(generated, f"ALTER TABLE t {clause}")
    assert names(follow(generated, "ALTER TABLE t ADD c INT AFTER my_row_id")) == ["my_row_id", "c", "a"]


def test_an_sql_mode_decides_what_quotes_mean():
    """With ANSI_QUOTES a double quote holds a name, in ORACLE mode nothing is certain."""
    statement = 'ALTER TABLE t ADD "c d" INT'
    with pytest.raises(CannotFollow):
        follow(CREATE, statement)
    assert names(follow(CREATE, statement, sql_mode=ANSI_QUOTES))[-1] == "c d"
    with pytest.raises(CannotFollow):
        follow(CREATE, sql_mode=ORACLE)


def test_a_text_that_is_not_exact_is_not_followed():
    """Names in it may be other ones."""
    with pytest.raises(CannotFollow, match="character set"):
        advance(("db", "t"), Statement(CREATE, "db", exact=False), {("db", ""): DATABASE}.get, RULES)


def test_names_fold_where_the_server_folds_them():
    """With lower_case_table_names=1 a statement may be typed in any case."""
    rules = Rules(source_type, mariadb=False, fold=True)
    assert names(follow("CREATE TABLE T (a INT)", "ALTER TABLE DB.T ADD b INT", rules=rules)) == ["a", "b"]


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ("PRIMARY KEY (a, id)", ("a", "id")),
        ("UNIQUE (a)", ("a",)),
        ("UNIQUE (n), UNIQUE (a)", ("a",)),
        ("UNIQUE (n)", ()),
        ("UNIQUE (s(3))", ()),
        ("UNIQUE ((a + 1))", ()),
        ("UNIQUE (n, a), UNIQUE k (s), UNIQUE (a)", ("s",)),
        ("KEY (a), FULLTEXT (s), INDEX i (n)", ()),
    ],
)
def test_the_first_whole_unique_key_without_null_replaces_a_primary_key(keys, expected):
    """As in the table maps of both servers."""
    definition = follow(f"CREATE TABLE t (id INT NOT NULL, a INT NOT NULL, n INT, s VARCHAR(9) NOT NULL, {keys})")
    assert definition.schema.primary_key == expected


def test_a_column_s_new_name_goes_into_its_keys():
    """And a dropped column leaves them."""
    made = "CREATE TABLE t (a INT NOT NULL, b INT NOT NULL, UNIQUE KEY k (a, b), UNIQUE KEY l (b))"
    assert follow(made, "ALTER TABLE t CHANGE a c INT NOT NULL").keys[0] == Key("k", ("c", "b"))
    assert follow(made, "ALTER TABLE t DROP b").keys == (Key("k", ("a",)),)
    assert follow(made, "ALTER TABLE t DROP KEY k").schema.primary_key == ("b",)


@pytest.mark.parametrize("kind", ["VARCHAR(9)", "TEXT", "TEXT(300)", "ENUM('a')", "SET('a') NOT NULL"])
def test_a_character_set_that_is_not_known_is_not_shown_as_an_empty_name(kind):
    """Of a database whose definition was never read."""
    with pytest.raises(CannotFollow, match="names no character set, and that of the table's database is not known"):
        advance(("db", "t"), Statement(f"CREATE TABLE t (id INT, v {kind})", "db"), {}.get, RULES)


@pytest.mark.parametrize(("mariadb", "widths"), [(False, [255, 255]), (True, [65535, 65535])])
def test_a_text_of_no_characters_is_the_smallest_in_mysql(mariadb, widths):
    made = follow("CREATE TABLE t (a TEXT(0), b BLOB(0))", rules=Rules(source_type, mariadb=mariadb))
    assert [column.type.width for column in made.schema.columns] == widths


def test_a_key_that_mariadb_keeps_by_a_hash_identifies_no_rows():
    """Its texts are too long for an index; the length of a column that is changed decides again."""
    create = "CREATE TABLE t (a TEXT NOT NULL, b INT NOT NULL, UNIQUE u (a, b), UNIQUE v (b))"
    made = follow(create)
    assert [(key.name, key.hashed) for key in made.keys] == [("u", True), ("v", False)]
    assert made.schema.primary_key == ("b",)
    assert follow(create, "ALTER TABLE t DROP INDEX v, ADD c INT").schema.primary_key == ()
    assert not follow(create, "ALTER TABLE t DROP INDEX u").keys[0].hashed
    for statement in ("ALTER TABLE t MODIFY a VARCHAR(9) NOT NULL", "CREATE UNIQUE INDEX w USING HASH ON t (b)"):
        with pytest.raises(CannotFollow, match="whether a key is a hash"):
            follow(create, statement)
    with pytest.raises(CannotFollow, match="whether a key is a hash"):
        follow(create, "ALTER TABLE t ADD UNIQUE (b) USING HASH")


def test_a_dropped_table_has_no_definition():
    """By itself or with its database."""
    assert follow(CREATE, "DROP TABLE t") is None
    assert follow(CREATE, "DROP DATABASE db") is None
