"""Describes wrong rows: missing rows, extra rows and different columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TypedDict

from cdc_lib.model.verify import CellDifference, RowDifference
from cdc_lib.verify.canonical_text import is_null, shown
from cdc_lib.verify.comparability import Subject
from cdc_lib.verify.judgement import RowState, Sides

MAX_SHOWN_ROWS = 1000
"""Most rows of one table that a report lists."""

MAX_CELL_LENGTH = 300
"""Most characters of a cell in a report."""


class Findings(TypedDict):
    """Fields of :class:`cdc_lib.model.verify.TableReport`."""

    missing: int
    extra: int
    different: int
    rows: tuple[RowDifference, ...]


def findings(subject: Subject, keys: Mapping[str, tuple[str, ...]], wrong: Mapping[str, Sides]) -> Findings:
    """Return the wrong rows.

    Args:
        subject: what was compared.
        keys: texts of each row's key, by its name.
        wrong: by row name, both sides of each wrong row.
    """
    counts: Counter[str] = Counter()
    rows = []
    for name, sides in wrong.items():
        one = _difference(subject, keys[name], *sides)
        surplus = one.lake_copies - one.source_copies
        field = "different" if not surplus else "extra" if surplus > 0 else "missing"
        counts[field] += abs(surplus) or 1
        rows.append(one)
    return Findings(
        missing=counts["missing"],
        extra=counts["extra"],
        different=counts["different"],
        rows=tuple(rows[:MAX_SHOWN_ROWS]),
    )


def _difference(
    subject: Subject, key: tuple[str, ...], source: RowState | None, lake: RowState | None
) -> RowDifference:
    named = _key(subject, key, source or lake)
    if source is None or lake is None:
        present = source or lake
        copies = present.copies if present else 0
        if source is None:
            return RowDifference("extra", named, (), 0, copies)
        return RowDifference("missing", named, (), copies, 0)
    if source.copies != lake.copies:
        return RowDifference("copies", named, (), source.copies, lake.copies)
    cells = tuple(
        CellDifference(cell.column.name, _cut(shown(cell, one)), _cut(shown(cell, other)))
        for cell, one, other in zip(subject.cells, source.cells, lake.cells, strict=True)
        if one != other
    )
    return RowDifference("different", named, cells, source.copies, lake.copies)


def _key(subject: Subject, key: tuple[str, ...], seen: RowState | None) -> dict[str, str | None]:
    texts = seen.shown if subject.how == "copies" and seen is not None else key
    return {
        cell.column.name: None if is_null(cell, text) else _cut(shown(cell, text))
        for cell, text in zip(subject.keys, texts, strict=True)
    }


def _cut(text: str | None) -> str | None:
    return text if text is None or len(text) <= MAX_CELL_LENGTH else f"{text[:MAX_CELL_LENGTH]}…"
