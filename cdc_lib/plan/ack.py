"""A cursor goes over a window that is done: pure."""

from __future__ import annotations

from datetime import datetime

from cdc_lib.model.cursor import Cursor
from cdc_lib.model.gtid import WindowGtids
from cdc_lib.model.manifest import Manifest
from cdc_lib.model.window import Window


def over_window(cursor: Cursor, window: Window, manifest: Manifest | None, *, at: datetime, by: str) -> Cursor:
    """Return a cursor after a window, with what its manifest tells.

    Args:
        cursor: stands where the window starts.
        window: what is done.
        manifest: of its batch; None when it is no longer stored.
        at: now (UTC).
        by: who acknowledges it.
    """
    if manifest is None:
        return cursor.acked(window, at=at, event_time=None, by=by)
    gtids = WindowGtids(manifest.gtid_set, complete=bool(manifest.gtid_set and manifest.gtid_last))
    return cursor.acked(window, at=at, event_time=manifest.last_time, by=by, gtids=gtids, last=manifest.last_commit)
