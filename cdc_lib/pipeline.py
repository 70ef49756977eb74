"""The six steps of the main job; the file to read first.

    plan → drain (one call per unit) → ack_drain → plan_merge → merge (Spark) → ack_lake

Every step can be repeated at any time: cursors and store show what is done. ``plan`` and ``plan_merge`` fix the work in a cursor
before it begins; the acks count manifests and cuts, never what a caller reports. What a person asks for between two runs is in
:mod:`cdc_lib.requests`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from cdc_lib.merge.planner import Merging
from cdc_lib.model.cursor import DRAIN, LAKE
from cdc_lib.model.merge_plan import MergePlan
from cdc_lib.model.missing_transactions import MissingTransactions
from cdc_lib.model.observation import TablesObservation
from cdc_lib.model.results import AckResult, DrainResult
from cdc_lib.model.window import DrainUnit, SnapshotTask
from cdc_lib.plan.ack import refuse_used_twice
from cdc_lib.plan.gaps import planned_cursor
from cdc_lib.snapshot.division import log_progress
from cdc_lib.source import Source
from cdc_lib.steps.ack import acknowledge, over_durable
from cdc_lib.steps.drain import drain, seen_by_plans
from cdc_lib.steps.plan import Planning
from cdc_lib.store import layout
from cdc_lib.store.manifests import find_manifest
from cdc_lib.store.recent_cursors import RecentCursorStore


@dataclass(frozen=True, slots=True)
class Pipeline(Source):
    """The steps of one source.

    Args:
        seen: when plans found tables defined, if that was loaded before ``cursors`` were; see :class:`cdc_lib.quarantine.masks_lost.MaskGuard`.
    """

    seen: TablesObservation | None = None

    def plan(self, *, by: str, accepted: MissingTransactions | None = None) -> list[DrainUnit]:
        """Return the units to drain: what is in flight, else new windows up to the end of the binlog; and unfinished snapshots.

        The server of the drain cursor is asked, or the first standby after it that can be reached.

        Args:
            by: who plans.
            accepted: transactions that a new server may lack, because a person decided so.

        Raises:
            TransactionsMissing: another server answers, and it never had transactions that were read.
            SourceError: the server cannot be reached, or the cursor cannot continue there.
            CursorMissing: a cursor is missing, although the source has begun.
            CursorMoved: another process planned at the same time.
        """
        cursor = Planning(self.at_reachable(), by, accepted).planned()
        log_progress(cursor)
        return [*cursor.snapshot_units, *cursor.in_flight]

    def for_snapshots(self) -> Pipeline:
        """Return the pipeline with which many snapshots are drained: it loads the drain cursor, which holds them all, only now and then."""
        return replace(self, cursors=RecentCursorStore(self.cursors), seen=seen_by_plans(self))

    def drain(self, unit: DrainUnit, *, until: datetime | None = None) -> DrainResult:
        """Read one unit from the server of the drain cursor and write its batches; existing batches are not written again.

        Args:
            unit: in flight.
            until: when reading the snapshot of a whole table ends (UTC), after at least one chunk; a later call goes on.
                None: after its last chunk.

        Raises:
            DecodeError: something in the binlog cannot be decoded.
            SourceError: the server cannot be reached, or is another one.
            StoreError: the batch cannot be written.
        """
        here = self.at_its_server()
        # Before the cursor: what a later plan has seen is decided in that.
        seen = self.seen or (seen_by_plans(self) if isinstance(unit, SnapshotTask) else None)
        return drain(here, unit, planned_cursor(self, DRAIN), until, seen)

    def ack_drain(self, *, by: str) -> AckResult:
        """Move the drain cursor over every window in flight whose manifest exists, in order.

        Raises:
            CursorMoved: another process moved it at the same time.
            BatchNotDurable: units are in flight, and none has a batch.
            PositionNotFound: the server gave the GTIDs of a window to other transactions before it.
        """
        cursor = planned_cursor(self, DRAIN)
        moved = over_durable(self, cursor, by=by)
        if moved == cursor and cursor.in_flight:
            refuse_used_twice(cursor, find_manifest(self.store, layout.manifest_key(cursor.in_flight[0])))
        return acknowledge(self, cursor, moved)

    def plan_merge(self, *, by: str) -> MergePlan | None:
        """Return the batches to merge: the plan in flight, else all durable batches; None if all are merged.

        The plan in flight is replaced if it contains changes that a new snapshot replaces.

        Raises:
            CursorMoved: another process planned at the same time.
            MergeError: a window commits an XA transaction whose rows are in no batch.
            BatchesMissing: the next batch is not stored.
            CursorMissing: a cursor is missing, although the source has begun.
        """
        return Merging(self).plan(by)

    def ack_lake(self, *, by: str) -> AckResult:
        """Move the lake cursor over the merge in flight if its cut is published.

        Raises:
            BatchNotDurable: the merge has not published its cut.
            CursorMoved: another process moved the cursor at the same time.
        """
        lake = planned_cursor(self, LAKE)
        return acknowledge(self, lake, Merging(self).acknowledged(lake, by))
