"""Which stored windows and snapshots belong to a period of commit times, and whether all are still stored: pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from cdc_lib.errors import BatchesMissing
from cdc_lib.model.backfill import ArchivedWindow, Period
from cdc_lib.model.manifest import Manifest
from cdc_lib.model.position import Point


@dataclass(frozen=True, slots=True)
class TimedWindow:
    """A stored window with the commit times of its first and last event; None if it is empty."""

    window: ArchivedWindow
    first: datetime | None
    last: datetime | None

    def lies_in(self, period: Period) -> bool:
        """Whether it may have an event in the period."""
        if self.first is None or self.last is None:
            return False
        # A clock that was set back makes the last event the older one.
        oldest, newest = min(self.first, self.last), max(self.first, self.last)
        return (period.since is None or newest >= period.since) and (period.until is None or oldest < period.until)


def chosen(windows: Sequence[TimedWindow], period: Period) -> Sequence[TimedWindow]:
    """Return the windows from the first that has an event in the period to the last one, in the stream's order."""
    indexes = [index for index, window in enumerate(windows) if window.lies_in(period)]
    return windows[indexes[0] : indexes[-1] + 1] if indexes else ()


def refuse_removed(period: Period, oldest: datetime | None, *, from_the_start: bool, source: str) -> None:
    """Refuse a period that begins before the oldest batch, unless that is the first batch of the source.

    Args:
        period: the requested period.
        oldest: commit time of the oldest stored event, or read time of the oldest stored row; None without one.
        from_the_start: whether no batch was ever removed.
        source: name of the source.

    Raises:
        BatchesMissing: a part of the period may have been removed.
    """
    if from_the_start or period.since is None or (oldest is not None and oldest <= period.since):
        return
    raise BatchesMissing(
        f"a part of {period} is no longer stored: "
        + (f"the oldest batch begins at {oldest:%Y-%m-%d %H:%M:%S}" if oldest is not None else "there is no batch"),
        hint="Use a later --since. If the server's binlog still has the period, cdc batches replay drains it again into "
        "another store; else cdc snapshot reads the table again. store.keep_batches_for sets how long batches are kept.",
        source=source,
    )


def refuse_gaps(windows: Iterable[ArchivedWindow], low: Point, high: Point, source: str) -> None:
    """Refuse windows that do not hold everything between two points.

    Raises:
        BatchesMissing: a batch between them is not stored.
    """
    covered = low
    for window in windows:
        if window.start > covered and window.start.epoch == covered.epoch:
            break
        covered = max(covered, window.stop)
    else:
        if covered >= high:
            return
    raise BatchesMissing(
        f"the batches after {tuple(covered)} are no longer stored, and what is merged again must reach {tuple(high)}",
        hint="cdc batches replay reads them again where the server's binlog still has them; else cdc snapshot reads the table again.",
        source=source,
    )


def times_of(windows: Iterable[tuple[ArchivedWindow, Manifest]]) -> tuple[TimedWindow, ...]:
    """Return windows with the commit times from their manifests."""
    return tuple(TimedWindow(window, manifest.first_time, manifest.last_time) for window, manifest in windows)
