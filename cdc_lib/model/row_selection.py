"""A part of a table: rows of a range of keys, or those that a predicate chooses."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class RowSelection:
    """Which rows of a table a snapshot reads again.

    Args:
        key: names of the table's key columns at the time of the request; the bounds are values of these.
        lower: least key of a range (inclusive), in the text form of ``cdc_lib/snapshot/chunks.py``. The first columns of a
            key match all keys that begin with them. None without a lower bound.
        upper: greatest key (inclusive), in the same form.
        where: the predicate as SQL text; empty without one.
        text: the request, for people.
        at: time of the request (UTC).
        by: who requested it.
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
        """Whether it is a range of keys: lake rows in the range that the source no longer has are deleted."""
        return not self.where
