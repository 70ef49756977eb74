"""Looks whose halves are read at different times: the source after one merge, the lake after a later one. Pure.

A look compares the lake, once it has all changes before ``high``, with a row that was read at the source between ``low`` and
``high`` (:mod:`cdc_lib.verify.classify`). After a merge the lake is as of its cut, and a source at work is ahead of it. So of a
row that differs, the source's half is kept as a digest, and judged with the lake's row as of a later cut. No merge waits.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal

from cdc_lib.model.changed_rows import OpenRow
from cdc_lib.model.position import Point
from cdc_lib.verify.classify import Look, RowState, Verdict, judge

NAME = "row"
"""Name of the one row of a look."""


@dataclass(frozen=True, slots=True)
class Half:
    """The source's half of a look.

    Args:
        low: every change before it was visible.
        high: end of the binlog after the read.
        source: the row; None if there was none.
    """

    low: Point
    high: Point
    source: RowState | None


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


def now(half: Half, lake: RowState | None, lake_at: Point) -> Verdict:
    """Return the verdict of a look whose halves are read together.

    Args:
        half: the source's half.
        lake: the lake's row as of the cut; None if there is none.
        lake_at: every change before it is in the lake.
    """
    return judge(NAME, _look(half.low, half.high, lake_at, half.source, lake), None)


def later(kept: OpenRow, lake: RowState | None, lake_at: Point) -> Outcome:
    """Return the verdict of a look whose source half was read after an earlier merge.

    Args:
        kept: that half.
        lake: the lake's row as of the cut; None if there is none.
        lake_at: every change before it is in the lake; a point before ``high`` leaves the row open.
    """
    seen = None if lake is None else RowState((digest(lake),), 1, lake.written)
    source = RowState((kept.source,)) if kept.source else None
    before = _lacking(kept) if kept.before is not None else None
    verdict = judge(NAME, _look(kept.low, kept.high, lake_at, source, seen), before)
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


def _look(low: Point, high: Point, lake_at: Point, source: RowState | None, lake: RowState | None) -> Look:
    return Look(low, high, lake_at, _only(source), _only(lake))


def _lacking(kept: OpenRow) -> Look:
    """Return the look before, at which the lake had every change and no row."""
    source = RowState((kept.before,)) if kept.before else None
    return Look(kept.low, kept.low, kept.low, _only(source), {})


def _only(row: RowState | None) -> dict[str, RowState]:
    return {} if row is None else {NAME: row}
