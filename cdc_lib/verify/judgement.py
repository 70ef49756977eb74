"""Whether a row that differs between the sides is wrong, or its change is still in flight. Pure.

A look reads the row at the source between two binlog positions: every change before ``low`` was visible, and none after
``high`` existed yet. Then it reads the lake, once the lake has all changes before ``high``. If the lake's row was written by a
change before ``low``, no change came between the two positions, so the source's row is as of ``low`` and the lake's must be
equal: it is wrong. If it was written later, the row may have changed after it was read, and is looked at again. A row that
the lake lacks shows no change: it is wrong if the lake is exactly at the position of the source, or if two consecutive looks,
with the lake at ``high`` each time, found the same row at the source and none in the lake.

After a merge the lake is as of its cut, and a source at work is ahead of it. So of a row that differs, the source's half of the
look is kept as a digest, and judged with the lake's row as of a later cut. No merge waits.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal

from cdc_lib.model.changed_rows import OpenRow
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


Sides = tuple[RowState | None, RowState | None]
"""One row at the source and in the lake; None where there is none."""


@dataclass(frozen=True, slots=True)
class Half:
    """The source's half of a look at one row.

    Args:
        low: every change before it was visible.
        high: end of the binlog after the read.
        source: the row; None if there was none.
    """

    low: Point
    high: Point
    source: RowState | None


class Verdict(Enum):
    """Result of a look for one row."""

    SAME = "same"
    WRONG = "wrong"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a row is known to be.

    Args:
        verdict: whether it is the same, wrong, or still open.
        before: of an open row, what :attr:`cdc_lib.model.changed_rows.OpenRow.before` keeps.
        waits: whether the kept half still waits for the lake, so that no new one replaces it.
    """

    verdict: Literal[Verdict.SAME, Verdict.WRONG, Verdict.OPEN]
    before: str | None = None
    waits: bool = False


def are_same(source: RowState | None, lake: RowState | None) -> bool:
    """Whether a row is the same on both sides."""
    if source is None or lake is None:
        return source is lake
    return source.cells == lake.cells and source.copies == lake.copies


def judge(half: Half, lake: RowState | None, lake_at: Point, lacked: Half | None = None) -> Verdict:
    """Return the verdict on a row.

    Args:
        half: the source's half of the look.
        lake: the lake's row; None if there is none.
        lake_at: every change before it was in the lake.
        lacked: the source's half of the look before, if the lake had every change from before it, and no row; else None.
    """
    if are_same(half.source, lake):
        return Verdict.SAME
    if lake_at < half.high:
        return Verdict.OPEN
    if half.low == half.high == lake_at:
        return Verdict.WRONG
    if lake is not None and lake.written is not None:
        return Verdict.WRONG if lake.written < half.low else Verdict.OPEN
    return Verdict.WRONG if lacked is not None and lacked.source == half.source else Verdict.OPEN


def later(kept: OpenRow, lake: RowState | None, lake_at: Point) -> Outcome:
    """Return the verdict of a look whose source half was read after an earlier merge.

    Args:
        kept: that half.
        lake: the lake's row as of the cut; None if there is none.
        lake_at: every change before it is in the lake; a point before ``high`` leaves the row open.
    """
    seen = None if lake is None else RowState((digest(lake),), 1, lake.written)
    half = Half(kept.low, kept.high, _digested(kept.source))
    lacked = None if kept.before is None else Half(kept.low, kept.low, _digested(kept.before))
    verdict = judge(half, seen, lake_at, lacked)
    if verdict is not Verdict.OPEN:
        return Outcome(verdict)
    if lake_at < kept.high:
        return Outcome(verdict, kept.before, waits=True)
    return Outcome(verdict, kept.source if lake is None else None)


def digest(row: RowState) -> str:
    """Return a digest of a row's compared cells and of its number of copies: the row's values are not stored."""
    hashed = hashlib.sha256(str(row.copies).encode())
    for text in row.cells:
        data = None if text is None else text.encode()
        hashed.update(b"~" if data is None else b"%d:%b" % (len(data), data))
    return hashed.hexdigest()


def _digested(digest_of_row: str) -> RowState | None:
    """Return the row of a digest; an empty one is of no row."""
    return RowState((digest_of_row,)) if digest_of_row else None
