"""Cursors as they were a moment ago, for the drain of many snapshots: their cursor holds all of them, and each would load it.

What a drain learns from its cursor may be out of date at any time, because another task may move it right after it was loaded. Its
batches are safe by their keys and their conditional writes, so it may be some seconds older. No plan and no ack uses this.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from cdc_lib.model.cursor import Cursor
from cdc_lib.ports import CursorStore

SECONDS = 10.0
"""For how long a loaded cursor counts."""


class RecentCursorStore:
    """A cursor store that loads a cursor again only after some seconds; safe to share between threads.

    Args:
        home: the underlying cursor store.
        seconds: for how long a loaded cursor counts.
        clock: returns seconds that only grow.
    """

    def __init__(
        self, home: CursorStore, seconds: float = SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._home = home
        self._seconds = seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._loaded: dict[tuple[str, str], tuple[float, Cursor]] = {}

    def load(self, source: str, consumer: str) -> Cursor | None:
        """Return the cursor as it was at most some seconds ago; a missing one is asked for each time."""
        key = source, consumer
        with self._lock:
            if (known := self._loaded.get(key)) is not None and self._clock() < known[0] + self._seconds:
                return known[1]
            asked, cursor = self._clock(), self._home.load(source, consumer)
            if cursor is not None:
                self._loaded[key] = asked, cursor
            return cursor

    def swap(self, old: Cursor | None, new: Cursor) -> Cursor:
        """Replace ``old`` with ``new``; see :class:`cdc_lib.ports.CursorStore`."""
        with self._lock:
            self._loaded.pop((new.source, new.consumer), None)
            return self._home.swap(old, new)

    def remove(self, cursor: Cursor) -> None:
        """Remove a cursor as it was loaded; see :class:`cdc_lib.ports.CursorStore`."""
        with self._lock:
            self._loaded.pop((cursor.source, cursor.consumer), None)
            self._home.remove(cursor)

    def consumers(self, source: str) -> Sequence[str]:
        """Return the names of all consumers of a source, sorted."""
        return self._home.consumers(source)
