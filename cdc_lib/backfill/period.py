"""Which stored windows and snapshots a period of commit times takes, and whether all of them are still there: pure."""

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
    """A stored window with the commit times of its first and last event; None where it is empty."""

    window: ArchivedWindow
    first: datetime | None
    last: datetime | None

    def lies_in(self, period: Period) -> bool:
        """Whether some event of it may."""
        if self.first is None or self.last is None:
            return False
        # A clock that was set back makes the last event the older one.
        oldest, newest = min(self.first, self.last), max(self.first, self.last)
        return (period.since is None or newest >= period.since) and (period.until is None or oldest < period.until)


def chosen(windows: Sequence[TimedWindow], period: Period) -> Sequence[TimedWindow]:
    """Return the windows from the first that has an event in the period to the last one, in the stream's order."""
    places = [place for place, window in enumerate(windows) if window.lies_in(period)]
    return windows[places[0] : places[-1] + 1] if places else ()


def refuse_gone(period: Period, oldest: datetime | None, *, from_the_start: bool, source: str) -> None:
    """Refuse a period that begins before the oldest batch, unless that is the source's first.

    Args:
        period: what is asked for.
        oldest: when the first event was committed, or the first row read, of all that is stored; None when nothing is.
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
        hint="Take a later --since. What the server's binlog still has, cdc batches replay reads into a place of its own; "
        "else cdc snapshot reads the table again. store.keep_batches_for says how long batches stay.",
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
    """Put the times of manifests beside their windows."""
    return tuple(TimedWindow(window, manifest.first_time, manifest.last_time) for window, manifest in windows)
