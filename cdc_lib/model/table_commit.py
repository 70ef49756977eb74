"""What a merge gives a lake table in one commit: changes, the markers that say how far they lead, and what standing rows get."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

from cdc_lib.model.lake_table import Marker
from cdc_lib.model.position import Point
from cdc_lib.model.table_name import TableName

Frame = TypeVar("Frame")
"""Rows on their way into a lake table: a Spark DataFrame, or what another engine calls so."""


@dataclass(frozen=True, slots=True)
class Superseded:
    """Rows before a point that a later snapshot brings again, if they still exist, or that a statement took.

    Args:
        before: the point.
        columns: columns that say whose rows are meant, and their values; empty for all rows of the table.
        reads: whether rows that an earlier snapshot brought are meant as well (append mode; others always are).
        since: rows before this point are not meant; None for all.
        at: when that was; None where nobody knows.
        by_snapshot: whether a snapshot brings them again; rows that it brings itself are not meant.
    """

    before: Point
    columns: Mapping[str, str]
    reads: bool = False
    since: Point | None = None
    at: datetime | None = None
    by_snapshot: bool = False


@dataclass(frozen=True, slots=True)
class Filled:
    """What rows of before a point have in a column that was added after them.

    Args:
        before: the point.
        column: name of the column.
        value: as text; None for NULL.
        columns: columns that say whose rows are meant, and their values; empty for all rows of the table.
    """

    before: Point
    column: str
    value: str | None
    columns: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Changes(Generic[Frame]):
    """Changes of a table that keeps rows by a key, and what is known of them.

    Args:
        rows: in any order, with ``_op`` and the table's columns; then, where some rows lack cells, with ``_absent``: a character
            for each of the table's columns, or null for a whole row. The cells come from earlier changes and from standing rows.
        guard: whether the table may hold rows newer than these changes; the newer ones stay.
        at_most: how many changes there are at most; 0 where nobody counted.
        snapshot_to_come: a row that cannot be completed is left out, because a snapshot chunk will bring it.
    """

    rows: Frame
    guard: bool
    at_most: int = 0
    snapshot_to_come: bool = False


@dataclass(frozen=True, slots=True)
class TableCommit:
    """What else is in the commit that brings rows.

    Args:
        markers: what the table holds afterwards of each source table.
        supersedes: standing rows that are taken out, marked or ended.
        fills: what standing rows get; columns that the table does not have are left out.
    """

    markers: Mapping[TableName, Marker]
    supersedes: Sequence[Superseded] = ()
    fills: Sequence[Filled] = ()
