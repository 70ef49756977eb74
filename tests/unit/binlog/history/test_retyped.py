"""Statements after which rows show other values, although no event tells of it."""

from __future__ import annotations

import pytest

from cdc_lib.binlog.ddl.history.retyped import recomputed, respelled, undecided
from cdc_lib.binlog.ddl.statement import Statement
from cdc_lib.model.schema import Column, SourceType, TableSchema
from cdc_lib.model.schema_version import Definition

STRICT = 1 << 21
TYPES = {
    "i": SourceType("int", width=4),
    "t": SourceType("time"),
    "at": SourceType("datetime", scale=3),
    "ts": SourceType("timestamp"),
    "d": SourceType("decimal", precision=10, scale=2),
    "long": SourceType("decimal", precision=50, scale=2),
    "f": SourceType("double"),
    "fl": SourceType("float"),
    "b": SourceType("bytes", width=4, charset="binary", text="binary(4)"),
    "vb": SourceType("bytes", width=4, charset="binary", text="varbinary(4)"),
    "s": SourceType("set", members=("x", "y")),
    "e": SourceType("enum", members=("x", "y")),
    "v": SourceType("string", width=80, charset="utf8mb4"),
    "x": SourceType("string", width=65535, charset="latin1"),
    "y": SourceType("year"),
    "bits": SourceType("bit", width=9),
    "j": SourceType("json"),
}
TABLE = Definition(TableSchema("db", "t", tuple(Column(name, kind) for name, kind in TYPES.items())), "utf8mb4")


def found(clauses, known=TABLE, sql_mode=STRICT, *, as_text=False):
    return respelled(Statement(f"ALTER TABLE t {clauses}", "db", sql_mode), known, mariadb=False, as_text=as_text)


@pytest.mark.parametrize(
    "clauses",
    [
        "MODIFY i BIGINT NOT NULL, CHANGE v w VARCHAR(5)", "MODIFY COLUMN at DATETIME(6) DEFAULT NOW(6)", "MODIFY ts TIMESTAMP(3) NULL",
        "MODIFY d DECIMAL(12,2)", "MODIFY f DOUBLE", "MODIFY fl FLOAT(20)", "MODIFY fl DOUBLE", "MODIFY b BINARY(4)", "MODIFY b VARBINARY(9)", "MODIFY s SET('x','y','z')",
        "MODIFY e ENUM('y','x')", "MODIFY v VARCHAR(9) NOTAWORD", "MODIFY t TIME", "MODIFY v TEXT FIRST", "ADD n TIME, DROP i", "ALTER t SET DEFAULT '10:00:00'",
    ],
)  # fmt: skip
def test_what_holds_every_value_as_it_is_needs_no_reading(clauses):
    """In strict mode what does not fit makes the statement fail."""
    assert found(clauses) == ""


@pytest.mark.parametrize(
    ("clauses", "column"),
    [
        ("MODIFY at DATETIME", "at"), ("CHANGE at `when` DATETIME(2)", "at"), ("MODIFY t TIME(3)", "t"), ("MODIFY d DECIMAL(12,1)", "d"),
        ("MODIFY `long` DECIMAL(52,4)", "long"), ("MODIFY f FLOAT", "f"), ("MODIFY b BINARY(8)", "b"), ("MODIFY vb BINARY(4)", "vb"), ("MODIFY s SET('y','x')", "s"),
        ("MODIFY i INT, MODIFY COLUMN IF EXISTS t TIME(6)", "t"), ("MODIFY i INT AS (d * 2) STORED", "i"),
        ("MODIFY d DECIMAL(12,2) NOTAWORD", "d"), ("MODIFY e ENUM('x','Y')", "e"),
        ("MODIFY v CHAR(20)", "v"), ("MODIFY b INET4", "b"), ("MODIFY fl DOUBLE(10,2)", "fl"), ("MODIFY f DOUBLE(9,2)", "f"), ("MODIFY fl FLOAT(7,2)", "fl"), ("MODIFY f DOUBLE NOTAWORD", "f"),
        ("MODIFY fl REAL(9, 0) UNSIGNED", "fl"),
    ],
)  # fmt: skip
def test_what_is_rounded_padded_or_shown_otherwise_is_named(clauses, column):
    """By the name before the statement."""
    assert found(clauses) == column


