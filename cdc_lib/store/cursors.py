"""Stores cursors: one small JSON document each, updated by compare-and-swap.

Law 4: :mod:`cdc_lib.model.cursor` defines the valid moves; the stores here let exactly one writer make the next one. There are
no locks and no clocks, so a crashed writer leaves nothing to clean up.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import replace

from cdc_lib.errors import ConfigError, CorruptBatch, CursorMoved, StoreUnavailable
from cdc_lib.model.cursor import Cursor
from cdc_lib.ports import CursorStore, ObjectStore
from cdc_lib.store import layout
from cdc_lib.store.documents import dump, load

_SUFFIX = ".json"


class ObjectCursorStore:
    """Stores each cursor as one object; its etag fences concurrent writers. Works with every object store.

    Args:
        store: the object store.
    """

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def load(self, source: str, consumer: str) -> Cursor | None:
        """Return the cursor, or None before its first write.

        Raises:
            CorruptBatch: the object is not the cursor of this consumer.
        """
        found = self._find(source, consumer)
        return found[0] if found else None

    def swap(self, old: Cursor | None, new: Cursor) -> Cursor:
        """Replace ``old`` with ``new``; see :class:`cdc_lib.ports.CursorStore`."""
        mine = successor(old, new)
        try:
            if self._write(old, mine):
                return mine
        except StoreUnavailable:
            # Perhaps only the response was lost: the writer id in the document shows whether the write was done.
            if self._is_stored(mine):
                return mine
            raise
        held = self.load(mine.source, mine.consumer)
        if held is not None and held.writer == mine.writer:
            return mine
        raise moved(old, mine, held)

    def remove(self, cursor: Cursor) -> None:
        """Remove a cursor as it was loaded; see :class:`cdc_lib.ports.CursorStore`."""
        # Stores have no conditional delete: a new generation fences all processes that loaded the cursor first.
        fenced = self.swap(cursor, cursor)
        self._store.delete([layout.cursor_key(fenced.source, fenced.consumer)])

    def consumers(self, source: str) -> Sequence[str]:
        """Return the names of all consumers of a source, sorted."""
        prefix = layout.cursors_prefix(source)
        names = (info.key.removeprefix(prefix) for info in self._store.list(prefix))
        return [name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX) and "/" not in name]

    def _find(self, source: str, consumer: str) -> tuple[Cursor, str] | None:
        key = layout.cursor_key(source, consumer)
        found = self._store.get(key)
        if found is None:
            return None
        cursor = load(Cursor, found.data, key)
        if (cursor.source, cursor.consumer) != (source, consumer):
            raise CorruptBatch(
                f"{key} is the {cursor.consumer} cursor of source {cursor.source}",
                hint="It was copied here by hand; remove the copy.",
            )
        return cursor, found.etag

    def _write(self, old: Cursor | None, mine: Cursor) -> bool:
        key, data = layout.cursor_key(mine.source, mine.consumer), dump(mine)
        if old is None:
            return self._store.put_if_absent(key, data)
        found = self._find(mine.source, mine.consumer)
        if found is None or not is_same(found[0], old):
            return False
        return self._store.put_if_match(key, data, found[1]) is not None

    def _is_stored(self, mine: Cursor) -> bool:
        try:
            held = self.load(mine.source, mine.consumer)
        except StoreUnavailable:
            return False  # unknown; the caller raises the first failure, which may be retried
        return held is not None and held.writer == mine.writer


def required_cursor(cursors: CursorStore, source: str, consumer: str) -> Cursor:
    """Return a cursor that must exist.

    Raises:
        CursorMoved: nothing was planned yet.
    """
    cursor = cursors.load(source, consumer)
    if cursor is None:
        raise CursorMoved(f"the source has no {consumer} cursor yet", hint="Run plan first.", source=source)
    return cursor


def successor(old: Cursor | None, new: Cursor) -> Cursor:
    """Return the document that replaces ``old`` with ``new``: the next generation, with a new writer id.

    Raises:
        ConfigError: they are of different sources or consumers.
    """
    if old is not None and (old.source, old.consumer) != (new.source, new.consumer):
        raise ConfigError(
            f"the {old.consumer} cursor of source {old.source} cannot become another one",
            hint="Create the other cursor separately.",
            source=new.source,
            consumer=new.consumer,
        )
    return replace(new, generation=old.generation + 1 if old else 1, writer=secrets.token_hex(16))


def is_same(held: Cursor, old: Cursor) -> bool:
    """Whether a stored cursor is the one that was loaded."""
    # The writer too: a cursor that was removed and created again restarts its generations at 1.
    return (held.generation, held.writer) == (old.generation, old.writer)


def moved(old: Cursor | None, mine: Cursor, held: Cursor | None) -> CursorMoved:
    """Return the error of a lost swap, which names the winner."""
    last = held.moves[-1] if held and held.moves else None
    return CursorMoved(
        f"the {mine.consumer} cursor was changed after this task loaded it",
        hint="Another task moved it. Nothing was written here: load it again and plan from there.",
        source=mine.source,
        consumer=mine.consumer,
        expected_generation=old.generation if old else 0,
        found_generation=held.generation if held else 0,
        found_position=str(held.position) if held else None,
        held_by=(last.by if last and last.by else f"writer {held.writer}") if held else "nobody: it was removed",
    )
