"""What a backfill merges again: a period, and the stored batches in it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from cdc_lib.model.merge_plan import TableCut
from cdc_lib.model.position import Point
from cdc_lib.model.quarantine import QuarantineRecord
from cdc_lib.model.table_name import TableName

Into = Literal["live", "copy"]
"""Merge into the lake tables themselves, or into new tables with a suffix."""

COPY_SUFFIX = "__backfill"
"""Suffix of a new table: it comes after the name of the lake table."""


@dataclass(frozen=True, slots=True)
class Period:
    """A range of commit times.

    Args:
        since: first time in the range (UTC); None for the oldest stored batch.
        until: first time after the range (UTC); None for now.
    """

    since: datetime | None = None
    until: datetime | None = None

    def __str__(self) -> str:
        """For people."""
        since = f"{self.since:%Y-%m-%d %H:%M:%S}" if self.since is not None else "the oldest batch"
        until = f"{self.until:%Y-%m-%d %H:%M:%S}" if self.until is not None else "now"
        return f"{since} to {until}"


@dataclass(frozen=True, slots=True)
class BackfillRequest:
    """The options of a backfill.

    Args:
        period: commit times.
        tables: patterns; all tables if empty.
        into: the lake tables, or new tables.
        suffix: suffix of the new tables' names.
        batches: where batches were drained again, for hints; empty if none were.
    """

    period: Period
    tables: tuple[str, ...] = ()
    into: Into = "live"
    suffix: str = COPY_SUFFIX
    batches: str = ""


@dataclass(frozen=True, slots=True)
class ArchivedWindow:
    """One window whose batch is stored and acknowledged by the lake.

    Args:
        key: key of its manifest.
        start: first point in the window.
        stop: first point after the window.
    """

    key: str
    start: Point
    stop: Point


@dataclass(frozen=True, slots=True)
class ArchivedSnapshot:
    """A table's snapshot whose chunks are all stored.

    Args:
        keys: keys of the chunks' manifests, in order.
        low: low watermark of the first chunk.
        read_to: greatest high watermark: once everything before it is merged, the rows are consistent as of one position.
    """

    keys: tuple[str, ...]
    low: Point
    read_to: Point


@dataclass(frozen=True, slots=True)
class Backfill:
    """What a backfill merges.

    Args:
        source: name of the source.
        begin: where its first batch begins.
        end: where its last batch ends.
        lake: where the lake cursor is; a running merge may have moved tables further.
        windows: every window that is stored and acknowledged by the drain, in order.
        chosen: how many of them are in the period.
        snapshots: snapshots that were read in the period.
        quarantine: binlog ranges in which a table's changes were not merged.
        from_start: whether the source began at ``begin``, without reading rows.
        held: tables whose snapshots are being read: the lake lacks changes of them, so that nothing can be merged again.
    """

    source: str
    begin: Point
    end: Point
    lake: Point
    windows: tuple[ArchivedWindow, ...]
    chosen: int
    snapshots: tuple[ArchivedSnapshot, ...]
    quarantine: tuple[QuarantineRecord, ...] = ()
    from_start: bool = False
    held: frozenset[TableName] = frozenset()

    def of_lake(self, tables: Iterable[str]) -> list[str]:
        """Return the tables that can be merged into the lake tables: not those whose snapshots are being read."""
        return [table for table in tables if table not in self.held]

    def between(self, low: Point, high: Point) -> tuple[ArchivedWindow, ...]:
        """Return the windows that overlap the range between two points."""
        return tuple(window for window in self.windows if window.stop > low and window.start < high)


@dataclass(frozen=True, slots=True)
class LeftOutWindows:
    """Windows of a table that are ignored, because a later snapshot replaced their rows under another primary key.

    Args:
        table: ``database.table``.
        windows: how many.
        keys: primary keys of their rows; an empty one for rows without a key.
        lake_key: primary key of the lake table; empty without one.
    """

    table: TableName
    windows: int
    keys: tuple[tuple[str, ...], ...]
    lake_key: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RefusedTable:
    """A table that the backfill would refuse, with the error's message and hint."""

    table: TableName
    message: str
    hint: str


@dataclass(frozen=True, slots=True)
class BackfillPreview:
    """What a backfill would merge, for people.

    Args:
        period: what was asked for.
        windows: how many windows are in it.
        snapshots: how many tables have a full snapshot in it.
        tables: tables with changes in these.
        left_out: windows that would be ignored, because their rows have another primary key.
        refused: tables whose rows have several primary keys.
    """

    period: str
    windows: int
    snapshots: int
    tables: tuple[str, ...]
    left_out: tuple[LeftOutWindows, ...] = ()
    refused: tuple[RefusedTable, ...] = ()


@dataclass(frozen=True, slots=True)
class BackfillReport:
    """What a backfill has merged.

    Args:
        source: name of the source.
        period: what was asked for, as text.
        windows: how many windows were in it.
        snapshots: how many tables had a full snapshot in it.
        batches: how many batches were read; some may be from before the period.
        suffix: suffix of the new tables' names; empty where the lake tables themselves were merged into.
        tables: the tables that were merged.
    """

    source: str
    period: str
    windows: int = 0
    snapshots: int = 0
    batches: int = 0
    suffix: str = ""
    tables: tuple[TableCut, ...] = ()

    @property
    def changes(self) -> int:
        """Changes that were applied."""
        return sum(one.changes for one in self.tables)
