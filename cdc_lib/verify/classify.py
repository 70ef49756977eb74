"""Whether a row that differs between the sides is wrong, or its change is still in flight.

A look reads the row at the source between two binlog positions: every change before ``low`` was visible, and none after
``high`` existed yet. Then it reads the lake, once the lake has all changes before ``high``. If the lake's row was written by a
change before ``low``, no change came between the two positions, so the source's row is as of ``low`` and the lake's must be
equal: it is wrong. If it was written later, the row may have changed after it was read, and is looked at again. A row that
the lake lacks shows no change: it is wrong if the lake is exactly at the position of the source, or if two consecutive looks,
with the lake at ``high`` each time, found the same row at the source and none in the lake.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from cdc_lib.model.position import Point


@dataclass(frozen=True, slots=True)
class RowState:
    """One row on one side.

    Args:
        cells: texts of the compared columns; empty in a table without a key, where all cells identify the row.
        copies: number of equal rows.
        written: lake only: the last change that wrote it, or that wrote or deleted one of its copies.
        shown: texts of the compared columns, for display.
    """

    cells: tuple[str | None, ...]
    copies: int = 1
    written: Point | None = None
    shown: tuple[str | None, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Look:
    """Result of one look at some rows.

    Args:
        low: every change before it was visible at the source.
        high: end of the source's binlog after the read.
        lake_at: every change before it was in the lake.
        source: the existing rows at the source, by name.
        lake: the existing rows in the lake, by name.
    """

    low: Point
    high: Point
    lake_at: Point
    source: Mapping[str, RowState]
    lake: Mapping[str, RowState]


class Verdict(Enum):
    """Result of a look for one row."""

    SAME = "same"
    WRONG = "wrong"
    OPEN = "open"


def judge(name: str, look: Look, before: Look | None) -> Verdict:
    """Return the verdict on a row from a look and the look before it."""
    source, lake = look.source.get(name), look.lake.get(name)
    if _same(source, lake):
        return Verdict.SAME
    if look.lake_at < look.high:
        return Verdict.OPEN
    if look.low == look.high == look.lake_at:
        return Verdict.WRONG
    if lake is not None and lake.written is not None:
        return Verdict.WRONG if lake.written < look.low else Verdict.OPEN
    stayed = before is not None and before.lake_at >= before.high and before.lake.get(name) is None
    return Verdict.WRONG if stayed and before is not None and before.source.get(name) == source else Verdict.OPEN


def _same(source: RowState | None, lake: RowState | None) -> bool:
    if source is None or lake is None:
        return source is lake
    return source.cells == lake.cells and source.copies == lake.copies
