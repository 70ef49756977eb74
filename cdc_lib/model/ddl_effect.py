"""Statements that change a table, or take its rows, without an event for each row."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from cdc_lib.model.position import Position
from cdc_lib.model.table_name import TableName

TableStatementKind = Literal[
    "truncate", "drop", "create", "create_if_missing", "swap", "fill", "rename_columns", "shadow", "shadow_fill"
]
"""truncate: the rows are gone; drop: the table is; create: it begins again; create_if_missing: it does if it was dropped before;
swap: an online schema change tool put its rows back with other columns; fill: its rows got values in new columns;
rename_columns: some of its columns have other names; shadow and shadow_fill: such a tool began to make its shadow, and did
that to it: it counts from the swap on."""

Names = tuple[tuple[str, str], ...]
"""Columns and the names that they get, all at once."""


@dataclass(frozen=True, slots=True)
class AddedDefault:
    """What all rows of a table get in a column that is added.

    Args:
        column: its name.
        value: as SELECT shows it; None for NULL, which counts where the table once had another column of that name.
    """

    column: str
    value: str | None


@dataclass(frozen=True, slots=True)
class TableStatement:
    """What a statement did to the rows of one captured table.

    Args:
        kind: what it did.
        table: the table; with EVERY_TABLE where a database was dropped.
        position: where its event starts. Changes of the table before it are of the rows that it took.
        added_defaults: the columns that it added with a value in every row.
        unclear: of a shadow: why the statement does not tell what its rows got.
        time: when it was committed (UTC); None where that is not known.
        names: the columns that it renamed.
        gtid: of the statement; empty without one.
        stamp: where it renamed some: when a session ran it, in seconds since 1970, which replicas repeat.
        replaces: of a create: whether it dropped a table of that name first.
    """

    kind: TableStatementKind
    table: TableName
    position: Position
    added_defaults: tuple[AddedDefault, ...] = ()
    unclear: str = ""
    time: datetime | None = None
    names: Names = ()
    gtid: str = ""
    stamp: int = 0
    replaces: bool = False
