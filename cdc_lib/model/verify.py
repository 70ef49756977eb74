"""The result of a comparison of source and lake, without the equal rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from cdc_lib.model.position import Point, Position
from cdc_lib.model.table_name import TableName

Difference = Literal["missing", "extra", "different", "copies"]
"""Only at the source; only in the lake; different values in some column; different number of copies."""


@dataclass(frozen=True, slots=True)
class UncomparedColumn:
    """A column that could not be compared, and why."""

    column: str
    why: str


@dataclass(frozen=True, slots=True)
class CellDifference:
    """One cell, as text on both sides; None is NULL."""

    column: str
    source: str | None
    lake: str | None


@dataclass(frozen=True, slots=True)
class RowDifference:
    """One row that differs between source and lake.

    Args:
        kind: kind of the difference.
        key: the key's columns and their values; all columns if the table has no key.
        cells: ``different``: the columns that differ.
        source_copies: copies of the row at the source.
        lake_copies: copies in the lake.
    """

    kind: Difference
    key: Mapping[str, str | None]
    cells: tuple[CellDifference, ...] = ()
    source_copies: int = 1
    lake_copies: int = 1


FIGURES = (
    "rows", "missing", "extra", "different", "in flight", "not looked at", "repaired", "ranges", "seconds",
)  # fmt: skip
"""Names of the figures, in the order of :attr:`TableReport.figures`."""


@dataclass(frozen=True, slots=True)
class TableReport:
    """One source table against one lake table.

    Args:
        table: ``database.table`` at the source.
        lake_table: full name in the catalog.
        skipped: why the table was not compared; empty if it was.
        source_rows: rows at the source.
        lake_rows: rows in the lake.
        ranges: key ranges whose checksums were compared.
        unequal_ranges: ranges with different checksums.
        missing: rows that the source has and the lake lacks.
        extra: rows that the lake has and the source lacks, including extra copies.
        different: rows with another value in some column.
        in_flight: rows that differ because of a change that may not be merged yet.
        unexamined: about how many rows are in unequal ranges that were not compared row by row, because there are too many.
        repaired: rows that were wrong and are equal now; they are not counted above.
        refused: why nothing could be repaired; empty if repaired, or if no repair was requested.
        position: position of the lake: all earlier changes were in the table at the first read.
        seconds: duration.
        rows: the first rows that differ, or differed before the repair.
        uncompared: columns that were not compared.
        kept: which rows the lake keeps although the source removed them, so that they were not compared; empty for none.
    """

    table: TableName
    lake_table: str
    skipped: str = ""
    source_rows: int = 0
    lake_rows: int = 0
    ranges: int = 0
    unequal_ranges: int = 0
    missing: int = 0
    extra: int = 0
    different: int = 0
    in_flight: int = 0
    unexamined: int = 0
    repaired: int = 0
    refused: str = ""
    position: Position | None = None
    seconds: float = 0.0
    rows: tuple[RowDifference, ...] = ()
    uncompared: tuple[UncomparedColumn, ...] = ()
    kept: str = ""

    @property
    def figures(self) -> tuple[str, ...]:
        """The figures as text: see :data:`FIGURES`."""
        rows = (
            self.source_rows,
            self.missing,
            self.extra,
            self.different,
            self.in_flight,
            self.unexamined,
            self.repaired,
        )
        return (*map(str, rows), f"{self.unequal_ranges} of {self.ranges}", f"{self.seconds:.1f}")

    @property
    def drift(self) -> int:
        """Number of rows that are certainly wrong."""
        return self.missing + self.extra + self.different

    @property
    def clean(self) -> bool:
        """Whether every compared row is equal, or differs only by changes in flight."""
        return not self.skipped and not self.drift and not self.unexamined


@dataclass(frozen=True, slots=True)
class Report:
    """A comparison of some tables of a source.

    Args:
        source: its name.
        epoch: of the lake cursor.
        position: of the lake cursor when it began.
        gtid_set: GTIDs of all transactions before that position.
        started_at: wall clock (UTC).
        ended_at: wall clock (UTC).
        tables: one report for each pair of source table and lake table.
    """

    source: str
    epoch: int
    position: Position
    gtid_set: str
    started_at: datetime
    ended_at: datetime
    tables: tuple[TableReport, ...]

    @property
    def clean(self) -> bool:
        """Whether no table has drift; a skipped table counts as clean."""
        return all(one.clean or one.skipped for one in self.tables)

    @property
    def compared_nothing(self) -> bool:
        """Whether every table was skipped, so that nothing is known of any."""
        return all(one.skipped for one in self.tables)


@dataclass(frozen=True, slots=True)
class CleanCheck:
    """A comparison of a whole table that found no drift.

    Args:
        epoch: of the position.
        position: position of the lake when it was compared.
        gtid_set: GTIDs of all transactions before it, if known.
        at: wall clock (UTC).
        in_flight: rows that differed because of a change that may not be merged yet.
    """

    epoch: int
    position: Position
    gtid_set: str
    at: datetime
    in_flight: int = 0

    @property
    def point(self) -> Point:
        """The position, in any epoch."""
        return Point.at(self.epoch, self.position)


@dataclass(frozen=True, slots=True)
class Verified:
    """The last comparison of a lake table, as stored.

    Args:
        source: name of the source.
        table: ``database.table`` at the source.
        lake_table: full name in the catalog.
        epoch: of the position.
        position: position of the lake when it was compared.
        gtid_set: GTIDs of all transactions before it, if known.
        at: wall clock (UTC).
        rows: rows at the source.
        missing: as in :class:`TableReport`.
        extra: likewise.
        different: likewise.
        in_flight: likewise.
        unexamined: likewise.
        uncompared: names of the columns that were not compared.
        clean_position: position of the lake at the last comparison without drift; None before the first.
        clean_epoch: epoch of that position.
        clean_at: time of that comparison.
        clean_checks: the last comparisons without drift, oldest first.
    """

    source: str
    table: TableName
    lake_table: str
    epoch: int
    position: Position
    gtid_set: str
    at: datetime
    rows: int
    missing: int
    extra: int
    different: int
    in_flight: int
    unexamined: int
    uncompared: tuple[str, ...] = ()
    clean_position: Position | None = None
    clean_epoch: int = 0
    clean_at: datetime | None = None
    clean_checks: tuple[CleanCheck, ...] = ()

    @property
    def known_clean(self) -> tuple[CleanCheck, ...]:
        """The comparisons without drift that are known, oldest first; a document of an earlier version has only the last one."""
        if self.clean_checks or self.clean_position is None or self.clean_at is None:
            return self.clean_checks
        return (CleanCheck(self.clean_epoch, self.clean_position, "", self.clean_at),)

    @property
    def clean(self) -> bool:
        """Whether that comparison found no drift."""
        return self.missing + self.extra + self.different + self.unexamined == 0

    @property
    def drift_text(self) -> str:
        """The rows that are wrong, by what is wrong with them; empty if none is."""
        counts = {
            "missing": self.missing,
            "extra": self.extra,
            "different": self.different,
            "not looked at": self.unexamined,
        }
        return ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)
