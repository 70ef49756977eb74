"""What statements do to the rows of captured tables."""

from __future__ import annotations

import pytest

from cdc_lib.decode.ddl import meaning
from cdc_lib.decode.table_statements import left_behind, table_statements, taken_over
from cdc_lib.model.position import Position

AT = Position("binlog.000001", 100)


def tables(names):
    return {("db", name) for name in names.split()}


def told(statement, captured):
    means = meaning(statement, "db")
    return [(one.kind, one.table) for one in table_statements(means, [t for t in means.tables if t in captured], AT)]


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("TRUNCATE a", [("truncate", "db.a")]),
        ("DROP TABLE IF EXISTS b, x, a", [("drop", "db.b"), ("drop", "db.a")]),
        ("DROP DATABASE db", []),
        ("CREATE TABLE a LIKE x", [("create", "db.a")]),
        ("CREATE OR REPLACE TABLE a (id INT)", [("create", "db.a")]),
        ("CREATE TABLE IF NOT EXISTS a (id INT)", [("create_if_missing", "db.a")]),
        ("ALTER TABLE a ADD c INT", []),
        ("RENAME TABLE a TO x", [("drop", "db.a")]),
        ("ALTER TABLE a RENAME x", [("drop", "db.a")]),
        ("RENAME TABLE x TO y", []),
    ],
)
def test_captured_tables_alone_are_told(statement, found):
    """Each once, with what was done to it."""
    assert told(statement, tables("a b")) == found


@pytest.mark.parametrize(
    ("statement", "replaced", "gone"),
    [
        ("RENAME TABLE a TO x, b TO a", "x<a a<b", "b"),
        ("RENAME TABLE a TO t, b TO a, t TO b", "a<b b<a", ""),
        ("RENAME TABLE a TO t, t TO a", "", ""),
        ("RENAME TABLE a TO b, c TO a, d TO c", "b<a a<c c<d", "d"),
        ("ALTER TABLE a RENAME TO b", "b<a", "a"),
        ("RENAME TABLE a TO b, b TO c", "c<a", "a"),
    ],
)
def test_renames_are_followed_from_the_left_to_the_right(statement, replaced, gone):
    """Chains and swaps as well; what comes back to its own name is left as it was."""
    means = meaning(statement, "db")
    found = {f"{table[1]}<{rows[1]}" for table, rows in taken_over(means).items()}
    assert found == set(replaced.split())
    assert set(left_behind(means)) == tables(gone)
