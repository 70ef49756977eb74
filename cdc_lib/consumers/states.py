"""The position and lag of each consumer, and the consumers that hold back garbage collection."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta

from cdc_lib.consumers.cursors import acknowledged_to, ends
from cdc_lib.model.cursor import DRAIN
from cdc_lib.model.position import Point
from cdc_lib.model.results import ConsumerState
from cdc_lib.model.stored_window import StoredWindow
from cdc_lib.ports import CursorStore


def states(
    windows: Iterable[StoredWindow], cursors: CursorStore, source: str, keep_for: timedelta
) -> Iterator[ConsumerState]:
    """Yield the state of every consumer, including the lake, sorted by name.

    Args:
        windows: stored windows.
        cursors: the cursor store.
        source: name of the source.
        keep_for: retention of batches.
    """
    now = datetime.now(UTC)
    drain = cursors.load(source, DRAIN)
    known = ends(drain) if drain is not None else {}
    last = max(known.values(), default=Point(0, 0, 0))
    acked = [window for window in windows if window.stop <= known.get(window.start.epoch, last)]
    for name in cursors.consumers(source):
        cursor = cursors.load(source, name)
        if cursor is None or name == DRAIN:
            continue
        pending = [window for window in acked if window.stop > acknowledged_to(cursor)]
        held = cursor.lease is not None and not cursor.lease.is_over(now)
        yield ConsumerState(
            name=name,
            epoch=cursor.epoch,
            position=cursor.position,
            pending_windows=len(pending),
            lag_seconds=(now - min(w.modified for w in pending)).total_seconds() if pending else 0.0,
            holding=sum(window.modified < now - keep_for for window in pending),
            holder=cursor.lease.holder if cursor.lease is not None and held else "",
            moved_at=cursor.moves[-1].at if cursor.moves else None,
        )
