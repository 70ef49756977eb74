"""The result of decoding drained windows a second time: which changes are equal, and which differ."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal

from cdc_lib.model.position import Position
from cdc_lib.model.table_name import TableName

BatchDifference = Literal["missing", "extra", "operation", "values"]
"""Only the second decoder has the change; only the batch has it; another operation; another value in some column."""

WINDOW_FIGURES = ("changes", "equal", "differing", "not comparable", "seconds")
"""Names of the figures, in the order of :attr:`WindowCheck.figures`."""


KEPT_CHECKS = 1000
"""Windows that are kept apart as compared; an older one may be compared again."""


@dataclass(frozen=True, slots=True)
class DifferentCell:
    """One cell, as text on both sides; None is NULL."""

    column: str
    decoded: str | None
    stored: str | None


@dataclass(frozen=True, slots=True)
class DifferentChange:
    """One change that differs.

    Args:
        table: ``database.table`` at the source.
        kind: kind of the difference.
        file: number of the binlog file.
        offset: where the event starts in it.
        row: number of the row in its event.
        part: Parquet file, below the folder of the manifest; empty if the batch lacks the change.
        cells: ``values`` and ``operation``: what differs.
    """

    table: TableName
    kind: BatchDifference
    file: int
    offset: int
    row: int
    part: str = ""
    cells: tuple[DifferentCell, ...] = ()


@dataclass(frozen=True, slots=True)
class NotComparable:
    """What the second decoder cannot judge.

    Args:
        table: ``database.table`` at the source.
        column: name of the column; empty for whole changes.
        why: the reason.
        changes: how many changes of the window it concerns.
    """

    table: TableName
    column: str
    why: str
    changes: int


@dataclass(frozen=True, slots=True)
class WindowCheck:
    """One window that was decoded twice.

    Args:
        window: its id.
        start: position of its first byte.
        stop: position of the first byte after it.
        skipped: why the window was not compared; empty if it was.
        archived: why the raw archive was decoded instead of the server's binlog; empty if the server gave the window.
        equal: changes that are equal in each column that can be compared.
        differing: changes that differ, or that one side lacks.
        uncomparable: changes of which the second decoder can compare nothing.
        seconds: duration.
        differences: the first changes that differ.
        not_comparable: what was left out of the comparison.
    """

    window: str
    start: Position
    stop: Position
    skipped: str = ""
    archived: str = ""
    equal: int = 0
    differing: int = 0
    uncomparable: int = 0
    seconds: float = 0.0
    differences: tuple[DifferentChange, ...] = ()
    not_comparable: tuple[NotComparable, ...] = ()

    @property
    def changes(self) -> int:
        """Number of changes that one of the sides has."""
        return self.equal + self.differing + self.uncomparable

    @property
    def compared(self) -> bool:
        """Whether anything is known of it: a change was compared, or it has none."""
        return not self.skipped and bool(self.equal or self.differing or not self.uncomparable)

    @property
    def figures(self) -> tuple[str, ...]:
        """The figures as text: see :data:`WINDOW_FIGURES`."""
        counts = (self.changes, self.equal, self.differing, self.uncomparable)
        return (*(f"{count:,}" for count in counts), f"{self.seconds:.1f}")


@dataclass(frozen=True, slots=True)
class BatchReport:
    """Some windows of a source that were decoded twice.

    Args:
        source: its name.
        decoder: name and version of the second decoder.
        started_at: wall clock (UTC).
        ended_at: wall clock (UTC).
        windows: one check for each window, in the order of the binlog.
    """

    source: str
    decoder: str
    started_at: datetime
    ended_at: datetime
    windows: tuple[WindowCheck, ...]

    @property
    def clean(self) -> bool:
        """Whether no change differs; a window that was not compared counts as clean."""
        return not any(one.differing for one in self.windows)

    @property
    def compared_nothing(self) -> bool:
        """Whether no window was compared, so that nothing is known of any."""
        return not any(one.compared for one in self.windows)


@dataclass(frozen=True, slots=True)
class CheckedWindow:
    """A window that was compared on some day.

    Args:
        window: its id.
        at: wall clock (UTC).
        equal: changes that are equal.
        differing: changes that differ.
        uncomparable: changes of which nothing can be compared.
        skipped: why it was not compared; empty if it was.
    """

    window: str
    at: datetime
    equal: int
    differing: int
    uncomparable: int
    skipped: str


@dataclass(frozen=True, slots=True)
class DailyChecks:
    """The windows that are decoded a second time day by day.

    Args:
        source: name of the source.
        day: the last one (UTC).
        windows: ids of its windows.
        checked: windows that were compared on that day and before, the last ones last.
    """

    source: str
    day: date
    windows: tuple[str, ...]
    checked: tuple[CheckedWindow, ...] = ()

    @property
    def of_day(self) -> tuple[CheckedWindow, ...]:
        """Those of the last day that were compared."""
        return tuple(one for one in self.checked if one.window in self.windows)

    @property
    def to_do(self) -> tuple[str, ...]:
        """The windows of the last day that were not compared, or differ."""
        done = {one.window for one in self.checked if not one.differing}
        return tuple(name for name in self.windows if name not in done)