@pytest.mark.parametrize(
    "clauses",
    [
        "MODIFY v SET('a','b')", "MODIFY v ENUM('a')", "MODIFY v TIME", "MODIFY v JSON", "MODIFY v DECIMAL(50,1)", "MODIFY v BLOB",
        "MODIFY v VARCHAR(80) CHARACTER SET binary", "MODIFY f INT", "MODIFY d INT", "MODIFY d SET('1')", "MODIFY i YEAR", "MODIFY i ENUM('a')",
        "MODIFY i DATE", "MODIFY i TEXT", "MODIFY i BIT(9)", "MODIFY ts DATETIME(6)", "MODIFY f FLOAT",
    ],
)  # fmt: skip
def test_values_of_another_kind_are_others(clauses):
    assert found(clauses) == clauses.split()[1]


def test_kinds_that_show_the_same_values_need_no_reading():
    assert [found(f"MODIFY {one} VARCHAR(20)") for one in "ets"] == [""] * 3


@pytest.mark.parametrize(
    "clauses",
    ["MODIFY i SMALLINT", "MODIFY i INT UNSIGNED", "MODIFY v VARCHAR(5)", "MODIFY e ENUM('x')", "MODIFY d DECIMAL(9,2)",
     "MODIFY d DECIMAL(12,2) UNSIGNED", "MODIFY f DOUBLE UNSIGNED", "MODIFY y TINYINT", "MODIFY bits BIT(4)", "MODIFY t VARCHAR(3)", "MODIFY j VARCHAR(3)",
     "MODIFY i INT NOT NULL", "MODIFY v VARCHAR(20) CHARACTER SET latin1", "CHANGE v w TEXT COLLATE cp1250_general_ci",
     "MODIFY x TINYTEXT", "MODIFY x TEXT CHARACTER SET utf8mb4", "MODIFY x TEXT(60)", "CONVERT TO CHARACTER SET cp1250", "CONVERT TO CHARACTER SET utf8mb3, MODIFY i BIGINT"],
)  # fmt: skip
def test_without_strict_mode_what_does_not_fit_is_cut(clauses):
    """And NULL becomes a value."""
    assert found(clauses) == ""
    assert found(clauses, sql_mode=0) != ""


@pytest.mark.parametrize(
    "clauses", ["MODIFY y YEAR", "MODIFY y SMALLINT", "MODIFY bits BIT(9)", "MODIFY bits BIT(64)", "MODIFY t TIME", "MODIFY j JSON", "MODIFY f DOUBLE"]
)  # fmt: skip
def test_without_strict_mode_what_fits_is_not_cut(clauses):
    assert found(clauses, sql_mode=0) == ""


@pytest.mark.parametrize(
    ("old", "new", "kept"),
    [
        ("latin1", "utf8mb3", True), ("latin1", "latin2", False), ("ascii", "cp1250", True), ("gb18030", "utf8mb3", False),
        ("gb18030", "utf8mb4", True), ("utf8mb3", "ucs2", True), ("utf8mb4", "utf8mb3", False), ("cp932", "sjis", False),
    ],
)  # fmt: skip
def test_without_strict_mode_a_character_set_that_lacks_characters_spoils_texts(old, new, kept):
    """Each of them becomes a question mark, by MODIFY and by CONVERT, and by the table's default where MODIFY names none."""
    table = Definition(TableSchema("db", "t", (Column("v", SourceType("string", width=80, charset=old)),)), new)
    for clauses in (f"MODIFY v VARCHAR(80) CHARSET {new}", f"CONVERT TO CHARACTER SET {new}", "MODIFY v VARCHAR(80)"):
        assert (found(clauses, table, sql_mode=0) == "") is kept


def test_without_strict_mode_a_conversion_of_texts_that_are_not_known_spoils_them_unless_it_holds_all():
    assert [found(f"CONVERT TO CHARSET {one}", None, sql_mode=0) for one in ("utf8mb4", "utf8mb3")] == ["", "?"]


@pytest.mark.parametrize(
    ("old", "new", "kept"),
    [
        (SourceType("enum", charset="latin1", members=("a", "ü")), "utf8mb4", False),
        (SourceType("set", charset="utf8mb4", members=("ü",)), "latin1", False),
        (SourceType("set", charset="utf8mb3", members=("ü",)), "utf8mb4", True),
        (SourceType("enum", charset="latin1", members=("a", "b")), "utf8mb4", True),
        (SourceType("enum", charset="utf8mb4", members=("a", "b")), "utf16", False),
        (SourceType("enum", charset="ucs2", members=("a",)), "utf8mb4", False),
        (SourceType("string", width=80, charset="latin1", text="char(9)"), "utf8mb4", True),
        (SourceType("string", width=80, charset="ascii"), "binary", False),
        (SourceType("string", width=80, charset="utf8mb4"), "DEFAULT", False),
        (SourceType("bytes", width=4, charset="binary"), "binary", True),
    ],
)
def test_a_conversion_changes_labels_that_have_other_bytes_and_makes_bytes_of_texts(old, new, kept):
    """Also in strict mode."""
    table = Definition(TableSchema("db", "t", (Column("v", old),)), "utf8mb4")
    for sql_mode in (STRICT, 0):
        assert (found(f"CONVERT TO CHARACTER SET {new}", table, sql_mode) == "") is kept


