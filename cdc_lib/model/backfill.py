"""What is merged again: a time, and what the archived batches hold of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from cdc_lib.model.position import Point
from cdc_lib.model.quarantine import QuarantineRecord
from cdc_lib.model.table_name import TableName

Into = Literal["live", "copy"]
"""The lake tables themselves, or tables beside them."""

COPY_SUFFIX = "__backfill"
"""What is after the name of a lake table beside which a table is made."""


@dataclass(frozen=True, slots=True)
class Period:
    """A stretch of commit times.

    Args:
        since: first moment that belongs to it (UTC); None for all that is stored.
        until: first moment that no longer does (UTC); None for now.
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
    """What a backfill was asked for.

    Args:
        period: commit times.
        tables: patterns; all tables without.
        into: the lake tables, or tables beside them.
        suffix: of the names of the tables beside them.
        batches: where batches were drained again, for hints; empty without.
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
        key: of its manifest.
        start: first point that belongs to it.
        stop: first point that no longer does.
    """

    key: str
    start: Point
    stop: Point


@dataclass(frozen=True, slots=True)
class ArchivedSnapshot:
    """A table's snapshot whose chunks are all stored.

    Args:
        keys: of the chunks' manifests, in order.
        low: low watermark of the first chunk.
        read_to: greatest high watermark: once everything before it is merged, the rows are of one moment.
    """

    keys: tuple[str, ...]
    low: Point
    read_to: Point


@dataclass(frozen=True, slots=True)
class Backfill:
    """What a backfill merges.

    Args:
        source: name of the source.
        begin: where the first batch of it begins.
        end: where the last one ends.
        lake: where the lake cursor is: a merge that is under way may have brought tables further.
        windows: every window that is stored and acknowledged by the drain, in order.
        chosen: how many of them lie in the period.
        snapshots: those that were read in the period.
        quarantine: stretches of which the lake has nothing of a table.
        from_start: whether the source began at ``begin``, without reading rows.
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

    def between(self, low: Point, high: Point) -> tuple[ArchivedWindow, ...]:
        """Return the windows that have something between two points."""
        return tuple(window for window in self.windows if window.stop > low and window.start < high)


@dataclass(frozen=True, slots=True)
class LeftOutWindows:
    """Windows of a table that do not count, because a later snapshot replaced their rows under another primary key.

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
        windows: how many lie in it.
        snapshots: how many tables were read whole in it.
        tables: that have something in them.
        left_out: windows that would not count, because their rows have another primary key.
        refused: tables whose rows have several primary keys.
    """

    period: str
    windows: int
    snapshots: int
    tables: tuple[str, ...]
    left_out: tuple[LeftOutWindows, ...] = ()
    refused: tuple[RefusedTable, ...] = ()
