"""What a statement does to the rows of captured tables: pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from cdc_lib.binlog.ddl.ddl import Meaning, Name
from cdc_lib.binlog.ddl.masked_rows import MaskedRows
from cdc_lib.config.shadows import is_swap
from cdc_lib.model.ddl_effect import TableStatement, TableStatementKind
from cdc_lib.model.position import Position
from cdc_lib.model.table_name import TableName

Kept = Literal["rows", "fixed"]
"""How the lake keeps a table: its rows, or a list of their changes, which a snapshot can bring again; or its rows, where no
snapshot can replace them."""


def as_rows(_database: str, _table: str) -> Kept:
    """Return how the lake keeps a table by default."""
    return "rows"


def _of_nothing(_database: str, _table: str) -> Mapping[str, str]:
    return {}


def _never(_database: str, _table: str) -> bool:
    return False


def _no_texts(_table: TableName) -> bool:
    return False


def _as_it_is(_database: str, _table: str, _column: str) -> str | None:
    return ""


@dataclass(frozen=True, slots=True)
class Naming:
    """How statements name tables, and properties of these tables.

    Args:
        fold: names are case-insensitive.
        swaps: a RENAME with the names of an online schema change tool keeps the table's rows.
        kept: how the lake keeps a table; called only if a statement does not show the new values of rows.
        shaped: whether columns of a table are left out or masked, so that no value of its statements may be stored.
        stored: how a column is stored: its mask, empty without one; None if it is not stored.
        shares: whether a table may share its lake table with others.
        date_texts: whether the lake keeps dates of a table as the text that SELECT shows.
        made_of: the expressions of a table's generated columns now; called only if a statement may change what they are made of.
        masked: follows whose rows tables have; it does nothing where the file hides no column.
    """

    fold: bool = False
    swaps: bool = False
    kept: Callable[[str, str], Kept] = as_rows
    shaped: Callable[[str, str], bool] = _never
    stored: Callable[[str, str, str], str | None] = _as_it_is
    shares: Callable[[str, str], bool] = _never
    date_texts: Callable[[TableName], bool] = _no_texts
    made_of: Callable[[str, str], Mapping[str, str]] = _of_nothing
    masked: MaskedRows = field(default_factory=MaskedRows)


def table_statements(
    means: Meaning, followed: Collection[Name], position: Position, naming: Naming
) -> tuple[TableStatement, ...]:
    """Return what a statement does to captured tables, in the order in which it names them.

    Args:
        means: the statement's meaning.
        followed: the captured tables among those that it names.
        position: where its event starts.
        naming: how it names them.
    """
    if means.effect == "rename":
        removed, swapped = former_names(means), swapped_in(means, naming)
        found = _each("drop", [table for table in followed if table in removed], position)
        return found + _each("swap", [table for table in followed if table in swapped], position)
    if means.effect == "create":
        kind: TableStatementKind = "create_if_missing" if means.if_missing else "create"
        return tuple(replace(one, replaces=means.replaces) for one in _each(kind, followed, position))
    if means.effect in ("truncate", "drop"):
        return _each("truncate" if means.effect == "truncate" else "drop", followed, position)
    return ()


def _each(kind: TableStatementKind, tables: Collection[Name], position: Position) -> tuple[TableStatement, ...]:
    return tuple(TableStatement(kind, TableName(*table), position) for table in dict.fromkeys(tables))


def taken_over(means: Meaning, naming: Naming) -> dict[Name, Name]:
    """Return the tables that have the rows of another table after a RENAME, with that table."""
    swapped = swapped_in(means, naming)
    found = {table: rows for table, rows in _moved(means).items() if rows is not None and rows != table}
    return {table: rows for table, rows in found.items() if table not in swapped}


def swapped_in(means: Meaning, naming: Naming) -> tuple[Name, ...]:
    """Return the tables that an online schema change tool replaced by a copy with the same rows and other columns."""
    moved = _moved(means) if naming.swaps else {}
    went = {rows: table for table, rows in moved.items() if rows is not None}
    return tuple(
        table
        for table, rows in moved.items()
        if rows is not None
        and (to := went.get(table, table))[0] == table[0] == rows[0]
        and is_swap(table[1], to[1], rows[1])
    )


def former_names(means: Meaning) -> tuple[Name, ...]:
    """Return the tables that exist before a RENAME and not after it."""
    # A name that is a target first had no table before.
    first = {table: i for i, pair in reversed(list(enumerate(means.renamed))) for table in pair}
    return tuple(
        table for table, rows in _moved(means).items() if rows is None and means.renamed[first[table]][0] == table
    )


def _moved(means: Meaning) -> dict[Name, Name | None]:
    """Return whose rows each of the tables holds after a RENAME, whose pairs are followed from the left to the right."""
    holds: dict[Name, Name | None] = {}
    for old, new in means.renamed:
        holds[new] = holds.get(old, old)
        holds[old] = None
    return holds
