from __future__ import annotations

import pytest

from cdc_lib.binlog.ddl.redact import concealed
from cdc_lib.model.lexer import DEFAULT_QUOTING, Quoting

ANSI, NO_ESCAPES = Quoting(ansi=True), Quoting(escapes=False)


@pytest.mark.parametrize(
    ("statement", "shown"),
    [
        ("ALTER TABLE `t1` ADD c VARCHAR(30) DEFAULT 'x''y'", "ALTER TABLE `t1` ADD c VARCHAR(30) DEFAULT '?'"),
        ("ALTER TABLE t1 ADD n DECIMAL(10, 2) DEFAULT 12.50", "ALTER TABLE t1 ADD n DECIMAL(10, 2) DEFAULT ?"),
        (
            'UPDATE t SET a = "o\\"x", b = 0xFF, c = X\'00\' WHERE d IN (17)',
            "UPDATE t SET a = '?', b = ?, c = '?' WHERE d IN (?)",
        ),
        ("DROP TABLE t /* was 'x' 7 */ -- secret\n, `a'b`", "DROP TABLE t    \n, `a'b`"),
        ("INSERT INTO t VALUES (_utf8mb4'ä', N'b', 'open", "INSERT INTO t VALUES ('?', '?', '?'"),
        ("PARTITION p1 VALUES LESS THAN (20260101)", "PARTITION p1 VALUES LESS THAN (?)"),
        ("# 42\nTRUNCATE größe_1", " \nTRUNCATE größe_1"),
        (
            "ALTER TABLE t /*!80023 ADD c INT ( 5 ) DEFAULT 2*/* secret */3",
            "ALTER TABLE t /*!? ADD c INT ( 5 ) DEFAULT ?* ?",
        ),
        (
            "ALTER TABLE t ADD c DOUBLE DEFAULT 1.5e-3 COMMENT _latin1 'x' /* open",
            "ALTER TABLE t ADD c DOUBLE DEFAULT ? COMMENT '?'  ",
        ),
    ],
)
def test_values_become_question_marks_and_names_stay(statement, shown):
    """So that a statement of a table with masks can be kept."""
    assert concealed(statement, [DEFAULT_QUOTING]) == shown


@pytest.mark.parametrize(
    ("statement", "quoting", "shown"),
    [
        (r"ALTER TABLE t ADD a TEXT DEFAULT 'x\', COMMENT 'secret'", NO_ESCAPES, "ALTER TABLE t ADD a TEXT DEFAULT '?', COMMENT '?'"),
        (r"ALTER TABLE t COMMENT 'x\' secret'", DEFAULT_QUOTING, "ALTER TABLE t COMMENT '?'"),
        (r"""ALTER TABLE t ADD "a\" INT COMMENT 'secret'""", ANSI, r"ALTER TABLE t ADD `a\` INT COMMENT '?'"),
        ('RENAME TABLE "a""b" TO "c`d"', ANSI, 'RENAME TABLE `a"b` TO `c``d`'),
        (r'ALTER TABLE t COMMENT "x\", ADD c TEXT DEFAULT "secret"', NO_ESCAPES, "ALTER TABLE t COMMENT '?', ADD c TEXT DEFAULT '?'"),
    ],
)  # fmt: skip
def test_a_value_ends_where_the_sql_mode_says(statement, quoting, shown):
    assert concealed(statement, [quoting]) == shown
    assert "secret" not in concealed(statement)


def test_of_a_statement_in_a_mode_that_is_not_known_only_the_sure_part_is_shown():
    """Nothing that is a value in one of the modes."""
    assert concealed(r"ALTER TABLE t COMMENT 'x\', ADD c TEXT DEFAULT 'secret'") == "ALTER TABLE t COMMENT '?'..."
    assert concealed(r"ALTER TABLE t COMMENT 'C:\\temp', ADD c INT") == "ALTER TABLE t COMMENT '?', ADD c INT"


def test_an_endless_run_of_quotes_takes_no_time():
    """No statement makes the pattern go back again and again."""
    assert concealed("'" * 100_001 + "x").startswith("'?'")
