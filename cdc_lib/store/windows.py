"""The batches of the binlog that are stored, by their keys alone: no manifest is opened to know its bounds."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from cdc_lib.model.lake import Point
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
