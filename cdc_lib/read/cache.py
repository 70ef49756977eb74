"""What was read of immutable files, kept up to a number of bytes; used by all threads of a lake."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from threading import Lock
from typing import Any

DEFAULT_BYTES = 256 * 1024**2
_PAGES_PART = 4
"""One of so many bytes is for pages: reads of many rows bring many, which must not remove the keys."""


class RecentlyUsed:
    """Keeps the values that were used last.

    Args:
        limit: bytes that the values take together; a single larger value is not kept.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    @property
    def bytes(self) -> int:
        """Bytes that the values take together."""
        return self._bytes

    def find(self, keys: Sequence[Hashable]) -> list[Any]:
        """Return the value of each key; None if it is not kept."""
        found: list[Any] = []
        with self._lock:
            for key in keys:
                if (kept := self._kept.get(key)) is None:
                    found.append(None)
                else:
                    self._kept.move_to_end(key)
                    found.append(kept[0])
        return found

    def keep(self, values: Iterable[tuple[Hashable, Any, int]]) -> None:
        """Keep values.

        Args:
            values: what identifies each, the value, and its size in bytes.
        """
        with self._lock:
            for key, value, size in values:
                if key not in self._kept and size <= self._limit:
                    self._kept[key] = value, size
                    self._bytes += size
            while self._bytes > self._limit:
                _, (_, removed) = self._kept.popitem(last=False)
                self._bytes -= removed


class Cache(RecentlyUsed):
    """Keeps what is loaded.

    Args:
        limit: bytes of all that is kept; a quarter of them is for pages of data files.
    """

    def __init__(self, limit: int = DEFAULT_BYTES) -> None:
        of_pages = limit // _PAGES_PART
        super().__init__(limit - of_pages)
        self.pages = RecentlyUsed(of_pages)

    def get(self, key: Hashable, load: Callable[[], tuple[Any, int]]) -> Any:
        """Return a value; the first call loads it. Two threads may load the same value at once.

        Args:
            key: identifies the value.
            load: returns the value and its size in bytes.
        """
        with self._lock:
            if (kept := self._kept.get(key)) is not None:
                self._kept.move_to_end(key)
                return kept[0]
        value, size = load()
        self.keep([(key, value, size)])
        return value
