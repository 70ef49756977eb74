"""The stored binlog batches, from their keys alone: no manifest is read for its bounds.

A listing may be old (:func:`known_windows`), so nothing is missing that was not looked for by its key.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from cdc_lib.model.cursor import Cursor
from cdc_lib.model.position import Point
from cdc_lib.model.stored_window import StoredWindow
from cdc_lib.ports import ObjectInfo, ObjectStore
from cdc_lib.store import layout

_LISTED_ONE_BY_ONE = 32
"""So many binlog files are asked for one by one; of more, the whole epoch is listed."""

_ID = re.compile(r"^(\d{6,})-(\d{6,})\.(\d{12,})-(\d{6,})\.(\d{12,})$")


def stored_windows(store: ObjectStore, source: str, epoch: int | None = None) -> list[StoredWindow]:
    """Return every window of a source, or of one epoch, whose manifest is stored, in the stream's order."""
    return windows_among(store.list(layout.batches_prefix(source, epoch)))


def known_windows(
    store: ObjectStore, source: str, drain: Cursor | None, since: Point, epoch: int | None = None
) -> list[StoredWindow]:
    """Return every stored window of a source, or of one epoch, whose manifest is stored, in the stream's order.

    Args:
        store: where they are.
        source: name of the source.
        drain: the drain cursor; None if it is lost.
        since: from here on, windows that the drain acknowledged are looked for by their keys if the listing lacks them.
        epoch: of the windows; None for all.
    """
    listed = stored_windows(store, source, epoch)
    return listed if drain is None else _looked_for(store, drain, since, listed)


def _looked_for(store: ObjectStore, drain: Cursor, since: Point, listed: list[StoredWindow]) -> list[StoredWindow]:
    """Return listed windows with those that the listing lacks: some gateways list new objects late."""
    known = {one.key for one in listed}
    found = [
        StoredWindow(key, start, Point.at(window.epoch, window.stop), at)
        for window, at in drain.acked_windows
        if (start := Point.at(window.epoch, window.start)) >= since
        and (key := layout.manifest_key(window)) not in known
        and store.get(key) is not None
    ]
    return sorted([*listed, *found], key=lambda window: (window.start, window.stop)) if found else listed


def windows_after(store: ObjectStore, drain: Cursor, at: Point, end: Point) -> list[StoredWindow]:
    """Return the stored windows that start between two points of the stream, in its order; only their files are listed.

    Args:
        store: where they are.
        drain: the drain cursor, see :func:`known_windows`.
        at: the first of them starts here.
        end: none starts here or later.
    """
    if at.epoch != end.epoch or end.file - at.file >= _LISTED_ONE_BY_ONE:
        found = stored_windows(store, drain.source, at.epoch if at.epoch == end.epoch else None)
    else:
        folder = layout.batches_prefix(drain.source, at.epoch)
        begins = (f"{folder}{at.epoch:06d}-{file:06d}." for file in range(at.file, end.file + 1))
        found = windows_among(info for prefix in begins for info in store.list(prefix))
    return [one for one in _looked_for(store, drain, at, found) if at <= one.start < end]


def windows_among(objects: Iterable[ObjectInfo]) -> list[StoredWindow]:
    """Return the windows of the manifests in a list of objects, in the stream's order."""
    found = (
        StoredWindow(info.key, *bounds, info.modified)
        for info in objects
        if info.key.endswith(f"/{layout.MANIFEST}") and (bounds := bounds_of(info.key.split("/")[-2])) is not None
    )
    return sorted(found, key=lambda window: (window.start, window.stop))


def archived_windows(objects: Iterable[ObjectInfo]) -> list[StoredWindow]:
    """Return the windows whose raw events are in a list of objects, with or without a manifest, in the stream's order."""
    ending = f"/{layout.raw_events_path()}"
    found = (
        StoredWindow(layout.manifest_in(folder), *bounds, info.modified)
        for info in objects
        if info.key.endswith(ending)
        and (bounds := bounds_of((folder := info.key.removesuffix(ending)).split("/")[-1])) is not None
    )
    return sorted(found, key=lambda window: (window.start, window.stop))


def bounds_of(window_id: str) -> tuple[Point, Point] | None:
    """Return start and stop of a window from its id; None if it is not a window id."""
    match = _ID.fullmatch(window_id)
    if match is None:
        return None
    epoch, *numbers = (int(text) for text in match.groups())
    return Point(epoch, numbers[0], numbers[1]), Point(epoch, numbers[2], numbers[3])


@dataclass(frozen=True, slots=True)
class Chain:
    """Windows that follow each other.

    Args:
        windows: the windows, in order.
        gap: the first gap after them: its start, and where the next window starts; None without one.
    """

    windows: tuple[StoredWindow, ...]
    gap: tuple[Point, Point] | None


def chained(windows: Sequence[StoredWindow], start: Point, end: Point) -> Chain:
    """Return the windows from one point to another, up to the first gap. Pure.

    After the restore of a cursor windows may overlap, because the stream was cut differently: then the chain that reaches
    further is chosen.

    Args:
        windows: stored windows of one epoch.
        start: start of the first window.
        end: stop of the last window.
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
