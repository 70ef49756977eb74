"""Checks lake tables before a merge: whether they still hold the last cut, and whether other writers changed them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from cdc_lib.errors import CorruptBatch, ForeignChange
from cdc_lib.lake.routing import LakeMerge
from cdc_lib.merge.foreign_changes import (
    LakeFault,
    fault_of,
    foreign_commits,
    foreign_table,
    is_resnapshotted,
    other_incarnation,
    refuse,
    unpublished,
)
from cdc_lib.merge.live_rows import has_rows_after
from cdc_lib.merge.plan import StoredBatch
from cdc_lib.merge.table_faults import FailedTable
from cdc_lib.merge.table_resets import statement_effects
from cdc_lib.model.foreign import ForeignCommit, Past
from cdc_lib.model.lake_table import LakeTable, Marker, marker_of
from cdc_lib.model.merge_plan import MergePlan, TableCut
from cdc_lib.model.position import Point
from cdc_lib.model.table_name import TableName
from cdc_lib.ports import MergeTarget, ObjectStore


@dataclass(frozen=True, slots=True)
class Abandoned:
    """A lake table that cannot be merged as it is, and that no source table can restore.

    Args:
        why: what is wrong with it.
        dropped: where each of its source tables was dropped.
        cuts: its entries in the last cut.
    """

    why: str
    dropped: Mapping[TableName, Point]
    cuts: Sequence[TableCut]


@dataclass(frozen=True, slots=True)
class ForeignChangeDetector:
    """Compares lake tables with the last cut.

    Args:
        source: name of the source.
        store: holds the batches.
        plan: of the merge.
        batches: of the plan.
        cuts: the tables of the last cut before the plan; empty for a backfill, which may repair a fault.

    Attributes:
        noticed: foreign commits that were found.
        refused: the lake tables at fault, by name, with their affected source tables.
    """

    source: str
    store: ObjectStore
    plan: MergePlan
    batches: Sequence[StoredBatch]
    cuts: Sequence[TableCut] = ()
    noticed: list[ForeignCommit] = field(default_factory=list)
    refused: dict[str, FailedTable] = field(default_factory=dict)
    _by_lake_table: dict[str, dict[TableName, TableCut]] = field(init=False, repr=False, default_factory=dict)
    _drops: dict[TableName, list[Point]] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Sort the cuts once: each of many tables asks for its own."""
        for cut in self.cuts:
            self._by_lake_table.setdefault(cut.lake_table, {})[cut.table] = cut
            if cut.dropped is not None:
                self._drops.setdefault(cut.table, []).append(cut.dropped)

    def begin(self, lake: LakeMerge, target: MergeTarget, state: LakeTable | None) -> Abandoned | None:
        """Check a lake table before it is merged; one at fault that the source no longer has is returned, and left as it is.

        Raises:
            ForeignChange: it no longer holds what was merged, and no new snapshot replaces its rows.
        """
        known = self._cuts_of(lake)
        cuts = [*known.values()]
        past = self._past(cuts, target, state)
        for table in lake.tables:
            fault = self._fault(known[table], state, past) if table in known else self._unknown(table, cuts, state)
            if fault is None:
                continue
            abandoned = self.abandoned(lake, f"it {fault.what}")
            if abandoned is not None:
                return abandoned
            self._refuse(str(lake.name), sorted({*lake.tables, *known}), table, fault)
        return None

    def abandoned(self, lake: LakeMerge, why: str) -> Abandoned | None:
        """Return a lake table that cannot be merged, if the source dropped all of its tables before the end of this merge."""
        known = self._cuts_of(lake)
        dropped = {table: self._dropped(table, known.get(table)) for table in {*lake.tables, *known}}
        at = {table: point for table, point in dropped.items() if point is not None}
        return Abandoned(why, at, [*known.values()]) if len(at) == len(dropped) else None

    def _cuts_of(self, lake: LakeMerge) -> dict[TableName, TableCut]:
        """Return the entries of a lake table in the last cut, by source table."""
        return dict(self._by_lake_table.get(str(lake.name), {}))

    def _dropped(self, table: TableName, cut: TableCut | None) -> Point | None:
        """Return where the source dropped a table, unless it has one of this name again before the end of this merge."""
        before = Marker(dropped=cut.dropped if cut is not None else None)
        since = cut.fingerprint.merged_to if cut is not None and cut.fingerprint is not None else None
        dropped = statement_effects(table, (batch.manifest for batch in self.batches), since, before).dropped
        exists = dropped is not None and has_rows_after(self.store, table, self.batches, dropped)
        return None if exists else dropped

    def with_drop(self, table: TableName, marker: Marker) -> Marker:
        """Return a table's marker with the DROP at which the table was left as it is, so that the marker does not have it."""
        drops = self._drops.get(table, ())
        at = next((point for point in drops if marker.merged_to is None or marker.merged_to < point), None)
        return replace(marker, dropped=at) if at is not None else marker

    def look(self, cut: TableCut, target: MergeTarget, state: LakeTable | None) -> LakeFault | None:
        """Return the fault of a lake table that this merge does not change; it is kept for the report."""
        known = self._by_lake_table.get(cut.lake_table, {})
        before = known.get(cut.table)
        if before is None or before.dropped is not None:
            return None  # the source has no such table, so that nothing can restore it
        fault = self._fault(before, state, self._past([before], target, state))
        if fault is not None:
            self._note(cut.lake_table, cut.table, fault)
        return fault

    def note_unreadable(self, lake_table: str, error: CorruptBatch, *, is_dropped: bool = False) -> None:
        """Keep why a lake table cannot be read for the report; the tables of this merge continue.

        Args:
            lake_table: its name; the last cut has it.
            error: why.
            is_dropped: whether this merge sees that the source dropped it.
        """
        cuts = self._by_lake_table[lake_table]
        is_dropped = is_dropped or all(one.dropped is not None for one in cuts.values())
        self._note(lake_table, next(iter(cuts)), LakeFault(f"cannot be read: {error.message}", is_dropped=is_dropped))

    def _note(self, lake_table: str, table: TableName, fault: LakeFault) -> None:
        with suppress(ForeignChange):  # it is in the report
            self._refuse(lake_table, sorted(self._by_lake_table[lake_table]), table, fault)

    def _refuse(self, lake_table: str, tables: Sequence[TableName], table: TableName, fault: LakeFault) -> None:
        affected = [one for one in tables if not is_resnapshotted(one, self.batches, self.plan)]
        if table not in affected and not fault.drop:
            return
        error = refuse(self.source, lake_table, affected or [table], fault)
        self.refused[lake_table] = FailedTable(tuple(affected or [table]), lake_table, error, fault.is_dropped)
        raise error

    def _fault(self, cut: TableCut, state: LakeTable | None, past: Past | None) -> LakeFault | None:
        return fault_of(cut, state, past, self.plan.source_uuid)

    def _unknown(self, table: TableName, cuts: Sequence[TableCut], state: LakeTable | None) -> LakeFault | None:
        """Return the fault of a lake table that no cut of the source names."""
        marker = marker_of(state, table)
        if (fault := unpublished(state)) is not None:
            return fault
        if state is not None and marker.is_foreign_to(self.plan.source_uuid):
            return other_incarnation(state)
        return None if cuts else foreign_table(state)

    def _past(self, cuts: Sequence[TableCut], target: MergeTarget, state: LakeTable | None) -> Past | None:
        """Return the table's history since the cut, and note other writers' commits; None without changes."""
        cut = next((one for one in cuts if one.fingerprint is not None), None)
        if cut is None or cut.fingerprint is None or state is None or state.uuid != cut.fingerprint.uuid:
            return None
        if (state.snapshot_id, state.schema_id) == (cut.lake_snapshot, cut.fingerprint.schema_id):
            return None
        past, now = target.past(cut.lake_snapshot, cut.fingerprint.schema_id), datetime.now(UTC)
        tables = tuple(sorted(one.table for one in cuts))
        known = {(one.lake_table, one.snapshot_id) for one in self.noticed}
        self.noticed.extend(
            ForeignCommit(tables, cut.lake_table, one.snapshot_id, one.operation, one.at, one.added, one.deleted, now)
            for one in foreign_commits(past)
            if (cut.lake_table, one.snapshot_id) not in known
        )
        return past
