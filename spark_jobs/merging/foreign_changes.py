"""Looks at lake tables before they are merged: do they still hold what the last cut left, and who else wrote to them?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pyspark.sql import DataFrame

from cdc_lib.config.source import SourceConfig
from cdc_lib.errors import CursorMoved, ForeignChange
from cdc_lib.lake.routing import LakeMerge
from cdc_lib.merge.foreign_changes import Fault, fault_of, foreign_commits, is_read_again, other_life, refuse, stranger
from cdc_lib.merge.plan import Batch
from cdc_lib.model.cursor import DRAIN, LAKE, Cursor
from cdc_lib.model.foreign import ForeignCommit, Past
from cdc_lib.model.lake_table import LakeTable, Marker
from cdc_lib.model.merge_plan import MergePlan, TableCut
from cdc_lib.model.quarantine import Fault as TableFault
from cdc_lib.model.table_name import TableName
from cdc_lib.ports import MergeTarget, ObjectStore
from cdc_lib.quarantine.records import FaultyTable
from cdc_lib.quarantine.resnapshot import ResnapshotRequest
from cdc_lib.quarantine.tables import Quarantine
from cdc_lib.store.cursors import ObjectCursorStore, begun

Refused = Mapping[str, tuple[tuple[TableName, ...], ForeignChange]]
"""By lake table, the source tables that are concerned, and the error."""

ATTEMPTS = 3
"""How often the drain cursor is asked for when another task moves it."""


@dataclass(frozen=True, slots=True)
class Watch:
    """What the last cut left, and what is found instead.

    Args:
        source: name of the source.
        plan: of the merge.
        batches: of the plan.
        cuts: the tables of the last cut before the plan; none where a backfill leads out of what is found.

    Attributes:
        noticed: foreign commits that merges came upon.
        refused: the error of each lake table that is at fault, and the source tables that it concerns.
    """

    source: str
    plan: MergePlan
    batches: Sequence[Batch]
    cuts: Sequence[TableCut] = ()
    noticed: list[ForeignCommit] = field(default_factory=list)
    refused: dict[str, tuple[tuple[TableName, ...], ForeignChange]] = field(default_factory=dict)

    def begin(self, lake: LakeMerge, target: MergeTarget[DataFrame], found: LakeTable | None) -> None:
        """Look at a lake table that is to be merged.

        Raises:
            ForeignChange: it no longer holds what was merged, and no new snapshot replaces its rows.
        """
        cuts = [cut for cut in self.cuts if cut.lake_table == str(lake.name)]
        known = {cut.table: cut for cut in cuts}
        past = self._past(cuts, target, found)
        for table in lake.tables:
            fault = self._fault(known[table], found, past) if table in known else self._unknown(table, cuts, found)
            if fault is not None:
                self._refuse(str(lake.name), sorted({*lake.tables, *known}), table, fault)

    def look(self, cut: TableCut, target: MergeTarget[DataFrame], found: LakeTable | None) -> Fault | None:
        """Return what is wrong with a lake table that this merge has nothing for; it is kept for the report."""
        mine = [one for one in self.cuts if (one.table, one.lake_table) == (cut.table, cut.lake_table)]
        fault = self._fault(mine[0], found, self._past(mine, target, found)) if mine else None
        if fault is not None:
            tables = sorted(one.table for one in self.cuts if one.lake_table == cut.lake_table)
            try:
                self._refuse(cut.lake_table, tables, cut.table, fault)
            except ForeignChange:
                return fault  # the report has it; the tables of this merge continue
        return fault

    def _refuse(self, lake_table: str, tables: Sequence[TableName], table: TableName, fault: Fault) -> None:
        left = [one for one in tables if not is_read_again(one, self.batches, self.plan)]
        if table not in left and not fault.drop:
            return
        error = refuse(self.source, lake_table, left or [table], fault)
        self.refused[lake_table] = tuple(left or [table]), error
        raise error

    def _fault(self, cut: TableCut, found: LakeTable | None, past: Past | None) -> Fault | None:
        return fault_of(cut, found, past, self.plan.source_uuid)

    def _unknown(self, table: TableName, cuts: Sequence[TableCut], found: LakeTable | None) -> Fault | None:
        """Return what is wrong with a lake table that no cut of the source names."""
        marker = found.markers.get(table, Marker()) if found is not None else Marker()
        if found is not None and not marker.is_blank and marker.source_uuid != self.plan.source_uuid:
            return other_life(found)
        return None if cuts else stranger(found)

    def _past(self, cuts: Sequence[TableCut], target: MergeTarget[DataFrame], found: LakeTable | None) -> Past | None:
        """Return what happened since the cut, and note other writers' commits; None where nothing did."""
        cut = next((one for one in cuts if one.fingerprint is not None), None)
        if cut is None or cut.fingerprint is None or found is None or found.uuid != cut.fingerprint.uuid:
            return None
        if (found.snapshot_id, found.schema_id) == (cut.lake_snapshot, cut.fingerprint.schema_id):
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


def is_foreign_to(marker: Marker, plan: MergePlan) -> bool:
    """Whether a marker counts for nothing: another life of the source wrote it."""
    return not marker.is_blank and marker.source_uuid != plan.source_uuid


def answered(config: SourceConfig, store: ObjectStore, refused: Refused) -> str:
    """Let the source do without the tables at fault, where its file says so; returns what was done with them.

    With ``lake.foreign_changes: snapshot`` they are read again; else with ``on_error: quarantine`` they are quarantined until
    somebody releases them. Either is recorded in the drain cursor, so that the merge is planned again without them.

    Returns:
        Words for people; empty where nothing was done.

    Raises:
        CursorMoved: others moved the cursor each time.
    """
    again = config.lake.foreign_changes == "snapshot"
    if not again and config.on_error != "quarantine":
        return ""
    cursors = ObjectCursorStore(store)
    record = _asked_for if again else _excluded
    for attempt in range(ATTEMPTS):
        drain, lake = begun(cursors, config.source, DRAIN), begun(cursors, config.source, LAKE)
        moved = record(Quarantine(config, store), drain, lake, refused)
        if moved == drain:
            return ""
        try:
            cursors.swap(drain, moved)
            break
        except CursorMoved:
            if attempt == ATTEMPTS - 1:
                raise
    return "read again" if again else "quarantined"


def _asked_for(quarantine: Quarantine, drain: Cursor, lake: Cursor, refused: Refused) -> Cursor:
    for tables, error in refused.values():
        request = ResnapshotRequest(error.message, datetime.now(UTC), "merge")
        drain = quarantine.with_new_snapshots(drain, lake, tables, request)
    return drain


def _excluded(quarantine: Quarantine, drain: Cursor, lake: Cursor, refused: Refused) -> Cursor:
    for tables, error in refused.values():
        fault = TableFault(lake.position, error.code, error.message, error.hint)
        for table in tables:
            found = FaultyTable(table, fault, None, None)
            drain = quarantine.excluded(drain, lake, found, at=datetime.now(UTC), by="merge")
    return drain
