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
from cdc_lib.model.cursor import DRAIN, KEPT_MOVES, Cursor, Move
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
        ConfigError: the document is of another source.
        BatchesGone: batches that the consumer would have to read are no longer stored.
        CursorMoved: somebody moved the cursor at this moment.
    """
    if wanted.source != source:
        raise ConfigError(
            f"the document is the {wanted.consumer} cursor of source {wanted.source}",
            hint=f"Positions of another server mean nothing to {source}.",
            source=source,
        )
    _refuse_gone(store, cursors, wanted)
    held = cursors.load(source, wanted.consumer)
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


def _refuse_gone(store: ObjectStore, cursors: CursorStore, wanted: Cursor) -> None:
    """Refuse to put a consumer where it could not read on. The drain cursor's next plan looks at the server."""
    drain = cursors.load(wanted.source, DRAIN)
    if wanted.consumer == DRAIN or drain is None:
        return
    windows = stored_windows(store, wanted.source)
    for _ in following(windows, standing(wanted), ends(drain), wanted.source):
        pass
    for transaction in wanted.prepared:
        load_manifest(store, transaction.manifest)
