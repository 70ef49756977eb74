"""What a comparison of source and lake found: small, without rows that agree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from cdc_lib.model.position import Position
from cdc_lib.model.table_name import TableName

Difference = Literal["missing", "extra", "different", "copies"]
"""In the source alone, in the lake alone, other values in some column, or not as often in the lake as at the source."""


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
    """One row that is not the same on both sides.

    Args:
        kind: what is wrong.
        key: the key's columns and their values; of a table without a key, all columns.
        cells: ``different``: the columns that differ.
        source_copies: how often the row is at the source.
        lake_copies: how often it is in the lake.
    """

    kind: Difference
    key: Mapping[str, str | None]
    cells: tuple[CellDifference, ...] = ()
    source_copies: int = 1
    lake_copies: int = 1


FIGURES = (
    "rows", "missing", "extra", "different", "in flight", "not looked at", "repaired", "ranges", "seconds",
)  # fmt: skip
"""What is counted of a table, in the order of :attr:`TableReport.figures`."""


@dataclass(frozen=True, slots=True)
class TableReport:
    """One source table against one lake table.

    Args:
        table: ``database.table`` at the source.
        lake_table: full name in the catalog.
        skipped: why nothing of the table was compared; empty when it was.
        source_rows: rows at the source.
        lake_rows: rows in the lake.
        ranges: parts whose checksums were compared.
        unequal_ranges: how many of them were not the same.
        missing: rows that the source has and the lake lacks.
        extra: rows that the lake has and the source lacks, copies of a row included.
        different: rows with another value in some column.
        in_flight: rows that differ and that a change explains which the lake has not merged, or may not have.
        unexamined: rows, about, in unequal ranges that were not looked at one by one, because there are too many.
        repaired: rows that were wrong and are the same now; they are not counted above.
        refused: why nothing could be repaired; empty when nothing was to be, or it was.
        position: of the lake: all changes before it were in the table when it was read first.
        seconds: that it took.
        rows: the first of the rows that differ, or did before they were repaired.
        uncompared: columns that were not compared.
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

    @property
    def figures(self) -> tuple[str, ...]:
        """What was counted, as people read it: see :data:`FIGURES`."""
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
        """Rows that are wrong for certain."""
        return self.missing + self.extra + self.different

    @property
    def clean(self) -> bool:
        """Whether every row that was compared is the same, or explained by what is in flight."""
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
        tables: what was found, one for each pair of a source table and a lake table.
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
        """Whether no table has drift; tables of which nothing could be compared have none that is known."""
        return all(one.clean or one.skipped for one in self.tables)


@dataclass(frozen=True, slots=True)
class Verified:
    """The last comparison of a lake table, as it is kept in the store.

    Args:
        source: name of the source.
        table: ``database.table`` at the source.
        lake_table: full name in the catalog.
        epoch: of the position.
        position: of the lake when it was compared.
        gtid_set: GTIDs of all transactions before it, as far as they are known.
        at: wall clock (UTC).
        rows: rows at the source.
        missing: as in :class:`TableReport`.
        extra: likewise.
        different: likewise.
        in_flight: likewise.
        unexamined: likewise.
        uncompared: names of the columns that were not compared.
        clean_position: of the lake at the last comparison without drift; None before the first.
        clean_epoch: of that position.
        clean_at: when that was.
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

    @property
    def clean(self) -> bool:
        """Whether that comparison found no drift."""
        return self.missing + self.extra + self.different + self.unexamined == 0
