"""The batches of the binlog that are stored, by their keys alone: no manifest is opened to know its bounds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from cdc_lib.model.position import Point
from cdc_lib.ports import ObjectInfo, ObjectStore
from cdc_lib.store import layout

_ID = re.compile(r"^(\d{6,})-(\d{6,})\.(\d{12,})-(\d{6,})\.(\d{12,})$")


@dataclass(frozen=True, slots=True)
class StoredWindow:
    """One window whose manifest is stored.

    Args:
        key: of the manifest.
        start: first point that belongs to it.
        stop: first point that no longer does.
        modified: when the manifest was written, by the store's clock.
    """

    key: str
    start: Point
    stop: Point
    modified: datetime


def stored_windows(store: ObjectStore, source: str, epoch: int | None = None) -> list[StoredWindow]:
    """Return every window of a source, or of one epoch, whose manifest is stored, in the stream's order."""
    return windows_among(store.list(layout.batches_prefix(source, epoch)))


def windows_among(objects: Iterable[ObjectInfo]) -> list[StoredWindow]:
    """Return the windows whose manifests are among some objects, in the stream's order."""
    found = (
        StoredWindow(info.key, *bounds, info.modified)
        for info in objects
        if info.key.endswith(f"/{layout.MANIFEST}") and (bounds := bounds_of(info.key.split("/")[-2])) is not None
    )
    return sorted(found, key=lambda window: (window.start, window.stop))


def bounds_of(window_id: str) -> tuple[Point, Point] | None:
    """Return where a window starts and stops, as its id tells it; None when it is no window's id."""
    match = _ID.fullmatch(window_id)
    if match is None:
        return None
    epoch, *numbers = (int(text) for text in match.groups())
    return Point(epoch, numbers[0], numbers[1]), Point(epoch, numbers[2], numbers[3])


@dataclass(frozen=True, slots=True)
class Chain:
    """Windows that follow each other.

    Args:
        windows: in order.
        gap: what is missing after them: its first point, and where the next window starts; None without one.
    """

    windows: tuple[StoredWindow, ...]
    gap: tuple[Point, Point] | None


def chained(windows: Sequence[StoredWindow], start: Point, end: Point) -> Chain:
    """Return the windows that lead from a point to another, up to the first place where one is missing; pure.

    A cursor that was restored may have cut the stream otherwise than before, so that windows overlap: those are taken that
    lead on.

    Args:
        windows: that are stored, of one epoch.
        start: where the first one is to start.
        end: where the last one is to stop.
    """
    inside = sorted(
        (one for one in windows if start <= one.start < one.stop <= end), key=lambda one: (one.start, one.stop)
    )
    leads: dict[Point, StoredWindow] = {}
    for one in reversed(inside):
        if one.stop == end or one.stop in leads:
            leads.setdefault(one.start, one)
    if start == end or start in leads:
        return Chain(tuple(_forward(leads, start, end)), None)
    came: dict[Point, StoredWindow] = {}
    for one in inside:
        if one.start == start or one.start in came:
            came.setdefault(one.stop, one)
    last = max(came, default=start)
    after = min((one.start for one in inside if one.start > last), default=end)
    return Chain(tuple(reversed(list(_backward(came, last, start)))), (last, after))


def _forward(leads: dict[Point, StoredWindow], at: Point, end: Point) -> Iterator[StoredWindow]:
    while at != end:
        yield leads[at]
        at = leads[at].stop


def _backward(came: dict[Point, StoredWindow], at: Point, start: Point) -> Iterator[StoredWindow]:
    while at != start:
        yield came[at]
        at = came[at].start
