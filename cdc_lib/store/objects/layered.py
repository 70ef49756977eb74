"""A store in front of another: writes go to the front store, and missing objects are read from the back store."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import BinaryIO

from cdc_lib.ports import ObjectInfo, ObjectStore, StoredObject, Unfinished
from cdc_lib.store import layout


@dataclass(frozen=True, slots=True)
class LayeredStore:
    """Implements :class:`cdc_lib.ports.ObjectStore` over two others.

    Args:
        front: takes all writes, and is read first.
        back: only read.
        known: by folder of a batch, whether the front store has it.
    """

    front: ObjectStore
    back: ObjectStore
    known: dict[str, bool] = field(default_factory=dict)

    def _of(self, key: str) -> ObjectStore:
        """Return the store that a key is read from: all files of a batch are read from one."""
        if not (folder := layout.batch_folder(key)):
            return self.front if self.front.get(key) is not None else self.back
        if not self.known.get(folder):
            self.known[folder] = self.front.get(layout.manifest_in(folder)) is not None
        return self.front if self.known[folder] else self.back

    def get(self, key: str) -> StoredObject | None:
        """Return an object of the front store, else of the back store."""
        found = self.front.get(key)
        return found if found is not None else self._of(key).get(key)

    def put(self, key: str, data: bytes) -> str:
        """Write to the front store."""
        return self.front.put(key, data)

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """Write to the front store, unless either store has the object."""
        return self.back.get(key) is None and self.front.put_if_absent(key, data)

    def put_if_match(self, key: str, data: bytes, etag: str) -> str | None:
        """Overwrite an object of the front store."""
        return self.front.put_if_match(key, data, etag)

    def open_write(self, key: str) -> AbstractContextManager[BinaryIO]:
        """Stream an object to the front store."""
        return self.front.open_write(key)

    def open_read(self, key: str) -> BinaryIO:
        """Open an object of the store that has its batch."""
        return self._of(key).open_read(key)

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """List the objects of both stores, each key once."""
        last = ""
        for info in heapq.merge(self.front.list(prefix), self.back.list(prefix), key=lambda one: one.key):
            if info.key != last:
                yield info
            last = info.key

    def delete(self, keys: Iterable[str]) -> None:
        """Delete objects of the front store."""
        self.front.delete(keys)

    def unfinished(self, prefix: str, before: datetime) -> Sequence[Unfinished]:
        """Return unfinished writes of the front store."""
        return self.front.unfinished(prefix, before)

    def discard(self, writes: Iterable[Unfinished]) -> None:
        """Remove unfinished writes."""
        self.front.discard(writes)

    def url(self, key: str) -> str:
        """Return the URL of an object in the store that has its batch."""
        return self._of(key).url(key)
