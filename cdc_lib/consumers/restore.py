"""Putting other documents in the place of cursors, so that it can be taken back.

A cursor that is replaced stays in the store under ``cursors/replaced/``; the restored one continues with its moves.
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
from cdc_lib.store.windows import stored_windows


@dataclass(frozen=True, slots=True)
class Restored:
    """What a restore did.

    Args:
        cursor: as it is now.
        replaced_key: where the one before it lies; empty when there was none.
    """

    cursor: Cursor
    replaced_key: str


def restore(
    store: ObjectStore,
    cursors: CursorStore,
    wanted: Sequence[Cursor],
    *,
    source: str,
    by: str,
    why: str,
    at: datetime,
) -> list[Restored]:
    """Put cursor documents in the place of those of their names; every one of them is checked before any is written.

    Whoever holds the cursor is fenced: its next write is refused. A lease in the document counts for nothing.

    Args:
        store: where replaced documents go.
        cursors: where cursors lie.
        wanted: the documents, each of another consumer.
        source: whose cursors are restored.
        by: who restores.
        why: the reason, for the record.
        at: the time, for the record.

    Returns:
        What was done, the drain's cursor last: it must not go back after the lake.

    Raises:
        ConfigError: a document is of another source, or a drain cursor's of another epoch or before the lake.
        BatchesMissing: batches that a consumer would have to read are no longer stored.
        CursorMoved: somebody moved a cursor at this moment; those before it in the result's order are restored.
    """
    in_order = sorted(wanted, key=lambda one: one.consumer == DRAIN)
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
    wanted: Mapping[str, Cursor],
    held: Mapping[str, Cursor | None],
    source: str,
) -> None:
    """Refuse documents that cannot stand beside each other and beside the cursors that stay."""
    for one in wanted.values():
        if one.source != source:
            raise ConfigError(
                f"the document is the {one.consumer} cursor of source {one.source}",
                hint=f"Positions of another server mean nothing to {source}.",
                source=source,
            )
    if (back := wanted.get(DRAIN)) is not None:
        _refuse_drain(held[DRAIN], wanted.get(LAKE) or cursors.load(source, LAKE), back)
    drain = back or cursors.load(source, DRAIN)
    for one in wanted.values():
        if one.consumer != DRAIN and drain is not None:
            _refuse_gone(store, drain, one)


def keep(store: ObjectStore, cursor: Cursor) -> str:
    """Write a cursor document where replaced ones lie and return its key."""
    key = layout.replaced_cursor_key(cursor)
    store.put(key, documents.dump(cursor))
    return key


def _refuse_drain(held: Cursor | None, lake: Cursor | None, wanted: Cursor) -> None:
    """Refuse to put the drain where its windows would mean something else, or would pass the lake by."""
    if held is not None and held.epoch != wanted.epoch:
        raise ConfigError(
            f"the document is of epoch {wanted.epoch}, and the drain cursor is in epoch {held.epoch}",
            hint="The epochs since would be counted twice. Restore a document of this epoch.",
            source=wanted.source,
        )
    if lake is not None and acknowledged_to(lake) > acknowledged_to(wanted):
        raise ConfigError(
            f"the lake cursor is at {lake.position}, after the position to which the drain would go back",
            hint="What is drained from there on need not begin where the lake continues. Restore both: name no consumer.",
            source=wanted.source,
            position=str(wanted.position),
        )


def _refuse_gone(store: ObjectStore, drain: Cursor, wanted: Cursor) -> None:
    """Refuse to put a consumer where it could not read on."""
    windows = stored_windows(store, wanted.source)
    for _ in following(windows, acknowledged_to(wanted), ends(drain), wanted.source):
        pass
    for transaction in wanted.prepared:
        load_manifest(store, transaction.manifest)
