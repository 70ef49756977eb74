"""A cursor store in memory."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from cdc_lib.model.cursor import Cursor
from cdc_lib.store import layout
from cdc_lib.store.cursors import is_same, moved, successor


class MemoryCursorStore:
    """A cursor store of one test, in the memory of its process."""

    def __init__(self) -> None:
        self._cursors: dict[tuple[str, str], Cursor] = {}
        self._lock = threading.Lock()

    def load(self, source: str, consumer: str) -> Cursor | None:
        """Return the cursor, or None before its first write."""
        layout.cursor_key(source, consumer)  # refuses the names that the other stores refuse
        with self._lock:
            return self._cursors.get((source, consumer))

    def swap(self, old: Cursor | None, new: Cursor) -> Cursor:
        """Replace ``old`` by ``new``; see :class:`cdc_lib.ports.CursorStore`."""
        mine = successor(old, new)
        name = (mine.source, mine.consumer)
        layout.cursor_key(*name)
        with self._lock:
            held = self._cursors.get(name)
            if (held is None) != (old is None) or (held and old and not is_same(held, old)):
                raise moved(old, mine, held)
            self._cursors[name] = mine
        return mine

    def remove(self, cursor: Cursor) -> None:
        """Remove a cursor as it was loaded; see :class:`cdc_lib.ports.CursorStore`."""
        name = (cursor.source, cursor.consumer)
        layout.cursor_key(*name)
        with self._lock:
            held = self._cursors.get(name)
            if held is None or not is_same(held, cursor):
                raise moved(cursor, cursor, held)
            del self._cursors[name]

    def consumers(self, source: str) -> Sequence[str]:
        """Return the names of all consumers of a source, sorted."""
        with self._lock:
            return sorted(consumer for held_source, consumer in self._cursors if held_source == source)
