"""Replaces cursors by other documents, reversibly.

A replaced cursor stays in the store under ``cursors/replaced/``; the restored one keeps its list of moves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from cdc_lib.consumers.backlog import following
from cdc_lib.consumers.cursors import acknowledged_to, ends
from cdc_lib.errors import ConfigError
from cdc_lib.model.cursor import DRAIN, KEPT_MOVES, LAKE, Cursor, Move
from cdc_lib.ports import CursorStore, ObjectStore
from cdc_lib.store import documents, layout
from cdc_lib.store.manifests import load_manifest
from cdc_lib.store.windows import known_windows


@dataclass(frozen=True, slots=True)
class Restored:
    """The result of a restore.

    Args:
        cursor: the restored cursor.
        replaced_key: key of the replaced cursor; empty if there was none.
    """

    cursor: Cursor
    replaced_key: str


def restore(
    store: ObjectStore,
    cursors: CursorStore,
    new_cursors: Sequence[Cursor],
    *,
    source: str,
    by: str,
    why: str,
    at: datetime,
) -> list[Restored]:
    """Replace the cursors of some consumers; all documents are checked before the first write.

    The holder of a cursor is fenced: its next write is refused. A lease in a document is ignored.

    Args:
        store: the object store.
        cursors: the cursor store.
        new_cursors: the new cursors, each of another consumer.
        source: name of the source.
        by: who restores.
        why: the reason, for the record.
        at: the time, for the record.

    Returns:
        What was done, the drain cursor last: it must not be before the lake cursor.

    Raises:
        ConfigError: a document is of another source, or a drain cursor is of another epoch or before the lake.
        BatchesMissing: batches that a consumer would have to read are no longer stored.
        CursorMoved: another process moved a cursor; those before it in the result's order are restored.
    """
    in_order = sorted(new_cursors, key=lambda one: one.consumer == DRAIN)
    held = {one.consumer: cursors.load(source, one.consumer) for one in in_order}
    _check(store, cursors, {one.consumer: one for one in in_order}, held, source)
    done = []
    for one in in_order:
        before = held[one.consumer]
        key = keep(store, before) if before is not None else ""
        past = before.moves if before is not None else one.moves
        move = Move(at, "restore", before.position if before is not None else None, one.position, by, why)
        new = replace(one, moves=(*past, move)[-KEPT_MOVES:], lease=None)
        done.append(Restored(cursors.swap(before, new), key))
    return done


def _check(
    store: ObjectStore,
    cursors: CursorStore,
    new: Mapping[str, Cursor],
    held: Mapping[str, Cursor | None],
    source: str,
) -> None:
    """Refuse documents that contradict each other or the cursors that are not replaced."""
    for one in new.values():
        if one.source != source:
            raise ConfigError(
                f"the document is the {one.consumer} cursor of source {one.source}",
                hint=f"Positions of another server mean nothing to {source}.",
                source=source,
            )
    if (back := new.get(DRAIN)) is not None:
        _refuse_drain(held[DRAIN], new.get(LAKE) or cursors.load(source, LAKE), back)
    drain = back or cursors.load(source, DRAIN)
    for one in new.values():
        if one.consumer != DRAIN and drain is not None:
            _refuse_missing(store, drain, one)


def keep(store: ObjectStore, cursor: Cursor) -> str:
    """Store a replaced cursor and return its key."""
    key = layout.replaced_cursor_key(cursor)
    store.put(key, documents.dump(cursor))
    return key


def _refuse_drain(held: Cursor | None, lake: Cursor | None, new: Cursor) -> None:
    """Refuse a drain cursor of another epoch, or one before the lake cursor."""
    if held is not None and held.epoch != new.epoch:
        raise ConfigError(
            f"the document is of epoch {new.epoch}, and the drain cursor is in epoch {held.epoch}",
            hint="The epochs since would be counted twice. Restore a document of this epoch.",
            source=new.source,
        )
    if lake is not None and acknowledged_to(lake) > acknowledged_to(new):
        raise ConfigError(
            f"the lake cursor is at {lake.position}, after the position to which the drain would go back",
            hint="What is drained from there on need not begin where the lake continues. Restore both: name no consumer.",
            source=new.source,
            position=str(new.position),
        )


def _refuse_missing(store: ObjectStore, drain: Cursor, new: Cursor) -> None:
    """Refuse a position from which batches are missing."""
    windows = known_windows(store, new.source, drain, acknowledged_to(new))
    for _ in following(windows, acknowledged_to(new), ends(drain), new.source):
        pass
    for transaction in new.prepared:
        load_manifest(store, transaction.manifest)
