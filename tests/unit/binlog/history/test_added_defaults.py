"""What ADD COLUMN gives to rows that are there."""

from __future__ import annotations

import pytest

from cdc_lib.binlog.ddl.history.added_defaults import added_defaults
from cdc_lib.binlog.ddl.history.words import CannotFollow
from cdc_lib.binlog.ddl.statement import Statement


def found(clauses, *, mariadb=False):
    statement = Statement(f"ALTER TABLE t {clauses}", "db")
    return [(fill.column, fill.value) for fill in added_defaults(statement, mariadb=mariadb)]


@pytest.mark.parametrize(
    ("clauses", "expected"),
    [
        ("ADD COLUMN x INT", [("x", None)]),
        ("ADD x INT DEFAULT NULL, DROP y", [("x", None)]),
        ("ADD x INT DEFAULT 5", [("x", "5")]),
        ("ADD x INT UNSIGNED NOT NULL DEFAULT '7' COMMENT 'DEFAULT 8' AFTER y", [("x", "7")]),
        ("ADD x BOOL DEFAULT TRUE, ADD COLUMN y BIGINT DEFAULT -3", [("x", "1"), ("y", "-3")]),
        ("ADD COLUMN (x INT NOT NULL, KEY (x), y DECIMAL(5,2) DEFAULT 1.5)", [("x", "0"), ("y", "1.50")]),
        ("ADD (a DECIMAL(5,2) NOT NULL DEFAULT -0.0, b DECIMAL DEFAULT -07, c DECIMAL(5,1) DEFAULT -0.1, d DECIMAL(5,1) NOT NULL)",
         [("a", "0.00"), ("b", "-7"), ("c", "-0.1"), ("d", "0.0")]),
        ("ADD x VARCHAR(9) CHARACTER SET latin1 NOT NULL DEFAULT 'new', ADD INDEX i (x)", [("x", "new")]),
        ("ADD x TEXT NOT NULL", [("x", "")]),
        ("ADD x ENUM('a','b') DEFAULT 'b'", [("x", "b")]),
        ("ADD x DATE DEFAULT '2026-11-21', ADD y DATETIME DEFAULT '2026-11-21 10:30:00'",
         [("x", "2026-11-21"), ("y", "2026-11-21 10:30:00")]),
        ("ADD x DOUBLE DEFAULT 0", [("x", "0")]),
        ("ADD UNIQUE KEY k (y), ADD CONSTRAINT c CHECK (y > 5), MODIFY y INT DEFAULT 9", []),
        ("ADD PARTITION (PARTITION p VALUES LESS THAN (5))", []),
        ("WAIT 5 ADD COLUMN IF NOT EXISTS x INT", []),
    ],
)  # fmt: skip
def test_a_value_that_is_the_same_in_every_row_is_returned(clauses, expected):
    """As SELECT shows it; NULL as well, for a name that the table had before."""
    assert found(clauses, mariadb=clauses.startswith("WAIT")) == expected


@pytest.mark.parametrize(
    "table", ["shop.1st", "`shop`.1st", "shop.2026", "1st", "$t", "ตารางที่", "cafe\u0301", "`a``b`.`c d`"]
)
def test_a_table_may_have_any_name(table):
    """Without quotes it may begin with a digit, and hold letters of all scripts."""
    (fill,) = added_defaults(Statement(f"ALTER TABLE {table} ADD x INT DEFAULT 5", "db"), mariadb=False)
    assert fill.value == "5"


@pytest.mark.parametrize(
    "clauses",
    [
        "ADD x INT DEFAULT (1 + 1)",
        "ADD x TIMESTAMP DEFAULT CURRENT_TIMESTAMP",
        "ADD x DATETIME DEFAULT NOW()",
        "ADD x TIMESTAMP DEFAULT '2026-11-21 10:30:00'",
        "ADD x INT AUTO_INCREMENT PRIMARY KEY",
        "ADD x SERIAL",
        "ADD x INT AS (y + 1)",
        "ADD x INT GENERATED ALWAYS AS (y + 1) STORED",
        "ADD x INT DEFAULT 1.6",
        "ADD x INT DEFAULT 007",
        "ADD x DECIMAL(5,1) DEFAULT 1.25",
        "ADD x FLOAT DEFAULT 0.1",
        "ADD x VARCHAR(2) DEFAULT 'long'",
        "ADD x CHAR(5) DEFAULT 'a '",
        "ADD x BINARY(4) DEFAULT 'a'",
        "ADD x BIT(4) DEFAULT b'101'",
        "ADD x ENUM('a','b') DEFAULT 'B'",
        "ADD x ENUM('a','b') NOT NULL",
        "ADD x DATE NOT NULL",
        "ADD x DATE DEFAULT '2026-2-3'",
        "ADD x DATE DEFAULT '2026-02-30'",
        "ADD COLUMN IF NOT EXISTS x INT DEFAULT 5",
        "ADD x NOTATYPE DEFAULT 5",
        "ADD x INT DEFAULT 5, ALTER x DROP DEFAULT",
        "ALTER COLUMN IF EXISTS `X` SET DEFAULT 6, ADD x INT DEFAULT 5",
    ],
)
def test_what_is_not_sure_is_not_guessed(clauses):
    """The table is read instead."""
    with pytest.raises(CannotFollow):
        found(clauses)