def test_a_conversion_of_columns_that_are_not_known_is_decided_by_the_rows():
    statement = Statement("ALTER TABLE t CONVERT TO CHARSET binary, MODIFY other VARCHAR(9)", "db", STRICT)
    named, converted = undecided(statement, None, mariadb=False)
    assert (named.name, named.type.kind) == ("other", "bytes")
    assert (converted.name, converted.type.charset) == ("", "binary")
    assert undecided(statement, TABLE, mariadb=False) == (named,)


def test_blanks_at_the_end_of_char_are_kept_where_the_sql_mode_shows_them():
    pad = STRICT | 1 << 31
    table = Definition(TableSchema("db", "t", (Column("v", SourceType("string", width=80, text="char(20)")),)), "")
    assert [found(f"MODIFY v {kind}", table, pad) for kind in ("VARCHAR(20)", "CHAR(25)")] == ["v", ""]
    assert found("MODIFY v VARCHAR(20)", table) == found("MODIFY v TEXT", TABLE, pad) == ""
    assert found("MODIFY v TEXT", None, pad) == "v"


def test_without_strict_mode_a_former_type_that_is_not_known_may_be_cut():
    """Also by a type that is wide."""
    assert [found(f"MODIFY x {kind}", None, sql_mode=0) for kind in ("MEDIUMINT", "VARCHAR(9)", "BIGINT")] == ["x"] * 3


def test_dates_that_are_kept_as_text_show_their_digits():
    """As the lake has them with zero_dates: string."""
    assert found("MODIFY ts TIMESTAMP(3)", as_text=True) == "ts"


def test_a_former_type_that_is_not_seen_may_be_any():
    """Of types that hold all values of their kind it makes no difference."""
    for clauses in (
        "MODIFY x DATETIME",
        "MODIFY x DECIMAL(9,2)",
        "MODIFY x TIME(6)",
        "MODIFY x FLOAT",
        "MODIFY x BINARY(3)",
    ):
        assert found(clauses, None) == found(clauses) == "x"
    assert found("MODIFY x DATETIME(6), MODIFY y INT, MODIFY z VARCHAR(9), MODIFY s SET('y')", None) == ""


MADE = {"g": "concat('x',`y`)", "h": "(`i` + 1)"}


@pytest.mark.parametrize(
    ("clauses", "column"),
    [
        ("MODIFY y INT", "g"), ("CHANGE COLUMN Y z SMALLINT", "g"), ("CHANGE a y YEAR", "g"), ("CONVERT TO CHARACTER SET utf8mb4", "g"),
        ("MODIFY i BIGINT", "h"), ("MODIFY i INT UNSIGNED", "h"), ("MODIFY i INT ZEROFILL", "h"), ("MODIFY y YEAR NOTAWORD, MODIFY v TEXT", "g"),
        ("MODIFY i INT NOT NULL DEFAULT 5 COMMENT 'y'", ""), ("MODIFY at DATETIME(3) NOT NULL FIRST", ""), ("MODIFY v VARCHAR(80)", ""),
        ("ADD z INT, DROP v", ""),
    ],
)  # fmt: skip
def test_a_column_that_is_made_of_one_that_is_declared_again_may_have_other_values(clauses, column):
    """By the names before and after the statement; a number or a time that stays as it is changes nothing."""
    types = {**TYPES, "y": SourceType("year"), "i": SourceType("int", width=4), "at": SourceType("datetime", scale=3)}
    known = Definition(TableSchema("db", "t", tuple(Column(name, kind) for name, kind in types.items())), "utf8mb4")
    statement = Statement(f"ALTER TABLE t {clauses}", "db", STRICT)
    assert recomputed(statement, known, MADE, mariadb=True) == column
    assert recomputed(statement, None, {}, mariadb=True) == ""


def test_without_a_known_definition_any_declaration_counts():
    statement = Statement("ALTER TABLE t MODIFY i INT NOT NULL", "db", STRICT)
    assert recomputed(statement, None, MADE, mariadb=False) == "h"
