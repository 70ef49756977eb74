"""What a second decoder reads from a binlog: rows as Python values, and the events that it cannot read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from cdc_lib.model.table_name import TableName

NULL = "null"
"""Why a value is None: it is NULL. Other reasons are the decoder's own words."""

UNPLACED = -1
"""Offset of an event that has no position: MariaDB leaves it out inside of transactions."""

EMPTY_SET = "empty set"
"""Why a value is None: a SET without members."""


@dataclass(frozen=True, slots=True)
class DecodedImage:
    """One row image.

    Args:
        values: by column name, in the order of the columns.
        nulls: of each value that is None, why: :data:`NULL`, :data:`EMPTY_SET`, or that its date is out of range.
    """

    values: Mapping[str, Any]
    nulls: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class DecodedEvent:
    """One event.

    Args:
        kind: ``begin`` of a transaction, ``rows``, ``rollback`` of a transaction or of a part of it, ``unreadable``, or ``failed``:
            nothing after it can be read.
        file: number of its binlog file.
        offset: where it starts in the file, or :data:`UNPLACED`.
        table: of its rows; None if unknown.
        named: whether the event has the names of its columns, and whether their numbers are unsigned.
        rows: images before and after each change; None where the change has no such image.
        why: why it cannot be read; empty if it can.
        gtid: ``begin``: of the transaction; empty if the decoder does not know it.
        unnumbered: whether several events have this place, those of a compressed transaction: their rows are compared in their order.
    """

    kind: Literal["begin", "rows", "rollback", "unreadable", "failed"]
    file: int
    offset: int
    table: TableName | None = None
    named: bool = True
    rows: Sequence[tuple[DecodedImage | None, DecodedImage | None]] = ()
    why: str = ""
    gtid: str = ""
    unnumbered: bool = False
