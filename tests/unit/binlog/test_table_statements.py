"""What statements do to the rows of captured tables."""

from __future__ import annotations

import pytest

from cdc_lib.binlog.ddl.ddl import meaning
from cdc_lib.binlog.ddl.effects import Naming, former_names, swapped_in, table_statements, taken_over
from cdc_lib.model.position import Position

AT = Position("binlog.000001", 100)
PLAIN, SWAPS = Naming(), Naming(swaps=True)


def tables(names):
    return {("db", name) for name in names.split()}


def kinds_of(statement, captured):
    means = meaning(statement, "db")
    return [
        (one.kind, one.table) for one in table_statements(means, [t for t in means.tables if t in captured], AT, PLAIN)
    ]


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
def test_only_captured_tables_are_returned(statement, found):
    """Each once, with what was done to it."""
    assert kinds_of(statement, tables("a b")) == found


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
    found = {f"{table[1]}<{rows[1]}" for table, rows in taken_over(means, PLAIN).items()}
    assert found == set(replaced.split())
    assert set(former_names(means)) == tables(gone)


@pytest.mark.parametrize(
    ("statement", "swapped", "replaced"),
    [
        ("rename /* gh-ost */ table a to _a_del, _a_gho to a", "a", "_a_del"),
        ("rename table a to _a_20261121103000_del, _a_gho to a", "a", "_a_20261121103000_del"),
        ("RENAME TABLE db.a TO db._a_old, db._a_new TO db.a", "a", "_a_old"),
        ("RENAME TABLE db.a TO db.__a_old, db.__a_new TO db.a", "a", "__a_old"),
        ("RENAME TABLE _a TO __a_old, __a_new TO _a", "_a", "__a_old"),
        ("RENAME TABLE a TO kept, _a_new TO a", "", "a kept"),
        ("RENAME TABLE a TO _a_old, _b_new TO a", "", "a _a_old"),
        ("RENAME TABLE a TO _a_old, x._a_new TO a", "", "a _a_old"),
        ("RENAME TABLE a TO _a_old, b TO a", "", "a _a_old"),
        ("RENAME TABLE _a_gho TO a", "", "a"),
    ],
)
def test_the_swap_of_a_tool_keeps_the_rows(statement, swapped, replaced):
    """Told by the names of all three tables; without one of them it is a RENAME like any other."""
    means = meaning(statement, "db")
    assert {name for _, name in swapped_in(means, SWAPS)} == set(swapped.split())
    assert {name for _, name in taken_over(means, SWAPS)} == set(replaced.split())
    assert swapped_in(means, PLAIN) == ()
    found = [(one.kind, one.table) for one in table_statements(means, [("db", swapped)], AT, SWAPS)]
    assert found == ([("swap", f"db.{swapped}")] if swapped else [])
