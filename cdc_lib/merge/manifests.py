"""Reads manifests for a merge, and finds the rows of the XA transactions that their windows commit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from cdc_lib.errors import CorruptBatch
from cdc_lib.merge.plan import StoredBatch
from cdc_lib.model.cursor import Cursor
from cdc_lib.model.position import Point
from cdc_lib.model.stored_window import StoredWindow
from cdc_lib.model.xa import OpenTransaction
from cdc_lib.model.xa_settlement import settle
from cdc_lib.ports import ObjectStore
from cdc_lib.store.manifests import find_manifest


def load_batches(store: ObjectStore, keys: Iterable[str]) -> list[StoredBatch]:
    """Read the manifests of keys, in the given order.

    Raises:
        CorruptBatch: a manifest is missing or not valid.
    """
    batches = []
    for key in keys:
        manifest = find_manifest(store, key)
        if manifest is None:
            raise CorruptBatch(
                "a batch that the merge needs has no manifest",
                hint=_restore_hint(key),
                key=key,
            )
        batches.append(StoredBatch(key, manifest))
    return batches


def _restore_hint(key: str) -> str:
    """Return how to restore a batch: a window is drained again, a snapshot is read again."""
    source, kind, *_ = key.split("/")
    if kind == "batches":
        return f"cdc batches refill {source} writes it again in place; or restore the object from the store's versions."
    return f"cdc snapshot {source} of its table reads it again; or restore the object from the store's versions."


def with_commits(
    store: ObjectStore, batches: Sequence[StoredBatch], before: Sequence[OpenTransaction]
) -> list[StoredBatch]:
    """Add to each batch the transactions that its window commits, and the batches that hold their rows."""
    windows = [(batch.key, batch.manifest) for batch in batches if batch.manifest.window is not None]
    commits = settle(before, windows).commits
    known = {batch.key: batch for batch in batches}
    missing = {commit.manifest for found in commits.values() for commit in found} - known.keys()
    known |= {batch.key: batch for batch in load_batches(store, sorted(missing))}
    return [
        replace(batch, commits=tuple((commit, known[commit.manifest]) for commit in commits.get(batch.key, ())))
        for batch in batches
    ]


def is_of_its_epoch(window: StoredWindow, drain: Cursor) -> bool:
    """Whether a window lies before the end of its epoch: later ones are of an abandoned server, and do not count."""
    end = drain.end_of_epoch(window.start.epoch)
    return end is not None and window.stop <= Point.at(window.start.epoch, end)
