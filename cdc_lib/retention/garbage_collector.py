"""Garbage collection: removes batches that are no longer needed, and files that no manifest names.

The manifest of a batch is removed first. If the collector dies after that, no manifest names the other files, and the next
collection removes them. There are no locks: a consumer that subscribes meanwhile may find a gap and raises an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial

from cdc_lib.model.cursor import DRAIN, LAKE, Cursor
from cdc_lib.model.position import Point
from cdc_lib.model.window import SnapshotTask
from cdc_lib.ports import CursorStore, ObjectStore
from cdc_lib.retention.listing import Listing, list_batches
from cdc_lib.retention.orphans import is_still_unnamed, unnamed
from cdc_lib.retention.policy import (
    RetentionDecision,
    RetentionFacts,
    ended_snapshots,
    judge_windows,
    laggards,
    needed_from,
)
from cdc_lib.retention.pruning import pruned_drain, pruned_lake
from cdc_lib.retention.removal import Collection, Removal, removal
from cdc_lib.store import layout
from cdc_lib.store.clock import refuse_other_clock
from cdc_lib.store.cuts import KEPT_CUTS, position_of
from cdc_lib.store.manifests import find_manifest
from cdc_lib.store.windows import stored_windows

ORPHANS_STAY = timedelta(days=1)
"""Minimum age of a file that no manifest names: a running drain may be about to write its manifest."""


def plan_collection(
    store: ObjectStore,
    cursors: CursorStore,
    source: str,
    keep_for: timedelta,
    now: datetime,
    cuts_for: timedelta = timedelta(),
) -> Collection:
    """Decide what can be removed; nothing is removed.

    Args:
        store: the object store.
        cursors: the cursor store.
        source: name of the source.
        keep_for: minimum age of a batch.
        now: current time.
        cuts_for: minimum age of a cut; the last :data:`KEPT_CUTS` are always kept.

    Raises:
        CorruptBatch: a manifest cannot be read, so its files are not known.
        StoreUnavailable: the store does not respond.
    """
    # Listed before the cursors are read, so that later batches are not included.
    listing = list_batches(store, source)
    loaded = (cursors.load(source, name) for name in cursors.consumers(source))
    known = [cursor for cursor in loaded if cursor is not None]
    manifests = {window.key: listing.manifests[_folder(window.key)] for window in listing.windows}
    facts = RetentionFacts(listing.windows, manifests, known, _watermark(store), now - keep_for)
    verdicts = judge_windows(facts)
    windows = [_folder(verdict.window.key) for verdict in verdicts if not verdict.why]
    removals = [removal(folder, "window", listing.folders[folder]) for folder in windows]
    removals += _chunks(listing, known, facts.older_than)
    going = {one.folder for one in removals}
    removals += _cuts(store, source, now - max(keep_for, cuts_for))
    removals += unnamed(listing, known, going, now - ORPHANS_STAY)
    unfinished = store.unfinished(f"{source}/", now - ORPHANS_STAY)
    holding = laggards(facts.windows, known, facts.older_than)
    return Collection(source, tuple(removals), tuple(unfinished), _reasons(verdicts), holding)


def carry_out(store: ObjectStore, planned: Collection) -> None:
    """Remove what was planned, oldest first, so that the remaining windows have no gap.

    Raises:
        StoreError: an object cannot be removed; the next collection removes the rest.
        WrongClock: this machine's clock and the store's differ, so that ages are unknown; nothing is removed.
    """
    if planned.removals or planned.unfinished:
        refuse_other_clock(store, planned.source, partial(datetime.now, UTC))
    for one in planned.removals:
        manifest = layout.manifest_in(one.folder)
        if manifest in one.keys:
            store.delete([manifest])
        elif not is_still_unnamed(store, one):
            continue
        store.delete(key for key in one.keys if key != manifest)
    store.discard(planned.unfinished)


def prune_cursors(store: ObjectStore, cursors: CursorStore, source: str) -> int:
    """Remove records from the cursors that are no longer needed; returns how many.

    Raises:
        CursorMoved: another process moved a cursor; the next collection prunes it.
    """
    drain, lake = cursors.load(source, DRAIN), cursors.load(source, LAKE)
    if drain is None or lake is None:
        return 0
    others = [one for name in cursors.consumers(source) if (one := cursors.load(source, name)) is not None]
    points = [needed_from(one) for one in (drain, lake, *others)]
    floor = min([*points, *(window.start for window in stored_windows(store, source)[:1])])
    before = _records(drain) + _records(lake)
    # The drain first: a snapshot that it no longer has can never be planned for the lake again.
    shorter = pruned_drain(drain, lake, floor)
    drain = cursors.swap(drain, shorter) if shorter != drain else drain
    forgotten = pruned_lake(lake, drain)
    lake_after = cursors.swap(lake, forgotten) if forgotten != lake else lake
    return before - _records(drain) - _records(lake_after)


def _records(cursor: Cursor) -> int:
    return len(cursor.quarantine) + len(cursor.snapshots)


def _folder(manifest_key: str) -> str:
    return manifest_key.rpartition("/")[0]


def _watermark(store: ObjectStore) -> Callable[[SnapshotTask, int], Point | None]:
    def of_chunk(task: SnapshotTask, number: int) -> Point | None:
        if task.ranges:  # a range whose first chunk is being read may have the least watermark
            return task.requested_at
        manifest = find_manifest(store, layout.chunk_manifest_key(task, number))
        if manifest is None or manifest.chunk is None:
            return None
        return Point.at(manifest.epoch, manifest.chunk.low_watermark)

    return of_chunk


def _chunks(listing: Listing, cursors: Sequence[Cursor], older_than: datetime) -> Iterator[Removal]:
    """Yield old chunks of snapshots that are completely merged or dropped."""
    chunks = {folder: one.chunk for folder, one in sorted(listing.manifests.items()) if one.chunk is not None}
    tasks = {folder: f"snapshot-{chunk.snapshot_id}-{chunk.table}" for folder, chunk in chunks.items()}
    ended = ended_snapshots(cursors, tasks.values())
    for folder, task in tasks.items():
        objects = listing.folders[folder]
        if task not in ended:
            continue
        if max(info.modified for info in objects) < older_than:
            yield removal(folder, "snapshot chunk", objects)


def _cuts(store: ObjectStore, source: str, older_than: datetime) -> Iterator[Removal]:
    """Yield old cuts, without the last ones and all at the last position."""
    found = sorted(store.list(layout.cuts_prefix(source)), key=lambda info: position_of(info.key))
    last = {position_of(info.key) for info in found[-KEPT_CUTS:]}
    old = [info for info in found if info.modified < older_than and position_of(info.key) not in last]
    if old:
        yield Removal(
            layout.cuts_prefix(source).rstrip("/"), "cut", tuple(i.key for i in old), sum(i.size for i in old)
        )


def _reasons(verdicts: Sequence[RetentionDecision]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for verdict in verdicts:
        if verdict.why:
            counts[verdict.why] = counts.get(verdict.why, 0) + 1
    return counts
