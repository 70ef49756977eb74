"""An object store with a kill point before and after each write that matters."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import BinaryIO

from cdc_lib.ports import ObjectInfo, ObjectStore, StoredObject, Unfinished
from cdc_lib.store import layout
from tests.chaos.points import Points


def action_of(key: str) -> str | None:
    """Return the label of a write to a key; None for keys without a kill point."""
    parts = key.split("/")
    kind = parts[1] if len(parts) > 1 else ""
    if kind == "cursors":
        return f"the swap of the {parts[-1].removesuffix('.json')} cursor"
    what = "the manifest" if parts[-1] == layout.MANIFEST else "a part"
    actions = {
        "batches": f"{what} of a window",
        "snapshots": f"{what} of a chunk",
        "cuts": "the cut",
        "erasures": "an erasure",
        "schemas": "a schema version",
    }
    return actions.get(kind)


class LabelledStore:
    """Forwards every call to a store.

    Args:
        store: the real store.
        points: gets a label before and after each write.
        step: name of the step, the prefix of every label.
        jumps: whether the times in listings are wrong.
    """

    def __init__(self, store: ObjectStore, points: Points, step: str, *, jumps: bool = False) -> None:
        self._store = store
        self._points = points
        self._step = step
        self._jumps = jumps

    @contextmanager
    def _around(self, key: str) -> Iterator[None]:
        action = action_of(key)
        if action is None:
            yield
            return
        self._points.at(f"{self._step}: before {action}")
        yield
        self._points.at(f"{self._step}: after {action}")

    def get(self, key: str) -> StoredObject | None:
        return self._store.get(key)

    def put(self, key: str, data: bytes) -> str:
        with self._around(key):
            return self._store.put(key, data)

    def put_if_absent(self, key: str, data: bytes) -> bool:
        with self._around(key):
            return self._store.put_if_absent(key, data)

    def put_if_match(self, key: str, data: bytes, etag: str) -> str | None:
        with self._around(key):
            return self._store.put_if_match(key, data, etag)

    @contextmanager
    def open_write(self, key: str) -> Iterator[BinaryIO]:
        with self._around(key), self._store.open_write(key) as file:
            yield file
            self._points.at(f"{self._step}: in the middle of {action_of(key)}")

    def open_read(self, key: str) -> BinaryIO:
        return self._store.open_read(key)

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        for info in self._store.list(prefix):
            # A job that finds the store's clock wrong writes nothing: that is not what is tried here.
            jumps = self._jumps and not info.key.endswith(f"/{layout.CLOCK}")
            shift = timedelta(seconds=zlib.crc32(info.key.encode()) % 200_000 - 100_000) if jumps else timedelta()
            yield replace(info, modified=info.modified + shift)

    def delete(self, keys: Iterable[str]) -> None:
        deleted = list(keys)
        what = "a manifest" if any(key.endswith(f"/{layout.MANIFEST}") for key in deleted) else "what no manifest names"
        self._points.at(f"{self._step}: before the removal of {what}")
        self._store.delete(deleted)
        self._points.at(f"{self._step}: after the removal of {what}")

    def unfinished(self, prefix: str, before: datetime) -> Sequence[Unfinished]:
        return self._store.unfinished(prefix, before)

    def discard(self, found: Iterable[Unfinished]) -> None:
        self._store.discard(found)

    def url(self, key: str) -> str:
        return self._store.url(key)
