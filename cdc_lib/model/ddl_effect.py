"""Statements that change a table, or take its rows, without an event for each row."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from cdc_lib.model.position import Position
from cdc_lib.model.schema import Column
from cdc_lib.model.table_name import TableName

TableStatementKind = Literal[
    "truncate",
    "drop",
    "create",
    "create_if_missing",
    "swap",
    "add_default",
    "rename_columns",
    "retype",
    "shadow",
    "shadow_add_default",
]
"""truncate: all rows were deleted; drop: the table was dropped; create: it starts empty; create_if_missing: the same if it was
dropped before; swap: an online schema change tool replaced it with a shadow table; add_default: existing rows got the
defaults of added columns; rename_columns: columns were renamed; retype: columns may have another type; shadow and shadow_add_default: such a tool created the shadow table, or
added a column to it or gave one another type: both take effect at the swap."""

Names = tuple[tuple[str, str], ...]
"""Columns and the names that they get, all at once."""


@dataclass(frozen=True, slots=True)
class AddedDefault:
    """The value that all existing rows get in an added column.

    Args:
        column: its name.
        value: as SELECT shows it; None for NULL, which matters if the table once had another column of that name.
    """

    column: str
    value: str | None


@dataclass(frozen=True, slots=True)
class TableStatement:
    """What a statement did to the rows of one captured table.

    Args:
        kind: what it did.
        table: the table; with EVERY_TABLE where a database was dropped.
        position: where its event starts. Earlier changes of the table belong to the rows that it removed.
        added_defaults: the columns that it added with a value in every row.
        unclear: of a shadow: why the statement does not say what its rows got.
        time: when it was committed (UTC); None if unknown.
        names: the columns that it renamed.
        gtid: GTID of the statement; empty without one.
        stamp: for renames: when a session ran it, in seconds since 1970; replicas keep this value.
        replaces: of a create: whether it dropped a table of that name first.
        retyped: the columns that it declared again whose former types the window does not show: the former names, the new types.
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
    retyped: tuple[Column, ...] = ()
