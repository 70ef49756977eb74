"""What was read of immutable files, kept up to a number of bytes; used by all threads of a lake."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any

DEFAULT_BYTES = 256 * 1024**2


class Cache:
    """Keeps the values that were used last.

    Args:
        limit: bytes that the values take together; a single larger value is not kept.
    """

    def __init__(self, limit: int = DEFAULT_BYTES) -> None:
        self._limit = limit
        self._kept: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

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
        with self._lock:
            self._keep(key, value, size)
        return value

    def _keep(self, key: Hashable, value: Any, size: int) -> None:
        if key in self._kept or size > self._limit:
            return
        self._kept[key] = value, size
        self._bytes += size
        while self._bytes > self._limit:
            _, (_, removed) = self._kept.popitem(last=False)
            self._bytes -= removed
