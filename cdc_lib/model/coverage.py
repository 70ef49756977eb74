"""Rolling comparisons: which key ranges of a table were compared with the source, when, and what was found."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from cdc_lib.model.changed_rows import OpenRow, WrongRow
from cdc_lib.model.position import Position
from cdc_lib.model.table_name import TableName

Key = tuple[str, ...]
"""Texts of the key columns of a row."""


@dataclass(frozen=True, slots=True)
class CoveredRange:
    """The keys after the end of the range before it, up to its own end, inclusive. The ranges of a table tile all keys.

    Args:
        end: its last key, as statements need it (:func:`cdc_lib.snapshot.chunks.key_text`); None: the last range has no end.
        end_text: the same key as canonical texts, as comparisons with the lake need it.
        rows: rows at the source when it was compared; an estimate before.
        at: when it was compared (UTC); None if it was not yet.
        epoch: of the position.
        position: of the cut that was compared; None if it was not yet.
    """

    end: Key | None
    end_text: Key | None
    rows: int
    at: datetime | None = None
    epoch: int = 0
    position: Position | None = None


@dataclass(frozen=True, slots=True)
class FoundWrong:
    """A wrong row that is looked at in each run until it is equal.

    Args:
        key: texts of the key's cells.
        row: what was found.
    """

    key: Key
    row: WrongRow


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of a table was compared with the source, range by range.

    Args:
        source: name of the source.
        table: ``database.table`` at the source.
        lake_table: full name in the catalog.
        since: when its coverage began (UTC).
        ran_at: the last time that ranges were compared or the table was found not to be comparable.
        key: the key's columns with their types; other ones begin the coverage again.
        share: part of the table that may be compared now, from 0 to 1; it grows with time and shrinks with each comparison.
        ranges: in the order of the key; they tile all keys.
        open_rows: rows that differed because of a change that was perhaps not merged yet.
        wrong: rows that are wrong.
        gtid_set: GTIDs of all transactions before the last cut that was compared; empty if they are not known.
        skipped: why the table is not compared by ranges; empty if it is.
    """

    source: str
    table: TableName
    lake_table: str
    since: datetime
    ran_at: datetime
    key: tuple[str, ...] = ()
    share: float = 0.0
    ranges: tuple[CoveredRange, ...] = ()
    open_rows: tuple[OpenRow, ...] = ()
    wrong: tuple[FoundWrong, ...] = ()
    gtid_set: str = ""
    skipped: str = ""

    @property
    def rows(self) -> int:
        """About how many rows the table has."""
        return sum(one.rows for one in self.ranges)

    @property
    def oldest(self) -> CoveredRange | None:
        """The range that was compared first; None if some range never was."""
        if not self.ranges or any(one.at is None for one in self.ranges):
            return None
        return min(self.ranges, key=lambda one: one.at or self.since)

    @property
    def oldest_at(self) -> datetime | None:
        """When the oldest comparison of a range was, or when coverage began if some range was never compared; None if skipped."""
        if self.skipped or not self.ranges:
            return None
        return min(one.at or self.since for one in self.ranges)

    def ratio(self, now: datetime, period: timedelta) -> float:
        """Return the part of the rows whose ranges were compared within a period before now: 0 to 1."""
        covered = [one for one in self.ranges if one.at is not None and one.at >= now - period]
        if not self.rows:
            return len(covered) / len(self.ranges) if self.ranges else 0.0
        return sum(one.rows for one in covered) / self.rows

    def overdue(self, now: datetime, period: timedelta) -> bool:
        """Whether some range was not compared within a period."""
        return self.oldest_at is not None and self.oldest_at + period < now
