"""Buffers cursors in memory and writes them every few seconds: for consumers that acknowledge many small batches.

If the process dies, acks since the last write are lost, and the next holder gets these batches again: at least once. So
this is for consumers only. The drain and lake cursors are never buffered, because their acks must be durable at once.

A cursor is buffered only while it has a lease. A lease is taken and released in the underlying store, so two processes never
buffer one cursor. Choose the time between two writes well below the lease.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass

from cdc_lib.errors import ConfigError, CursorMoved, StoreUnavailable
from cdc_lib.model.closing import ClosedAtEnd
from cdc_lib.model.cursor import DRAIN, LAKE, Cursor
from cdc_lib.ports import CursorStore
from cdc_lib.store.cursors import is_same, moved, successor

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Held:
    """A buffered cursor: its stored state, its current state, and the writer of the stored state."""

    at_home: Cursor
    cursor: Cursor
    written: str
    lost: CursorMoved | None = None

    @property
    def dirty(self) -> bool:
        return self.lost is None and self.cursor.writer != self.written


class PeriodicCursorStore(ClosedAtEnd):
    """A buffering cursor store in front of another; close it to write the rest.

    Args:
        home: the underlying cursor store.
        every: seconds between two writes.
    """

    def __init__(self, home: CursorStore, every: float = 5.0) -> None:
        self._home = home
        self._every = every
        self._held: dict[tuple[str, str], _Held] = {}
        self._lock = threading.RLock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def load(self, source: str, consumer: str) -> Cursor | None:
        """Return the cursor, or None before its first write."""
        with self._lock:
            held = self._held.get((source, consumer))
            return held.cursor if held is not None and held.lost is None else self._home.load(source, consumer)

    def swap(self, old: Cursor | None, new: Cursor) -> Cursor:
        """Replace ``old`` with ``new``; see :class:`cdc_lib.ports.CursorStore`.

        Raises:
            ConfigError: it is a cursor of the pipeline.
            CursorMoved: the cursor was changed, here or in the underlying store.
        """
        if new.consumer in {DRAIN, LAKE}:
            raise ConfigError(
                f"the {new.consumer} cursor cannot be kept in memory",
                hint="What it says must be true at once, and after a crash. Keep it in the object store.",
                consumer=new.consumer,
            )
        mine = successor(old, new)
        name = (mine.source, mine.consumer)
        with self._lock:
            held = self._held.get(name)
            if held is None:
                return self._through(name, old, mine)
            if held.lost is not None:
                del self._held[name]
                raise held.lost
            if old is None or not is_same(held.cursor, old):
                raise moved(old, mine, held.cursor)
            if _token(mine) != _token(held.cursor):
                return self._through(name, held.at_home, mine)
            held.cursor = mine
        return mine

    def remove(self, cursor: Cursor) -> None:
        """Remove a cursor as it was loaded; see :class:`cdc_lib.ports.CursorStore`."""
        with self._lock:
            held = self._held.get((cursor.source, cursor.consumer))
            if held is not None and not is_same(held.cursor, cursor):
                raise moved(cursor, cursor, held.cursor)
            self._home.remove(held.at_home if held is not None else cursor)
            self._held.pop((cursor.source, cursor.consumer), None)

    def consumers(self, source: str) -> Sequence[str]:
        """Return the names of all consumers of a source, sorted."""
        return self._home.consumers(source)

    def flush(self) -> None:
        """Write the cursors that moved since the last time.

        If another process moved a cursor, the buffered state is lost, and its next swap raises CursorMoved.

        Raises:
            StoreUnavailable: the underlying store does not respond; the next flush retries.
        """
        with self._lock:
            for held in self._held.values():
                if held.dirty:
                    self._write(held)

    def close(self) -> None:
        """Write the rest, and stop buffering.

        Raises:
            StoreUnavailable: the underlying store does not respond: acks since the last write are lost.
            CursorMoved: another process moved a cursor.
        """
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        with self._lock:
            self.flush()
            lost = [held.lost for held in self._held.values() if held.lost is not None]
            self._held.clear()
        if lost:
            raise lost[0]

    def _through(self, name: tuple[str, str], at_home: Cursor | None, mine: Cursor) -> Cursor:
        """Write through at once: a cursor is created, or its lease changes."""
        self._held.pop(name, None)
        stored = self._home.swap(at_home, mine)
        if stored.lease is None:
            return stored
        self._held[name] = _Held(stored, stored, stored.writer)
        if self._thread is None:
            self._thread = threading.Thread(target=self._keep_flushing, name="cursors", daemon=True)
            self._thread.start()
        return stored

    def _keep_flushing(self) -> None:
        while not self._stop.wait(self._every):
            try:
                self.flush()
            except StoreUnavailable as error:
                log.warning("cursors wait in memory, because their home does not answer: %s", error)

    def _write(self, held: _Held) -> None:
        at = held.cursor  # unchanged for its holder: the underlying store counts its own generations
        try:
            held.at_home = self._home.swap(held.at_home, at)
        except CursorMoved as error:
            held.lost = error
            return
        held.written = at.writer


def _token(cursor: Cursor) -> str:
    return cursor.lease.token if cursor.lease is not None else ""
