"""Whether a row that is not the same on both sides is wrong, or merely on its way.

A look reads the row at the source between two positions of its binlog: every change before ``low`` was visible, and none after
``high`` was there yet. The lake is read when it has all changes before ``high``. If the lake's row was written by a change before
``low``, then none came between the two, so that what the source showed is the row as of ``low`` and the lake's must be the same:
it is wrong. If it was written later, the row may have changed after it was read, and is looked at again. A row that the lake lacks
tells no change: it is wrong when the lake is exactly where the source was read, or when two looks one after the other, each
waited for, found the same row at the source and none in the lake.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from cdc_lib.model.position import Point


@dataclass(frozen=True, slots=True)
class Seen:
    """One row on one side.

    Args:
        cells: texts of the compared columns; empty in a table without a key, where rows are told apart by all of them.
        copies: how often it is there.
        written: lake only: the change that wrote it, or the last one that wrote or deleted one of its copies.
        shown: texts of the compared columns, for people.
    """

    cells: tuple[str | None, ...]
    copies: int = 1
    written: Point | None = None
    shown: tuple[str | None, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Look:
    """What one look at some rows found.

    Args:
        low: every change before it was visible at the source.
        high: end of the source's binlog after the reading.
        lake_at: every change before it was in the lake.
        source: the rows at the source, by name; those that are not there are left out.
        lake: the same in the lake.
    """

    low: Point
    high: Point
    lake_at: Point
    source: Mapping[str, Seen]
    lake: Mapping[str, Seen]


class Verdict(Enum):
    """What a look says of a row."""

    SAME = "same"
    WRONG = "wrong"
    OPEN = "open"


def judge(name: str, look: Look, before: Look | None) -> Verdict:
    """Return what a look, and the one before it, say of a row."""
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


def _same(source: Seen | None, lake: Seen | None) -> bool:
    if source is None or lake is None:
        return source is lake
    return source.cells == lake.cells and source.copies == lake.copies
