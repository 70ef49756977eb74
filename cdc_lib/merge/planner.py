"""Plans the next merge and acknowledges it: the lake cursor's side of the pipeline."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

from cdc_lib.errors import MergeConflict
from cdc_lib.lake.routing import indistinct_tables, lake_merges
from cdc_lib.merge.answers import undecided
from cdc_lib.merge.chunks import first_reads
from cdc_lib.merge.held import next_merge
from cdc_lib.model.cursor import DRAIN, LAKE, Cursor
from cdc_lib.model.gtid import WindowGtids
from cdc_lib.model.held_table import held_in
from cdc_lib.model.manifest import Manifest
from cdc_lib.model.merge_plan import MergePlan
from cdc_lib.model.position import Point
from cdc_lib.model.quarantine import excluded_tables, lagging_tables
from cdc_lib.model.table_name import TableName
from cdc_lib.model.window import SnapshotTask
from cdc_lib.model.xa import OpenTransaction
from cdc_lib.model.xa_settlement import check_in_snapshots, not_replayed, opened_before, settle
from cdc_lib.plan.ack import over_window
from cdc_lib.plan.gaps import as_gap, chain_of, refuse_lost
from cdc_lib.ports import CursorStore
from cdc_lib.quarantine.tables import Quarantine
from cdc_lib.source import Source
from cdc_lib.store import layout
from cdc_lib.store.cuts import cut_of
from cdc_lib.store.failed_tables import last_stopped
from cdc_lib.store.manifests import find_manifest, first_read_of, load_manifest
from cdc_lib.store.windows import stored_windows

_MERGE_WINDOWS = 64
"""Most windows in one merge, and how many more the next try takes when one failed."""


@dataclass(frozen=True, slots=True)
class Merging:
    """Planner of the merges of one source.

    Args:
        source: the source.
    """

    source: Source

    def plan(self, by: str) -> MergePlan | None:
        """Return the batches to merge; see :meth:`cdc_lib.pipeline.Pipeline.plan_merge`."""
        refuse_lost(self.source)
        drained, lake = self.source.cursor(DRAIN), self.source.cursor(LAKE)
        if drained is None or lake is None:
            return None
        if lake.is_merging:
            lake = self.withdrawn(drained, lake, by)
        if not lake.is_merging:
            lake = self.planned(drained, lake)
        return plan_of(lake) if lake.is_merging else None

    def planned(self, drain: Cursor, lake: Cursor, most: int | None = None) -> Cursor:
        """Return the lake cursor with the next merge in flight; unchanged if there is nothing to merge.

        Args:
            drain: the drain cursor.
            lake: the lake's, with nothing in flight.
            most: windows that it takes at most.

        Raises:
            CursorMoved: another process planned at the same time.
            MergeError: a window commits an XA transaction whose rows are in no batch.
            BatchesMissing: the next batch is not stored.
        """
        lake = self._in_its_epoch(drain, lake)
        not_yet = Quarantine(self.source).held(drain, lake)
        unready = [task for task in drain.snapshots if not task.complete or task.id in not_yet]
        alone = self._not_to_be_held(drain) if unready else frozenset()
        all_wait = any(task.selection is not None or task.name in alone for task in unready)
        manifests = [] if all_wait else list(self._durable(drain, lake, most or _MERGE_WINDOWS))
        prepared = self._prepared(drain, lake, manifests)
        windows = tuple(manifest.window for manifest in manifests if manifest.window is not None)
        still = undecided(self.source, lake.held)
        found = next_merge(drain, lake, _new_chunks(drain, lake), unready, windows, still)
        if not found.chunks and not found.windows and not found.catching_up and found.held == lake.held:
            return lake
        planned = replace(lake, in_flight_snapshots=found.chunks, in_flight=found.windows, prepared=prepared)
        planned = replace(planned, held=found.held, catching_up=found.catching_up, quarantine=drain.quarantine)
        planned = replace(planned, seen=drain.seen)
        return self.source.cursors.swap(lake, planned)

    def _not_to_be_held(self, drain: Cursor) -> frozenset[TableName]:
        """Return the tables of which no new snapshot is possible, because their rows do not show their table in a shared lake table.

        After a failover a table that is held needs one. So all tables wait for their first snapshots, as for a part of a table,
        which is merged with windows that are not merged yet.
        """
        if not self.source.config.routes:
            return frozenset()
        tables = {task.name for task in drain.snapshots}
        return indistinct_tables(self.source.name, lake_merges(self.source.config, tables))

    def withdrawn(self, drain: Cursor, lake: Cursor, by: str) -> Cursor:
        """Return the lake cursor without a merge in flight that is better planned again; else unchanged.

        A merge of which a new snapshot replaces a part may be impossible; its batches of other tables are planned again. A merge that
        keeps others waiting has its successor in flight at once, which takes more windows. A merge with a published cut is complete,
        and stays.

        Raises:
            CursorMoved: another process moved the cursor at the same time.
        """
        most: int | None = None
        if tables := outdated(drain, lake):
            why = f"a new snapshot of {', '.join(sorted(tables))} replaces what was in flight"
        elif self._keeps_others_waiting(drain, lake):
            why, most = "tables of it could not be merged, and others may have changed since", len(lake.in_flight)
        else:
            return lake
        if cut_of(self.source.store, lake.source, plan_of(lake).merge_id) is not None:
            return lake
        lake = self.source.cursors.swap(lake, lake.rolled_back(at=datetime.now(UTC), by=by, why=why))
        return lake if most is None else self.planned(drain, lake, most + _MERGE_WINDOWS)

    def _keeps_others_waiting(self, drain: Cursor, lake: Cursor) -> bool:
        """Whether the merge in flight failed with tables that it could not be planned without, and there are later windows.

        An error that all tables of a merge meet is no table's own; a longer merge has others to compare them with.
        """
        if self.source.config.on_error != "quarantine":
            return False
        plan = plan_of(lake)
        if plan.stop == drain.end_of_epoch(lake.epoch):
            return False
        stopped = last_stopped(self.source.store, lake.source)
        return stopped is not None and stopped.merge_id == plan.merge_id

    def acknowledged(self, lake: Cursor, by: str) -> Cursor:
        """Return the lake cursor after the merge in flight, if its cut is published; else unchanged."""
        if not lake.is_merging:
            return lake
        merge_id = plan_of(lake).merge_id
        if cut_of(self.source.store, lake.source, merge_id) is None:
            return lake
        moved = replace(lake, last_merge=merge_id)
        merged: list[tuple[str, Manifest]] = []
        for window in lake.in_flight:
            key = layout.manifest_key(window)
            manifest = find_manifest(self.source.store, key)
            moved = over_window(moved, window, manifest, at=datetime.now(UTC), by=by)
            merged += [(key, manifest)] if manifest else []
        moved = replace(moved, prepared=settle(lake.prepared, merged).open)
        return replace(moved.with_snapshots(lake.in_flight_snapshots), in_flight_snapshots=(), catching_up=())

    def _in_its_epoch(self, drain: Cursor, lake: Cursor) -> Cursor:
        """Move the lake cursor to the next epoch when all earlier acknowledged batches are merged."""
        while (followed := lake.following(drain)) is not lake:
            lake = self.source.cursors.swap(lake, followed)
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
            source = self.source
            begins = source.config.start == "snapshot"
            reads = first_reads(drain, partial(first_read_of, source.store)) if begins else ()
            check_in_snapshots(unknown, reads, source.name)
        return prepared

    def _stored_before(self, lake: Cursor) -> Iterator[tuple[str, Manifest]]:
        """Yield the stored windows before the lake cursor, newest first, each with its key."""
        here = Point.at(lake.epoch, lake.position)
        for window in reversed(stored_windows(self.source.store, self.source.name)):
            if window.start < here:
                yield window.key, load_manifest(self.source.store, window.key)

    def _durable(self, drain: Cursor, lake: Cursor, most: int) -> Iterator[Manifest]:
        """Yield the manifests of acknowledged windows after the lake cursor. Windows before a gap are merged first.

        Raises:
            BatchesMissing: the next batch is not stored.
        """
        end = drain.end_of_epoch(lake.epoch)
        if end is None or lake.position == end:
            return
        chain = chain_of(self.source.store, drain, lake)
        if not chain.windows and (gap := as_gap(lake, chain)) is not None:
            raise gap.error()
        for window in chain.windows[:most]:
            yield load_manifest(self.source.store, window.key)


def _new_chunks(drain: Cursor, lake: Cursor) -> tuple[SnapshotTask, ...]:
    """Return the snapshots of which more chunks are durable than merged."""
    merged = {task.id: task for task in lake.snapshots}
    return tuple(task for task in drain.snapshots if task.chunks > (merged[task.id].chunks if task.id in merged else 0))


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
    taken = [(window.epoch, window.start) for window in lake.in_flight]
    excluded = [
        excluded_tables(drain.quarantine, *at) - excluded_tables(lake.quarantine, *at) - held_in(lake.held, *at)
        for at in taken
    ]
    for one in lake.catching_up:
        at = one.epoch, one.position
        excluded_since = excluded_tables(drain.quarantine, *at) - excluded_tables(lake.quarantine, *at)
        excluded.append(excluded_since & {one.table})
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
    excluded += [f"{one.table} held from {one.point.sortable}" for one in lake.held]
    excluded += [f"{one.table} catches up from {one.point.sortable}" for one in lake.catching_up]
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
        lake.held,
        lake.catching_up,
        lake.last_merge,
        lake.seen,
    )
