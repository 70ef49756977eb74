"""What a cut says of lake tables: their state after a merge, or as they are if it does not change them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from cdc_lib.errors import CorruptBatch, LakeRefused
from cdc_lib.lake.routing import LakeMerge, lake_merges
from cdc_lib.merge.untouched import looked_at
from cdc_lib.model.lake_table import LakeTable, marker_of
from cdc_lib.model.merge_plan import MergePlan, TableCut
from cdc_lib.model.position import Point, Position
from cdc_lib.model.table_name import TableName
from spark_jobs.lake_format import LakeTarget
from spark_jobs.merging.job import MergeJob


def entry(
    plan: MergePlan, now: LakeTable, lake_table: str, table: TableName, changes: int = 0, as_of: Position | None = None
) -> TableCut | None:
    """Return the entry of a source table in a lake table; None if it has no commit.

    Args:
        plan: the merge.
        now: the lake table.
        lake_table: its name.
        table: the source table.
        changes: of the source table in this merge.
        as_of: up to where it has the source's changes, if not up to the cut's end.
    """
    if now.snapshot_id is None:
        return None
    marker = marker_of(now, table)
    return TableCut(
        table,
        lake_table,
        now.snapshot_id,
        changes,
        as_of,
        _ahead(plan, marker.reselected.high if marker.reselected is not None else None),
        marker.dropped,
        now.mode,
        now.fingerprint(table),
        lake_rows=now.rows,
    )


def _ahead(plan: MergePlan, reselected: Point | None) -> Point | None:
    """Return the point up to which re-selected rows are ahead of the plan's end; None if they are not."""
    return reselected if reselected is not None and reselected > Point.at(plan.epoch, plan.stop) else None


def entries_of(plan: MergePlan, now: LakeTable, lake: LakeMerge, applied: Mapping[str, int]) -> list[TableCut]:
    """Return the entries of the source tables of a lake table, with the number of changes of each."""
    cuts = (entry(plan, now, str(lake.name), table, applied.get(table, 0)) for table in lake.tables)
    return [cut for cut in cuts if cut is not None]


@dataclass(frozen=True, slots=True)
class UnchangedTables:
    """The tables that a merge does not change.

    Args:
        job: the merge.
    """

    job: MergeJob

    def entries(self, session: SparkSession, cuts: Iterable[TableCut], due: Collection[str]) -> list[TableCut]:
        """Return the current state of tables, without dropped ones.

        Their rows are those of the last cut; maintenance, or the merge of another source table, may have committed a new
        snapshot since. A table whose rows the source file now sends elsewhere is left out. Of very many, the others keep the entry
        of the last cut.

        Args:
            session: a session.
            cuts: their entries in the last cut.
            due: lake tables to look at in any case.
        """
        cuts = list(cuts)
        known = {str(lake.name): lake for lake in lake_merges(self.job.config, (cut.table for cut in cuts))}
        tables = {name: frozenset(lake.tables) for name, lake in known.items()}
        routed = [cut for cut in cuts if cut.table in tables.get(cut.lake_table, ())]
        chosen = looked_at(self.job.plan.merge_id, {cut.lake_table for cut in routed}, due)
        targets = {name: self.job.target(session, known[name]) for name in chosen}
        states = self._states(targets)
        found = (
            self._entry(targets[cut.lake_table], cut, states[cut.lake_table])
            if cut.lake_table in states
            else replace(cut, changes=0)
            for cut in routed
        )
        return [cut for cut in found if cut is not None]

    def _states(self, targets: Mapping[str, LakeTarget]) -> dict[str, LakeTable | None]:
        """Load lake tables; one whose metadata are lost, or that the storage refuses, is left out and reported, and the others go on."""
        states: dict[str, LakeTable | None] = {}
        for name, target in targets.items():
            try:
                states[name] = target.load()
            except LakeRefused as error:
                self.job.say(
                    f"{name}: could not be looked at, and stays as of the last cut: {error.message}. {error.hint}"
                )
            except CorruptBatch as error:
                if self.job.watch is None:
                    raise
                self.job.watch.note_unreadable(name, error)
        return states

    def _entry(self, target: LakeTarget, cut: TableCut, now: LakeTable | None) -> TableCut | None:
        """Return a table's current state, or that of the last cut if the table no longer holds what was merged."""
        if now is None and (cut.dropped is not None or not self.job.config.tables.captures(*cut.table.pair)):
            return None  # the table is no longer expected
        if self.job.watch is not None and self.job.watch.look(cut, target, now) is not None:
            return replace(cut, changes=0)
        current = entry(self.job.plan, now, cut.lake_table, cut.table, as_of=cut.as_of) if now is not None else None
        # The marker of a table that was left as it is does not know that it was dropped.
        return replace(current, dropped=current.dropped or cut.dropped) if current is not None else None
