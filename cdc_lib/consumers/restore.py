"""Putting another document in the place of a cursor, so that it can be taken back.

The cursor that is replaced stays in the store under ``cursors/replaced/``; the restored one goes on with its moves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from cdc_lib.consumers.backlog import following
from cdc_lib.consumers.cursors import ends, standing
from cdc_lib.consumers.loading import load_manifest
from cdc_lib.errors import ConfigError
from cdc_lib.model.cursor import DRAIN, KEPT_MOVES, LAKE, Cursor, Move
from cdc_lib.ports import CursorStore, ObjectStore
from cdc_lib.store import documents, layout
from cdc_lib.store.windows import stored_windows


@dataclass(frozen=True, slots=True)
class Restored:
    """What a restore did.

    Args:
        cursor: as it stands now.
        replaced_key: where the one before it lies; empty when there was none.
    """

    cursor: Cursor
    replaced_key: str


def restore(
    store: ObjectStore, cursors: CursorStore, wanted: Cursor, *, source: str, by: str, why: str, at: datetime
) -> Restored:
    """Put a cursor document in the place of the one of its name.

    Whoever holds the cursor is fenced: its next write is refused. A lease in the document counts for nothing.

    Args:
        store: where replaced documents go.
        cursors: where cursors lie.
        wanted: the document.
        source: whose cursor is restored.
        by: who restores.
        why: the reason, for the record.
        at: the time, for the record.

    Raises:
        ConfigError: the document is of another source, or a drain cursor's of another epoch or before the lake.
        BatchesGone: batches that the consumer would have to read are no longer stored.
        CursorMoved: somebody moved the cursor at this moment.
    """
    if wanted.source != source:
        raise ConfigError(
            f"the document is the {wanted.consumer} cursor of source {wanted.source}",
            hint=f"Positions of another server mean nothing to {source}.",
            source=source,
        )
    held = cursors.load(source, wanted.consumer)
    if wanted.consumer == DRAIN:
        _refuse_drain(held, cursors.load(source, LAKE), wanted)
    else:
        _refuse_gone(store, cursors, wanted)
    key = keep(store, held) if held is not None else ""
    past = held.moves if held is not None else wanted.moves
    move = Move(at, "restore", held.position if held is not None else None, wanted.position, by, why)
    new = replace(wanted, moves=(*past, move)[-KEPT_MOVES:], lease=None)
    return Restored(cursors.swap(held, new), key)


def keep(store: ObjectStore, cursor: Cursor) -> str:
    """Write a cursor document where replaced ones lie and return its key."""
    key = layout.replaced_cursor_key(cursor)
    store.put(key, documents.dump(cursor))
    return key


def _refuse_drain(held: Cursor | None, lake: Cursor | None, wanted: Cursor) -> None:
    """Refuse to put the drain where its windows would mean something else, or would pass the lake by."""
    if held is not None and held.epoch != wanted.epoch:
        raise ConfigError(
            f"the document is of epoch {wanted.epoch}, and the drain cursor stands in epoch {held.epoch}",
            hint="The epochs since would be counted twice. Restore a document of this epoch.",
            source=wanted.source,
        )
    if lake is not None and standing(lake) > standing(wanted):
        raise ConfigError(
            f"the lake cursor stands at {lake.position}, behind the place to which the drain would go back",
            hint="What is drained from there on need not begin where the lake goes on. Restore both: name no consumer.",
            source=wanted.source,
            position=str(wanted.position),
        )


def _refuse_gone(store: ObjectStore, cursors: CursorStore, wanted: Cursor) -> None:
    """Refuse to put a consumer where it could not read on."""
    drain = cursors.load(wanted.source, DRAIN)
    if drain is None:
        return
    windows = stored_windows(store, wanted.source)
    for _ in following(windows, standing(wanted), ends(drain), wanted.source):
        pass
    for transaction in wanted.prepared:
        load_manifest(store, transaction.manifest)
