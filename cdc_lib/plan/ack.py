"""Moves a cursor over an acknowledged window: pure."""

from __future__ import annotations

from datetime import datetime

from cdc_lib.model.cursor import Cursor
from cdc_lib.model.manifest import Manifest
from cdc_lib.model.window import Window


def over_window(cursor: Cursor, window: Window, manifest: Manifest | None, *, at: datetime, by: str) -> Cursor:
    """Return a cursor moved over a window, with the GTIDs and times of its manifest.

    Args:
        cursor: at the window's start.
        window: the acknowledged window.
        manifest: of its batch; None if it is no longer stored.
        at: now (UTC).
        by: who acknowledges it.
    """
    if manifest is None:
        return cursor.acked(window, at=at, event_time=None, by=by)
    return cursor.acked(
        window, at=at, event_time=manifest.last_time, by=by, gtids=manifest.gtids, last=manifest.last_commit
    )
