"""A part of a table: rows of a range of keys, or those that a predicate chooses."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class RowSelection:
    """Which rows of a table a snapshot reads again.

    Args:
        key: names of the table's key columns when it was asked for; the bounds are of these.
        lower: of a range: its least key, itself in it, as ``cdc_lib/snapshot/chunks.py`` spells keys; the first columns of
            a key stand for all that begin so. None without a lower end.
        upper: its greatest key, in the same way.
        where: of a predicate: the condition, as it is in the SELECT; empty without one.
        text: what was asked for, for people.
        at: when it was asked for (UTC).
        by: who asked for it.
        why: the reason.
    """

    key: tuple[str, ...]
    lower: tuple[str, ...] | None = None
    upper: tuple[str, ...] | None = None
    where: str = ""
    text: str = ""
    at: datetime | None = None
    by: str = ""
    why: str = ""

    @property
    def is_range(self) -> bool:
        """Whether keys alone decide: rows of the lake in the range that the source no longer has are gone."""
        return not self.where
