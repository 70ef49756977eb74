"""Cursors in memory, written to their home every few seconds: for consumers that acknowledge many small batches.

What was acknowledged since the last write is lost with the process, and got once more by the next holder: at least once.
So this is for consumers alone. The cursors of the drain and the lake are never kept so: what they say must be true at once.

A cursor is held in memory only while it has a lease, and a lease is taken and let go in the home itself: two processes never
hold one cursor in memory. Choose the time between two writes well below the time of the lease.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from cdc_lib.errors import ConfigError, CursorMoved, StoreUnavailable
from cdc_lib.model.cursor import DRAIN, LAKE, Cursor
from cdc_lib.ports import CursorStore
from cdc_lib.store.cursors import is_same, moved, successor

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Held:
    """A cursor in memory: as its home has it, as it is, and which writer's state of it the home has."""

    at_home: Cursor
    cursor: Cursor
    written: str
    lost: CursorMoved | None = None

    @property
    def dirty(self) -> bool:
        return self.lost is None and self.cursor.writer != self.written


class PeriodicCursorStore:
    """A cursor store before another one; close it to write what is left.

    Args:
        home: where cursors live.
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
        """Put ``new`` in the place of ``old``; see :class:`cdc_lib.ports.CursorStore`.

        Raises:
            ConfigError: it is a cursor of the pipeline.
            CursorMoved: the cursor is another one, here or, since the last write, at home.
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
        """Return the names of all consumers of a source, in the order of the alphabet."""
        return self._home.consumers(source)

    def flush(self) -> None:
        """Write what moved since the last time.

        A cursor that somebody else moved is lost: its next swap says so.

        Raises:
            StoreUnavailable: the home gives no answer; it is tried again the next time.
        """
        with self._lock:
            for held in self._held.values():
                if held.dirty:
                    self._write(held)

    def close(self) -> None:
        """Write what is left, and hold nothing any more.

        Raises:
            StoreUnavailable: the home gives no answer: batches that were acknowledged since the last write come again.
            CursorMoved: somebody else moved a cursor meanwhile.
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

    def __enter__(self) -> Self:
        """Hold cursors while the block runs."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Write what is left."""
        self.close()

    def _through(self, name: tuple[str, str], at_home: Cursor | None, mine: Cursor) -> Cursor:
        """Write to the home at once: a cursor begins, or its lease changes hands."""
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
        at = held.cursor  # stays as its holder knows it: the home counts generations of its own
        try:
            held.at_home = self._home.swap(held.at_home, at)
        except CursorMoved as error:
            held.lost = error
            return
        held.written = at.writer


def _token(cursor: Cursor) -> str:
    return cursor.lease.token if cursor.lease is not None else ""
