"""Which columns an ALTER TABLE renames: pure, and only if certain.

In both servers, old names are those before the statement: ``RENAME COLUMN a TO b, RENAME COLUMN b TO a`` swaps two.
"""

from __future__ import annotations

from cdc_lib.binlog.ddl.history.words import CannotFollow, WordReader, clauses, words
from cdc_lib.binlog.ddl.statement import Statement
from cdc_lib.model.ddl_effect import Names


def renames(statement: Statement) -> Names:
    """Return columns and their new names; those that differ in case alone are left out.

    Args:
        statement: an ALTER TABLE.

    Raises:
        CannotFollow: the renamed columns are not certain from the statement.
    """
    found = []
    for clause in clauses(WordReader(words(statement))):
        if clause.accept("RENAME", "COLUMN"):
            found.append(_renamed(clause))
        elif clause.accept("CHANGE"):
            clause.accept("COLUMN")
            _refuse_if(clause)
            found.append((clause.column(), clause.column()))
    return tuple((old, new) for old, new in found if old.lower() != new.lower())


def _renamed(clause: WordReader) -> tuple[str, str]:
    _refuse_if(clause)
    old = clause.name()
    if not clause.accept("TO"):
        raise CannotFollow("TO is missing")
    return old, clause.name()


def _refuse_if(clause: WordReader) -> None:
    if clause.accept("IF", "EXISTS"):
        raise CannotFollow("a column is renamed only if it is there")
