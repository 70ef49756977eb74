"""The batches from a point of the stream up to the drain cursor: in order, without gaps. Pure.

Windows tile the stream, but a rewound drain may have cut it differently. If no window starts at a point, a window that
contains it is read, without its rows before the point.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cdc_lib.errors import BatchesMissing
from cdc_lib.model.position import Point
from cdc_lib.model.stored_window import StoredWindow


@dataclass(frozen=True, slots=True)
class Step:
    """One window to be read.

    Args:
        window: the window.
        floor: rows before this point were read with an earlier window; None to read all rows.
    """

    window: StoredWindow
    floor: Point | None = None


def following(windows: Sequence[StoredWindow], at: Point, ends: Mapping[int, Point], source: str) -> Iterator[Step]:
    """Yield the windows after a point, up to the drain cursor.

    Args:
        windows: all stored windows, in the stream's order.
        at: everything before it was read.
        ends: by epoch, the position that the drain acknowledged: of its own epoch and of earlier ones that it knows. Later
            windows are not read.
        source: name of the source, for messages.

    Raises:
        BatchesMissing: a window in between is not stored.
    """
    end = max(ends.values())
    acked = [window for window in windows if window.start < window.stop <= ends.get(window.start.epoch, end)]
    while at < end:
        step = _next(acked, at)
        if step is None:
            here = [window.stop for window in acked if window.start.epoch == at.epoch]
            if at < max([*here, ends.get(at.epoch, at)]):
                raise _missing(at, source)
            later = [window for window in acked if window.start.epoch > at.epoch]
            if not later:
                return  # the drain moved to another server, and no batch of that is durable yet
            step = Step(min(later, key=lambda window: window.start))
        yield step
        at = step.window.stop


def _next(acked: Sequence[StoredWindow], at: Point) -> Step | None:
    exact = [window for window in acked if window.start == at]
    if exact:
        return Step(max(exact, key=lambda window: window.stop))
    over = [window for window in acked if window.start < at < window.stop and window.start.epoch == at.epoch]
    return Step(max(over, key=lambda window: window.stop), at) if over else None


def earliest(windows: Sequence[StoredWindow], ends: Mapping[int, Point]) -> Point:
    """Return the first point from which the stream is stored without a gap; else the drain cursor's point."""
    first = end = max(ends.values())
    for window in sorted(windows, key=lambda window: window.stop, reverse=True):
        if window.stop > ends.get(window.start.epoch, end):
            continue
        if window.stop.epoch == first.epoch:
            joins = window.stop >= first
        else:
            joins = window.stop == ends.get(window.stop.epoch, window.stop)
        if not joins:
            break
        first = min(first, window.start)
    return first


def _missing(at: Point, source: str) -> BatchesMissing:
    return BatchesMissing(
        "the batch that comes next is no longer stored",
        hint="Drop the consumer and subscribe it again (`cdc consumers drop`), or restore the batches from a backup.",
        source=source,
        epoch=at.epoch,
        file_number=at.file,
        offset=at.offset,
    )
