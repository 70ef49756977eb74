"""A store whose listings are old, as those of a caching gateway: they lack what was written lately. All else is as in the store."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cdc_lib.ports import ObjectInfo, ObjectStore


class OldLists:
    """Forwards every call to a store.

    Args:
        store: the real store.
    """

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._shown: set[str] | None = None

    def grow_old(self) -> None:
        """Let listings lack what is written from now on."""
        self._shown = {info.key for info in self._store.list("")}

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        return (info for info in self._store.list(prefix) if self._shown is None or info.key in self._shown)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)
