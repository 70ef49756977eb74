"""Plans the next merge and acknowledges it: the lake cursor's side of the pipeline."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from cdc_lib.config import SourceConfig
from cdc_lib.errors import MergeConflict
from cdc_lib.merge.chunks import first_reads
from cdc_lib.model.cursor import LAKE, Cursor
from cdc_lib.model.gtid import WindowGtids
from cdc_lib.model.manifest import Manifest
from cdc_lib.model.merge_plan import MergePlan
from cdc_lib.model.position import Point
from cdc_lib.model.quarantine import QuarantineRecord, excluded_tables, lagging_tables, to_reach
from cdc_lib.model.window import SnapshotTask, Window
from cdc_lib.model.xa import OpenTransaction
from cdc_lib.model.xa_settlement import check_in_snapshots, not_replayed, opened_before, settle
from cdc_lib.plan.ack import over_window
from cdc_lib.plan.gaps import as_gap, chain_of
from cdc_lib.ports import CursorStore, ObjectStore
from cdc_lib.quarantine.tables import Quarantine
from cdc_lib.store import layout
from cdc_lib.store.cuts import cut_of
from cdc_lib.store.manifests import find_manifest, load_manifest
from cdc_lib.store.windows import stored_windows

_MERGE_WINDOWS = 64
"""Most windows in one merge."""


@dataclass(frozen=True, slots=True)
class Merging:
    """Planner of the merges of one source.

    Args:
        config: the source.
        store: holds batches and cuts.
        quarantine: knows what a merge waits for.
        cursors: the cursor store.
    """

    config: SourceConfig
    store: ObjectStore
    quarantine: Quarantine
    cursors: CursorStore

    def planned(self, drain: Cursor, lake: Cursor) -> Cursor:
        """Return the lake cursor with the next merge in flight; unchanged if there is nothing to merge.

        Raises:
            CursorMoved: another process planned at the same time.
            MergeError: a window commits an XA transaction whose rows are in no batch.
            BatchesMissing: the next batch is not stored.
        """
        lake = self._in_its_epoch(drain, lake)
        held = self.quarantine.held(drain, lake)
        manifests = [] if held else list(self._durable(drain, lake))
        prepared = self._prepared(drain, lake, manifests)
        windows = tuple(manifest.window for manifest in manifests if manifest.window is not None)
        ready = [task for task in _new_chunks(drain, lake) if task.id not in held]
        chunks, windows = in_order(drain, lake, ready, windows)
        if not chunks and not windows:
            return lake
        planned = replace(lake, in_flight_snapshots=chunks, in_flight=windows, prepared=prepared)
        return self.cursors.swap(lake, replace(planned, quarantine=drain.quarantine))

    def withdrawn(self, drain: Cursor, lake: Cursor, by: str) -> Cursor:
        """Return the lake cursor without a merge in flight that a new snapshot replaces in part; else unchanged.

        Such a merge may be impossible; its batches of other tables are planned again. A merge with a published cut is
        complete, and stays.

        Raises:
            CursorMoved: another process moved the cursor at the same time.
        """
        tables = outdated(drain, lake)
        if not tables or cut_of(self.store, lake.source, plan_of(lake).merge_id) is not None:
            return lake
        why = f"a new snapshot of {', '.join(sorted(tables))} replaces what was in flight"
        return self.cursors.swap(lake, lake.rolled_back(at=datetime.now(UTC), by=by, why=why))

    def oldest_batch(self) -> Manifest | None:
        """Return the manifest of the oldest stored window; None without one."""
        stored = stored_windows(self.store, self.config.source)
        return load_manifest(self.store, stored[0].key) if stored else None

    def acknowledged(self, lake: Cursor, by: str) -> Cursor:
        """Return the lake cursor after the merge in flight, if its cut is published; else unchanged."""
        if not lake.is_merging:
            return lake
        if cut_of(self.store, lake.source, plan_of(lake).merge_id) is None:
            return lake
        moved = lake
        merged: list[tuple[str, Manifest]] = []
        for window in lake.in_flight:
            key = layout.manifest_key(window)
            manifest = find_manifest(self.store, key)
            moved = over_window(moved, window, manifest, at=datetime.now(UTC), by=by)
            merged += [(key, manifest)] if manifest else []
        moved = replace(moved, prepared=settle(lake.prepared, merged).open)
        return replace(moved.with_snapshots(lake.in_flight_snapshots), in_flight_snapshots=())

    def _in_its_epoch(self, drain: Cursor, lake: Cursor) -> Cursor:
        """Move the lake cursor to the next epoch when all earlier acknowledged batches are merged."""
        while (followed := lake.following(drain)) is not lake:
            lake = self.cursors.swap(lake, followed)
        return lake

    def _prepared(self, drain: Cursor, lake: Cursor, manifests: list[Manifest]) -> tuple[OpenTransaction, ...]:
        """Return the XA transactions that are open at the lake cursor.

        Where a decision was lost with a server, the server that took over has the transaction open again.

        Raises:
            MergeError: a commit is of a transaction that was prepared before the source began, and no snapshot has its rows.
        """
        windows = [(layout.key_of(manifest), manifest) for manifest in manifests]
        unknown = not_replayed(settle(lake.prepared, windows).unknown, drain.epoch_changes)
        if not unknown:
            return lake.prepared
        known = {one.prepared.xid for one in lake.prepared}
        xids = {decision.xid for _, decision in unknown} - known
        reopened = opened_before(self._stored_before(lake), xids, manifests[0], drain.epoch_changes)
        prepared = (*lake.prepared, *reopened)
        unknown = not_replayed(settle(prepared, windows).unknown, drain.epoch_changes)
        if unknown:
            # If tables start without a snapshot, snapshots of some say nothing about the others.
            reads = first_reads(drain, self._first_chunk) if self.config.start == "snapshot" else ()
            check_in_snapshots(unknown, reads, self.config.source)
        return prepared

    def _first_chunk(self, task: SnapshotTask) -> Manifest | None:
        """Return the first chunk of a snapshot, if it is stored."""
        return find_manifest(self.store, layout.chunk_manifest_key(task, 0))

    def _stored_before(self, lake: Cursor) -> Iterator[tuple[str, Manifest]]:
        """Yield the stored windows before the lake cursor, newest first, each with its key."""
        here = Point.at(lake.epoch, lake.position)
        for window in reversed(stored_windows(self.store, self.config.source)):
            if window.start < here:
                yield window.key, load_manifest(self.store, window.key)

    def _durable(self, drain: Cursor, lake: Cursor) -> Iterator[Manifest]:
        """Yield the manifests of acknowledged windows after the lake cursor; none while a snapshot is unfinished.

        Otherwise a later chunk could restore a row whose delete was already merged. Windows before a gap are merged first.

        Raises:
            BatchesMissing: the next batch is not stored.
        """
        end = drain.end_of_epoch(lake.epoch)
        if drain.open_snapshots or end is None or lake.position == end:
            return
        chain = chain_of(self.store, drain, lake)
        if not chain.windows and (gap := as_gap(lake, chain)) is not None:
            raise gap.error()
        for window in chain.windows[:_MERGE_WINDOWS]:
            yield load_manifest(self.store, window.key)


def _new_chunks(drain: Cursor, lake: Cursor) -> tuple[SnapshotTask, ...]:
    """Return the snapshots of which more chunks are durable than merged."""
    merged = {task.id: task for task in lake.snapshots}
    return tuple(task for task in drain.snapshots if task.chunks > (merged[task.id].chunks if task.id in merged else 0))


def in_order(
    drain: Cursor, lake: Cursor, tasks: Iterable[SnapshotTask], windows: Sequence[Window]
) -> tuple[tuple[SnapshotTask, ...], tuple[Window, ...]]:
    """Return the snapshots and windows of a merge, so that no change is merged after a snapshot that includes it.

    A snapshot that replaces excluded changes waits until the lake reaches the start of the exclusion, and later windows
    wait for the snapshot.

    Args:
        drain: the drain cursor.
        lake: the lake cursor, with nothing in flight.
        tasks: snapshots with chunks to merge.
        windows: windows to merge, in order.
    """
    records: dict[str, list[QuarantineRecord]] = {}
    for one in drain.quarantine:
        records.setdefault(one.table, []).append(one)
    ahead = {
        task: to_reach(records.get(task.name, ()), task.name, task.snapshot_id, lake.epoch, lake.position)
        for task in tasks
    }
    ends = [one.start for one in ahead.values() if one is not None and one.epoch == lake.epoch]
    return (
        tuple(task for task, record in ahead.items() if record is None),
        tuple(window for window in windows if all(window.stop <= end for end in ends)),
    )


def refuse_withdrawn(cursors: CursorStore, plan: MergePlan) -> None:
    """Refuse to publish the cut of a plan that is no longer in flight: tables may be ahead of the lake cursor.

    Raises:
        MergeConflict: another plan is in flight, or none.
    """
    lake = cursors.load(plan.source, LAKE)
    if lake is None or (lake.is_merging and plan_of(lake).merge_id == plan.merge_id):
        return
    raise MergeConflict(
        "the merge was planned again while it ran",
        hint="Its changes are in the tables, as their markers show. The next merge continues from there.",
        source=plan.source,
        merge=plan.merge_id,
    )


def outdated(drain: Cursor, lake: Cursor) -> frozenset[str]:
    """Return the tables whose changes in the merge in flight are excluded by now, or whose snapshot was cancelled."""
    excluded = [
        excluded_tables(drain.quarantine, window.epoch, window.start)
        - excluded_tables(lake.quarantine, window.epoch, window.start)
        for window in lake.in_flight
    ]
    cancelled = {task.id for task in drain.snapshots if task.cancelled}
    return frozenset().union(*excluded, (task.name for task in lake.in_flight_snapshots if task.id in cancelled))


def plan_of(lake: Cursor) -> MergePlan:
    """Return the merge plan that a lake cursor has in flight; it depends on the cursor alone."""
    merged = {task.id: task.chunks for task in lake.snapshots}
    batches = [
        layout.chunk_manifest_key(task, number)
        for task in lake.in_flight_snapshots
        for number in range(merged.get(task.id, 0), task.chunks)
    ]
    batches.extend(layout.manifest_key(window) for window in lake.in_flight)
    stop = lake.in_flight[-1].stop if lake.in_flight else lake.position
    read = {task.snapshot_id for task in (*lake.snapshots, *lake.in_flight_snapshots) if task.chunks}
    lagging = lagging_tables(lake.quarantine, read)
    excluded = [
        f"{w.id} without {t}"
        for w in lake.in_flight
        for t in sorted(excluded_tables(lake.quarantine, w.epoch, w.start))
    ]
    digest = hashlib.sha256("\n".join([*batches, *excluded]).encode()).hexdigest()[:12]
    merge_id = f"{lake.epoch:06d}-{stop.sortable}-{digest}"
    return MergePlan(
        lake.source,
        lake.epoch,
        merge_id,
        lake.position,
        stop,
        tuple(batches),
        lake.prepared,
        lake.quarantine,
        lagging,
        lake.source_uuid,
        WindowGtids(lake.gtid_set, complete=lake.gtids_known),
    )
