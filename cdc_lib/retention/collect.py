"""Collecting garbage: batches that nobody needs any more, and what no manifest names.

A batch goes manifest first: what is left of it when the collector dies in between is what no manifest names, and goes with
the next collection. Nothing here holds a lock: a consumer that comes while batches go finds a gap and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta

from cdc_lib.model.batch import Manifest
from cdc_lib.model.cursor import Cursor
from cdc_lib.model.lake import Point
from cdc_lib.model.window import SnapshotTask
from cdc_lib.ports import CursorStore, ObjectStore
from cdc_lib.retention.decide import Facts, Verdict, ended_snapshots, judge_windows, laggards
from cdc_lib.retention.listing import Listing, list_batches
from cdc_lib.retention.removal import Collection, Removal, removal
from cdc_lib.retention.unnamed import is_still_unnamed, unnamed
from cdc_lib.store import documents, layout

ORPHANS_STAY = timedelta(days=1)
"""How old something that no manifest names must be: a drain may be about to name it."""


def plan_collection(
    store: ObjectStore, cursors: CursorStore, source: str, keep_for: timedelta, now: datetime
) -> Collection:
    """Decide what may go; nothing is removed.

    Args:
        store: where batches lie.
        cursors: where cursors lie.
        source: name of the source.
        keep_for: how long a batch stays after it was written, whoever has read it.
        now: the time.

    Raises:
        CorruptBatch: a manifest cannot be read: what it names is not known then.
        StoreUnavailable: the store gives no answer.
    """
    # Listed before the cursors are read: what is written in between is not among it.
    listing = list_batches(store, source)
    loaded = (cursors.load(source, name) for name in cursors.consumers(source))
    known = [cursor for cursor in loaded if cursor is not None]
    manifests = {window.key: listing.manifests[_folder(window.key)] for window in listing.windows}
    facts = Facts(listing.windows, manifests, known, _watermark(store), now - keep_for)
    verdicts = judge_windows(facts)
    windows = [_folder(verdict.window.key) for verdict in verdicts if not verdict.why]
    removals = [removal(folder, "window", listing.folders[folder]) for folder in windows]
    removals += _chunks(listing, known, facts.older_than)
    going = {one.folder for one in removals}
    removals += unnamed(listing, known, going, now - ORPHANS_STAY)
    unfinished = store.unfinished(f"{source}/", now - ORPHANS_STAY)
    holding = laggards(facts.windows, known, facts.older_than)
    return Collection(source, tuple(removals), tuple(unfinished), _reasons(verdicts), holding)


def carry_out(store: ObjectStore, planned: Collection) -> None:
    """Remove what was planned: the oldest first, so that what is left is the end of the stream.

    Raises:
        StoreError: something cannot be removed; what is left goes with the next collection.
    """
    for one in planned.removals:
        manifest = layout.manifest_in(one.folder)
        if manifest in one.keys:
            store.delete([manifest])
        elif not is_still_unnamed(store, one):
            continue
        store.delete(key for key in one.keys if key != manifest)
    store.discard(planned.unfinished)


def _folder(manifest_key: str) -> str:
    return manifest_key.rpartition("/")[0]


def _watermark(store: ObjectStore) -> Callable[[SnapshotTask, int], Point | None]:
    def of_chunk(task: SnapshotTask, number: int) -> Point | None:
        key = layout.chunk_manifest_key(task, number)
        found = store.get(key)
        manifest = documents.load(Manifest, found.data, key) if found is not None else None
        if manifest is None or manifest.chunk is None:
            return None
        return Point.at(manifest.epoch, manifest.chunk.low_watermark)

    return of_chunk


def _chunks(listing: Listing, cursors: Sequence[Cursor], older_than: datetime) -> Iterator[Removal]:
    """Yield the chunks of snapshots that are merged whole, or given up, and old enough."""
    ended = ended_snapshots(cursors)
    for folder, manifest in sorted(listing.manifests.items()):
        chunk, objects = manifest.chunk, listing.folders[folder]
        if chunk is None or f"snapshot-{chunk.snapshot_id}-{chunk.table}" not in ended:
            continue
        if max(info.modified for info in objects) < older_than:
            yield removal(folder, "snapshot chunk", objects)


def _reasons(verdicts: Sequence[Verdict]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for verdict in verdicts:
        if verdict.why:
            counts[verdict.why] = counts.get(verdict.why, 0) + 1
    return counts
