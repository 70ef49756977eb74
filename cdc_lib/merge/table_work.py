"""Decides what a merge does with a lake table, from the table's state and the batches of its source tables; writes nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from cdc_lib.errors import IncompatibleSchema
from cdc_lib.lake.evolution import misfit, refuse_other_column
from cdc_lib.lake.modes import mode_of
from cdc_lib.lake.routing import LakeMerge, RoutedTable
from cdc_lib.merge.column_policy import ColumnDecision, decide_columns
from cdc_lib.merge.contribution import Contribution
from cdc_lib.merge.evolve_table import others_of, with_merged_before
from cdc_lib.merge.foreign_changes import AFTER_ALL_CHANGES
from cdc_lib.merge.live_rows import found_again, live
from cdc_lib.merge.plan import StoredBatch, TableWork, work_on
from cdc_lib.merge.redefinition import (
    beginning_at,
    emptied_at,
    has_rows,
    history_error,
    last_reset,
    loses_history,
    obsolete_before,
    redefined_error,
)
from cdc_lib.merge.replayed_defaults import limit_replays
from cdc_lib.merge.source_tables import SourceTables
from cdc_lib.merge.source_types import is_retyped_only, refuse_retyped
from cdc_lib.merge.stopped_columns import refuse_columns, refuse_narrower, refuse_wider
from cdc_lib.merge.stopped_statements import refuse_statements
from cdc_lib.model.lake_table import LakeTable, Marker, marker_of
from cdc_lib.model.merge_plan import MergePlan
from cdc_lib.model.schema import TableSchema
from cdc_lib.model.schema_policy import SchemaPolicy
from cdc_lib.model.table_mode import Mode
from cdc_lib.model.table_name import TableName

Decide = Callable[[TableName, Mode, Sequence[StoredBatch], Marker, MergePlan, SchemaPolicy], TableWork]
"""Decides what a table needs: see :func:`cdc_lib.merge.plan.work_on`."""

WithDrop = Callable[[TableName, Marker], Marker]
"""Adds to a marker the DROP at which the table was left as it is."""


@dataclass(frozen=True, slots=True)
class TableBeginning:
    """How a lake table begins again.

    Args:
        part: its rows.
        schema: its new definition; None if its former rows stay and statements remove them.
        mode: that the source file gives it; None if it gives none.
    """

    part: Contribution
    schema: TableSchema | None
    mode: Mode | None


@dataclass(frozen=True, slots=True)
class TableDecisions:
    """Decides what source tables need in a merge.

    Args:
        sources: the source tables.
        decide: decides what one needs.
        with_drop: adds the DROP at which a table was left; None if no table was.
    """

    sources: SourceTables
    decide: Decide = work_on
    with_drop: WithDrop | None = None

    def works(
        self, lake: LakeMerge, mode: Mode, batches: Sequence[Sequence[StoredBatch]], state: LakeTable | None
    ) -> list[TableWork]:
        """Return what each source table of a lake table needs.

        Args:
            lake: the lake table.
            mode: in which it is merged.
            batches: of each source table, in the order of the lake table's.
            state: the lake table; None if it does not exist.
        """
        return [
            self._work(routed.table, mode, of_table, state)
            for routed, of_table in zip(lake.routed_tables, batches, strict=True)
        ]

    def _work(self, table: TableName, mode: Mode, batches: Sequence[StoredBatch], state: LakeTable | None) -> TableWork:
        """Return what a table needs; a snapshot replaces all rows that another incarnation of the source wrote."""
        sources, plan, policy = self.sources, self.sources.plan, self.sources.policy(table)
        marker = marker_of(state, table)
        if self.with_drop is not None:
            marker = self.with_drop(table, marker)
        foreign = marker.is_foreign_to(plan.source_uuid)
        known = Marker() if foreign else marker
        work = self.decide(table, mode, batches, known, plan, policy)
        if not work.inputs:
            return work
        windows = (each.batch.manifest for each in work.inputs if each.batch.manifest.window is not None)
        refuse_statements(table, policy, windows, known.merged_to)
        work = found_again(sources.store, work, policy)
        if work.retyped and not foreign:
            refuse_retyped(work, known, state, sources.renames(table, state))
            if is_retyped_only(work):
                return TableWork(table, mode, (), known)  # such as of a column that got a comment
        emptied = emptied_at(work, known, has_rows=self._has_rows(work))
        by = replace(work.marker, source_uuid=plan.source_uuid, merge_id=plan.merge_id, emptied=emptied)
        work = replace(work, marker=by)
        if work.added_defaults:
            if state is not None:
                refuse_other_column(state, table, (one.added.column for one in work.added_defaults))
            work = limit_replays(work, sources.epoch_changes())
        return replace(work, rebuild_before=AFTER_ALL_CHANGES, kept=()) if foreign else work

    def _has_rows(self, work: TableWork) -> bool:
        """Whether rows come after the last statement of a merge that removed all of them, or at all without one."""
        since = last_reset(work)
        return has_rows(work.table, work.inputs if since is None else live(self.sources.store, work.table, work, since))

    def by_policy(
        self, lake: LakeMerge, works: Sequence[TableWork], state: LakeTable | None
    ) -> tuple[LakeMerge, list[TableWork], list[str]]:
        """Leave out columns that do not go into the lake, as the source file says.

        Returns:
            The lake table and the works with the remaining columns, and the lake's columns to drop, because the source dropped them.
        """
        routed_tables, decided = [], []
        drops: frozenset[str] = frozenset()
        for routed, work in zip(lake.routed_tables, works, strict=True):
            decision, policy = self._columns_of(routed, work, state), self.sources.policy(routed.table)
            others = others_of(lake, state, routed.table) if decision.left_out else ()
            refuse_columns(policy, routed, decision, work.inputs, others)
            drops |= decision.left_out
            routed_tables.append(decision.of(routed))
            marker = replace(work.marker, source_columns=decision.source_columns)
            decided.append(replace(work, marker=marker) if work.inputs else work)
        key = {name.lower() for name in state.primary_key} if state is not None else set()
        columns = state.columns if state is not None else ()
        names = [column.name for column in columns if column.name.lower() in drops - key]
        return replace(lake, routed_tables=tuple(routed_tables)), decided, names

    def _columns_of(self, routed: RoutedTable, work: TableWork, state: LakeTable | None) -> ColumnDecision:
        """Return which columns of a source table the merge adds, drops and leaves out."""
        sources, policy = self.sources, self.sources.policy(routed.table)
        if not policy.watches_columns:
            return ColumnDecision()
        known, renames = sources.known(routed.table, state), sources.renames(routed.table, state)
        return decide_columns(policy, routed, work.inputs, state, known, renames, sources.epoch_changes())

    def parts(
        self,
        lake: LakeMerge,
        works: Sequence[TableWork],
        batches: Sequence[Sequence[StoredBatch]],
        state: LakeTable | None,
    ) -> list[Contribution]:
        """Return what each source table contributes.

        Raises:
            MergeError: the source file does not let a table's columns become wider, or narrower.
        """
        sources = self.sources
        parts = [
            Contribution(routed, work, sources.schemas(routed, of_table, state), sources.renames(routed.table, state))
            for routed, work, of_table in zip(lake.routed_tables, works, batches, strict=True)
        ]
        if state is not None:
            for part in parts:
                policy, inputs = sources.policy(part.routed.table), part.work.inputs
                refuse_wider(policy, part.routed, part.schemas, inputs, state)
                refuse_narrower(policy, part.routed, part.schemas, inputs, state)
        return parts

    def is_asked_again(self, lake: LakeMerge, state: LakeTable | None) -> bool:
        """Whether a person asked for a snapshot with which a lake table begins again, and this merge brings it."""
        sources, table = self.sources, lake.routed_tables[0].table
        if state is None or others_of(lake, state, table):
            return False
        wanted = {one.snapshot_id for one in sources.plan.quarantine if one.table == table and one.replaces}
        chunks = (batch.manifest.chunk for batch in sources.of(table))
        new = {one.snapshot_id for one in chunks if one is not None and one.snapshot_id in wanted}
        marker = marker_of(state, table)
        return any(marker.snapshot(one) is None for one in new)

    def is_misfit(self, lake: LakeMerge, state: LakeTable | None) -> bool:
        """Whether a lake table of one source table cannot hold its rows."""
        sources, routed = self.sources, lake.routed_tables[0]
        if others_of(lake, state, routed.table):
            return False
        configured = with_merged_before(sources.config, lake, state).mode
        return misfit(sources.schemas(routed, sources.of(routed.table), state), configured, state) is not None

    def beginning(self, lake: LakeMerge, state: LakeTable | None, why: IncompatibleSchema | None) -> TableBeginning:
        """Return how a lake table begins again with the definition of its rows, if no older row counts.

        Args:
            lake: the lake table.
            state: it; None if it does not exist.
            why: it cannot hold the rows as it is; None if a person asked for it.

        Raises:
            TableRedefined: older rows count, and a new snapshot can replace them.
            IncompatibleSchema: it cannot; or the lake keeps what the source no longer has.
        """
        sources, routed = self.sources, lake.routed_tables[0]
        store, table, batches = sources.store, routed.table, sources.of(routed.table)
        configured = with_merged_before(sources.config, lake, state).mode
        known = sources.known(table, state)
        mirrored = self.decide(table, "mirror", batches, known, sources.plan, sources.policy(table))
        since = obsolete_before(mirrored, known, state) if why is not None else mirrored.rebuild_before
        inputs = mirrored.inputs if since is None else live(store, table, mirrored, since)
        schemas = sources.schemas(routed, [each.batch for each in inputs], state)
        if (fault := misfit(schemas[-1:], configured)) is not None:
            raise fault
        if why is not None and state is not None and loses_history(state.mode, configured):
            raise history_error(why, table)
        if fault := why if since is None else misfit(schemas, configured):
            raise redefined_error(fault, table)
        assert since is not None  # of a snapshot that a person asked for
        mode = mode_of(schemas[0], configured) if schemas or state is None else state.mode
        whole = self._work(table, mode, batches, state)
        work = beginning_at(whole, since)
        work = replace(work, inputs=live(store, table, work, since))
        begins = state is not None and bool(schemas)
        if not begins:  # its former rows are still there: the statements remove them
            work = replace(work, resets=whole.resets)
        part = self._remembering(Contribution(routed, work, schemas, sources.renames(table, state)))
        return TableBeginning(part, schemas[0] if begins else None, configured)

    def _remembering(self, part: Contribution) -> Contribution:
        """Return the part of a table that begins with it; its marker remembers the source's columns where a behaviour needs them."""
        policy = self.sources.policy(part.routed.table)
        if not policy.watches_columns:
            return part
        decision = decide_columns(policy, part.routed, part.work.inputs, None, Marker(), part.renames)
        work = replace(part.work, marker=replace(part.work.marker, source_columns=decision.source_columns))
        return replace(part, work=work)
