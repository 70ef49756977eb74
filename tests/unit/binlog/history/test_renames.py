"""Which columns an ALTER TABLE renames, or why that is not certain."""

from __future__ import annotations

import pytest

from cdc_lib.binlog.ddl.history.renames import renames
from cdc_lib.binlog.ddl.history.words import CannotFollow
from cdc_lib.binlog.ddl.statement import Statement


@pytest.mark.parametrize(
    ("clauses", "names"),
    [
        ("RENAME COLUMN a TO b", [("a", "b")]),
        ("RENAME COLUMN a TO b, RENAME COLUMN b TO a, ADD c INT", [("a", "b"), ("b", "a")]),
        ("CHANGE `a` b VARCHAR(9) DEFAULT 'CHANGE x y' AFTER id, CHANGE COLUMN d D INT", [("a", "b")]),
        ("DROP b, RENAME COLUMN a TO b, ADD a INT", [("a", "b")]),
        ("RENAME COLUMN a TO A", []),
        ("RENAME INDEX a TO b, RENAME KEY c TO d, ADD COLUMN (x INT, y INT), DROP PRIMARY KEY", []),
    ],
)
def test_renamed_columns_are_returned_with_their_new_names(clauses, names):
    """All old names are those before the statement; names that differ in case alone are the same."""
    text = f"ALTER ONLINE /* why */ TABLE IF EXISTS `db`.`t` {clauses}"
    assert renames(Statement(text, "db")) == tuple(names)


@pytest.mark.parametrize("clause", ["RENAME COLUMN IF EXISTS a TO b", "CHANGE COLUMN IF EXISTS a b INT"])
def test_what_depends_on_the_table_is_not_certain(clause):
    """MariaDB lets a statement rename a column only if it is there."""
    with pytest.raises(CannotFollow, match="if it is there"):
        renames(Statement(f"ALTER TABLE t {clause}", "db"))
