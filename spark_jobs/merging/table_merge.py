"""Merges one lake table, from its batches to its commit."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt

from cdc_lib.apply.decide import files_of, is_few, is_plain
from cdc_lib.apply.fills import filled
from cdc_lib.apply.rows import LakeShape, changes_of
from cdc_lib.config.source import SourceConfig
from cdc_lib.errors import CdcError, CorruptBatch, IncompatibleSchema, LakeRefused, MergeConflict, MergeError
from cdc_lib.lake.evolution import lake_columns, misfit, refuse_text
from cdc_lib.lake.layout import first_layout
from cdc_lib.lake.modes import mode_of
from cdc_lib.lake.routing import LakeMerge, RoutedTable, lake_merges
from cdc_lib.merge.answers import policy_of
from cdc_lib.merge.column_policy import (
    ColumnDecision,
    decide_columns,
    former_columns,
    narrowed,
)
from cdc_lib.merge.contribution import Contribution
from cdc_lib.merge.evolve_table import evolved, is_indistinct, merge_mode, others_of, rekeyed, with_merged_before
from cdc_lib.merge.foreign_changes import AFTER_ALL_CHANGES, is_read_again
from cdc_lib.merge.live_rows import found_again, live
from cdc_lib.merge.load import replayed_batches
from cdc_lib.merge.plan import MergeInput, StoredBatch, TableWork, following, refuse_partial_swap, work_on
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
from cdc_lib.merge.renames import (
    known,
    newest_schema,
    renamed_schemas,
    renames_of,
    renaming,
)
from cdc_lib.merge.replayed_defaults import limit_replays
from cdc_lib.merge.scd2.epochs import unfinished_epochs
from cdc_lib.merge.source_types import is_retyped_only, refuse_retyped
from cdc_lib.merge.stopped_columns import refuse_columns, refuse_narrower, refuse_wider
from cdc_lib.merge.stopped_statements import refuse_statements
from cdc_lib.merge.table_batches import TableBatches
from cdc_lib.merge.table_resets import statement_effects
from cdc_lib.merge.untouched import looked_at
from cdc_lib.model.column_rename import ColumnRename
from cdc_lib.model.cursor import DRAIN, EpochChange
from cdc_lib.model.lake_table import LakeColumn, LakeTable, Marker
from cdc_lib.model.lake_upkeep import Tidied
from cdc_lib.model.manifest import DataFile
from cdc_lib.model.merge_plan import MergePlan, TableCut
from cdc_lib.model.pace import counted
from cdc_lib.model.position import Point, Position
from cdc_lib.model.route import routed_schema
from cdc_lib.model.schema import TableSchema
from cdc_lib.model.schema_policy import SchemaPolicy
from cdc_lib.model.schema_question import SchemaAnswer
from cdc_lib.model.table_commit import Changes, Filled, Superseded, TableCommit
from cdc_lib.model.table_mode import Mode
from cdc_lib.model.table_name import TableName
from cdc_lib.ports import ObjectStore
from cdc_lib.reselect.policy import reads_all
from cdc_lib.store.clock import refuse_later_commit
from cdc_lib.store.cursors import ObjectCursorStore
from spark_jobs.changes.added_defaults import column_of, filled_columns
from spark_jobs.changes.filters import filtered
from spark_jobs.changes.frames import RowMapping, changes
from spark_jobs.changes.in_spark import fills_here, filtered_here
from spark_jobs.changes.table_resets import entries
from spark_jobs.errors import translate_errors
from spark_jobs.lake_format import LAKE_FORMAT, LakeTarget
from spark_jobs.merging.computed import with_computed
from spark_jobs.merging.foreign_changes import Abandoned, ForeignChangeDetector
from spark_jobs.merging.range_deletes import RangeDeletes
from spark_jobs.merging.reselect import Origin, Say, SourceReselect
from spark_jobs.runtime.log_lines import say as say_line
from spark_jobs.runtime.parallelism import is_local, shuffled_for
from spark_jobs.runtime.session import java_now

ATTEMPTS = 3
"""Attempts to merge a table when another commit comes first, before the job fails."""


ROWS_BESIDE = 20_000
"""Most changes of a table that are applied in the memory of this process beside those of other tables."""

_TURN = threading.Lock()

KeysOf = Callable[[StoredBatch], frozenset[tuple[str, ...]]]
"""Returns the primary keys that rows of a batch have in the lake table, in lower case."""

Counts = Callable[[TableName, Sequence[StoredBatch], Marker, LakeTable | None, KeysOf], Sequence[StoredBatch]]
"""Returns the batches to merge into a table."""

Now = Callable[[], datetime]
"""Returns the time (UTC)."""

Decide = Callable[[TableName, Mode, Sequence[StoredBatch], Marker, MergePlan, SchemaPolicy], TableWork]
"""Decides what a table needs: see :func:`cdc_lib.merge.plan.work_on`."""


def utc_now() -> datetime:
    """Return the time by this machine's clock."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class TableMerge:
    """The common parameters of all tables of a merge.

    Args:
        config: the source.
        store: holds the batches.
        plan: the plan.
        batches: those of each table, in order.
        origin: opens the source; None for no re-selection.
        say: receives a line for each re-selected table.
        lag: of the merge's windows.
        decide: decides what each table needs.
        waits: whether to wait for first snapshots, if the source starts with snapshots.
        watch: checks each table before it is merged; None for copies.
        named_by_cuts: returns the snapshots that cuts name; None for no maintenance after the merge.
        counts: selects the batches of a table; None for all.
        now: returns the time (UTC), by which old snapshots are removed.
        answers: about schema changes, read once: all decisions of a merge see the same.
        refused: the errors of lake tables that cannot be merged: they are other tables' as well, or have no namespace.
    """

    config: SourceConfig
    store: ObjectStore
    plan: MergePlan
    batches: TableBatches
    origin: Origin | None = None
    say: Say = say_line
    lag: timedelta | None = None
    decide: Decide = work_on
    waits: bool = True
    watch: ForeignChangeDetector | None = None
    named_by_cuts: Callable[[], Collection[int]] | None = None
    counts: Counts | None = None
    now: Now = utc_now
    answers: Sequence[SchemaAnswer] = ()
    refused: Mapping[LakeMerge, CdcError] = field(default_factory=dict)

    def run(self, session: SparkSession, lake: LakeMerge) -> list[TableCut]:
        """Merge one lake table; retried when another commit comes first.

        Returns:
            The lake table's new state, once for each source table.

        Raises:
            MergeError: or a subclass; the table is unchanged.
            StoreError: a batch or the lake's storage cannot be read.
            ConfigError: a predicate of the source file cannot be used.
        """
        if lake in self.refused:
            raise self.refused[lake]
        retry = Retrying(stop=stop_after_attempt(ATTEMPTS), retry=retry_if_exception_type(MergeConflict), reraise=True)
        with translate_errors("merge", ", ".join(lake.tables)):
            cuts: list[TableCut] = retry(self._attempt, session, lake)
        return cuts

    def _tidy(self, lake: LakeMerge, target: LakeTarget) -> None:
        """Do the maintenance that is due; the rows are merged, so a failure is only reported and retried after the next merge."""
        if self.named_by_cuts is None:
            return
        try:
            done = target.tidy(self.config.maintenance, self.named_by_cuts, self.now())
        except CdcError as error:
            self.say(f"{lake.name}: not tidied: {type(error).__name__}: {error}")
            return
        if done != Tidied():
            self.say(
                f"{lake.name}: {counted(done.snapshots, 'old snapshot')} removed, {counted(done.rewritten, 'file')} became {done.added:,}"
            )

    def unchanged(self, session: SparkSession, cuts: Iterable[TableCut], due: Collection[str]) -> list[TableCut]:
        """Return the current state of tables that this merge does not change, without dropped ones.

        Their rows are those of the last cut; maintenance, or the merge of another source table, may have committed a new
        snapshot since. A table whose rows the source file now sends elsewhere is left out. Of very many, the others keep the entry
        of the last cut.

        Args:
            session: a session.
            cuts: their entries in the last cut.
            due: lake tables to look at in any case.
        """
        cuts = list(cuts)
        known = {str(lake.name): lake for lake in lake_merges(self.config, (cut.table for cut in cuts))}
        tables = {name: frozenset(lake.tables) for name, lake in known.items()}
        routed = [cut for cut in cuts if cut.table in tables.get(cut.lake_table, ())]
        chosen = looked_at(self.plan.merge_id, {cut.lake_table for cut in routed}, due)
        targets = {name: self._target(session, known[name]) for name in chosen}
        states = self._states(targets)
        found = (
            self._current(targets[cut.lake_table], cut, states[cut.lake_table])
            if cut.lake_table in states
            else replace(cut, changes=0)
            for cut in routed
        )
        return [one for one in found if one is not None]

    def _states(self, targets: Mapping[str, LakeTarget]) -> dict[str, LakeTable | None]:
        """Load lake tables; one whose metadata are lost, or that the storage refuses, is left out and reported, and the others go on."""
        states: dict[str, LakeTable | None] = {}
        for name, target in targets.items():
            try:
                states[name] = target.load()
            except LakeRefused as error:
                self.say(f"{name}: could not be looked at, and stays as of the last cut: {error.message}. {error.hint}")
            except CorruptBatch as error:
                if self.watch is None:
                    raise
                self.watch.note_unreadable(name, error)
        return states

    def _current(self, target: LakeTarget, cut: TableCut, now: LakeTable | None) -> TableCut | None:
        """Return a table's current state, or that of the last cut if the table no longer holds what was merged."""
        if now is None and (cut.dropped is not None or not self.config.tables.captures(*cut.table.pair)):
            return None  # the table is no longer expected
        if self.watch is not None and self.watch.look(cut, target, now) is not None:
            return replace(cut, changes=0)
        current = self._cut(now, cut.lake_table, cut.table, 0, cut.as_of) if now is not None else None
        # The marker of a table that was left as it is does not know that it was dropped.
        return replace(current, dropped=current.dropped or cut.dropped) if current is not None else None

    def _cut(
        self, now: LakeTable, lake_table: str, table: TableName, changes: int, as_of: Position | None
    ) -> TableCut | None:
        if now.snapshot_id is None:
            return None
        ahead, dropped = self._ahead(now, table), _dropped(now, table)
        return TableCut(
            table,
            lake_table,
            now.snapshot_id,
            changes,
            as_of,
            ahead,
            dropped,
            now.mode,
            now.fingerprint(table),
            lake_rows=now.rows,
        )

    def _ahead(self, state: LakeTable, table: TableName) -> Point | None:
        """Return the point up to which re-selected rows are ahead of the plan's end; None if they are not."""
        read = state.markers.get(table, Marker()).reselected
        return read.high if read is not None and read.high > Point.at(self.plan.epoch, self.plan.stop) else None

    def _target(self, session: SparkSession, lake: LakeMerge) -> LakeTarget:
        return LAKE_FORMAT.table(session, lake.name, self.config.source, lake.is_routed)

    def _attempt(self, session: SparkSession, lake: LakeMerge) -> list[TableCut]:
        target = self._target(session, lake)
        try:
            return self._begun(session, lake, target)
        except CorruptBatch as error:
            if not target.lacks(error):
                raise
            if not self._is_replaced(lake, target):
                return self._given_up(lake, error)
            self.say(f"{lake.name}: made again by its new snapshot, because files of it are lost: {error.message}")
            target.discard()
            return self._begun(session, lake, self._target(session, lake))

    def _given_up(self, lake: LakeMerge, error: CorruptBatch) -> list[TableCut]:
        """Return the last state of a damaged lake table that the source no longer has.

        Raises:
            CorruptBatch: the source has it, or the last cut does not.
        """
        abandoned = self.watch.abandoned(lake, error.message) if self.watch is not None else None
        if self.watch is None or abandoned is None or not abandoned.cuts:
            raise error
        self.watch.note_unreadable(str(lake.name), error, is_dropped=True)
        return self._left(lake, None, abandoned)

    def _is_replaced(self, lake: LakeMerge, target: LakeTarget) -> bool:
        """Whether new snapshots in this plan replace all rows of a damaged lake table, also those of other source tables."""
        cuts = self.watch.cuts if self.watch is not None else ()
        tables = {*lake.tables, *(cut.table for cut in cuts if cut.lake_table == str(lake.name))}
        if not all(is_read_again(table, self._batches(table), self.plan) for table in tables):
            return False
        try:
            state = target.load()
        except CorruptBatch:  # a route may bring rows of other sources, whose markers are lost
            return not any(routed.target.routed for routed in lake.routed_tables)
        return state is None or not state.carried

    def _begun(self, session: SparkSession, lake: LakeMerge, target: LakeTarget) -> list[TableCut]:
        state = target.load()
        refuse_later_commit(state.updated if state is not None else None, java_now(session), str(lake.name))
        abandoned = self.watch.begin(lake, target, state) if self.watch is not None else None
        if abandoned is not None:
            return self._left(lake, state, abandoned)
        if self._is_asked_again(lake, state):
            return self._begun_again(session, lake, target, None)
        try:
            return self._merged(session, lake, target, state)
        except IncompatibleSchema as error:
            abandoned = (
                self.watch.abandoned(lake, error.message) if self.watch is not None and self.watch.cuts else None
            )
            if abandoned is None:
                return self._begun_again(session, lake, self._target(session, lake), error)
            return self._left(lake, target.load(), abandoned)

    def _begun_again(
        self, session: SparkSession, lake: LakeMerge, target: LakeTarget, why: IncompatibleSchema | None
    ) -> list[TableCut]:
        """Merge rows into a lake table that begins again with their definition, if no older row counts.

        Args:
            session: a session.
            lake: the lake table.
            target: of a table that cannot hold the rows as it is.
            why: it cannot; None if a person asked for it.

        Raises:
            TableRedefined: older rows count, and a new snapshot can replace them.
            IncompatibleSchema: it cannot; or the lake keeps what the source no longer has.
        """
        state, routed = target.load(), lake.routed_tables[0]
        batches, renames = self._batches_of(routed), self._renames(routed.table, state)
        marker = _marker(state, routed.table)
        configured = with_merged_before(self.config, lake, state).mode
        if why is not None and (
            self.watch is None
            or self.counts is not None
            or others_of(lake, state, routed.table)
            or misfit(self._schemas(routed, batches, state), configured, state) is None
        ):
            raise why
        known = Marker() if marker.is_foreign_to(self.plan.source_uuid) else marker
        mirrored = self.decide(routed.table, "mirror", batches, known, self.plan, self._policy(routed.table))
        since = obsolete_before(mirrored, known, state) if why is not None else mirrored.rebuild_before
        inputs = mirrored.inputs if since is None else live(self.store, routed.table, mirrored, since)
        schemas = self._schemas(routed, [each.batch for each in inputs], state)
        if (fault := misfit(schemas[-1:], configured)) is not None:
            raise fault
        if why is not None and state is not None and loses_history(state.mode, configured):
            raise history_error(why, routed.table)
        if fault := why if since is None else misfit(schemas, configured):
            raise redefined_error(fault, routed.table)
        assert since is not None  # of a snapshot that a person asked for
        mode = mode_of(schemas[0], configured) if schemas or state is None else state.mode
        whole = self._work(routed.table, mode, batches, state)
        work = beginning_at(whole, since)
        work = replace(work, inputs=live(self.store, routed.table, work, since))
        if state is not None and schemas:
            layout = first_layout(self.config, lake, lake_columns(schemas[0], configured))
            state = target.begin_again(schemas[0], configured, renames, layout)
        else:  # its former rows are still there: the statements remove them
            work = replace(work, resets=whole.resets)
        part = self._remembering(Contribution(routed, work, schemas, renames))
        return self._reached(lake, target, [part], self._apply(session, target, lake, [part], state))

    def _is_asked_again(self, lake: LakeMerge, state: LakeTable | None) -> bool:
        """Whether a person asked for a snapshot with which a lake table begins again, and this merge brings it."""
        routed = lake.routed_tables[0]
        if state is None or others_of(lake, state, routed.table):
            return False
        wanted = {one.snapshot_id for one in self.plan.quarantine if one.table == routed.table and one.replaces}
        chunks = (batch.manifest.chunk for batch in self._batches_of(routed))
        new = {one.snapshot_id for one in chunks if one is not None and one.snapshot_id in wanted}
        marker = _marker(state, routed.table)
        return any(marker.snapshot(one) is None for one in new)

    def _remembering(self, part: Contribution) -> Contribution:
        """Return the part of a table that begins with it; its marker remembers the source's columns where a behaviour needs them."""
        policy = self._policy(part.routed.table)
        if not policy.watches_columns:
            return part
        decision = decide_columns(policy, part.routed, part.work.inputs, None, Marker(), part.renames)
        work = replace(part.work, marker=replace(part.work.marker, source_columns=decision.source_columns))
        return replace(part, work=work)

    def _merged(
        self, session: SparkSession, lake: LakeMerge, target: LakeTarget, state: LakeTable | None
    ) -> list[TableCut]:
        """Merge a lake table that holds what the last merge left; returns its new state."""
        batches = {routed.table: self._counted(routed, state) for routed in lake.routed_tables}
        schemas = [
            versions
            for routed in lake.routed_tables
            if (versions := self._schemas(routed, batches[routed.table], state))
        ]
        if state is None and not schemas:
            return []  # statements on tables that never had a row here, or the snapshot of a table that was dropped
        mode = merge_mode(self.config, lake, state, schemas)
        works = [self._work(routed.table, mode, batches[routed.table], state) for routed in lake.routed_tables]
        due = any(work.inputs for work in works)
        if state is not None and state.mode != mode and due:
            target.become(mode)
            return self._attempt(session, lake)  # the change may have committed: decide again on the new state
        if state is not None and due:
            state = self._renamed(target, lake, state)
        lake, works, state = self._by_policy(target, lake, works, state)
        parts = [
            Contribution(
                routed, work, self._schemas(routed, batches[routed.table], state), self._renames(routed.table, state)
            )
            for routed, work in zip(lake.routed_tables, works, strict=True)
        ]
        if state is not None:
            for part in parts:
                policy, inputs = self._policy(part.routed.table), part.work.inputs
                refuse_wider(policy, part.routed, part.schemas, inputs, state)
                refuse_narrower(policy, part.routed, part.schemas, inputs, state)
            state = rekeyed(target, lake, parts, state)
        applied: Mapping[str, int] = {}
        if due:
            applied = self._apply(session, target, lake, parts, state)
        return self._reached(lake, target, parts, applied)

    def _reached(
        self,
        lake: LakeMerge,
        target: LakeTarget,
        parts: Sequence[Contribution],
        applied: Mapping[str, int],
    ) -> list[TableCut]:
        """Return the new state of a lake table, which holds the parts.

        Raises:
            MergeError: it does not.
        """
        after = target.load()
        if after is None or after.snapshot_id is None or not all(part.has_arrived(after) for part in parts):
            raise MergeError(
                "the table is not at the position that this merge was to reach",
                hint="Look at the table's snapshots: something else writes to it.",
                table=", ".join(lake.tables),
                lake_table=str(lake.name),
            )
        name = str(lake.name)
        cuts = (self._cut(after, name, table, applied.get(table, 0), None) for table in lake.tables)
        self._tidy(lake, target)
        return [cut for cut in cuts if cut is not None]

    def _left(self, lake: LakeMerge, state: LakeTable | None, abandoned: Abandoned) -> list[TableCut]:
        """Return the state of a lake table that this merge leaves as it is: that of the last cut if it does not exist."""
        self.say(f"{lake.name}: left as it is, because the source dropped the table: {abandoned.why}")
        if state is None:
            cuts = [replace(cut, changes=0) for cut in abandoned.cuts]
        else:
            now = (self._cut(state, str(lake.name), table, 0, None) for table in lake.tables)
            cuts = [cut for cut in now if cut is not None]
        return [replace(cut, dropped=abandoned.dropped[cut.table]) for cut in cuts]

    def _batches_of(self, routed: RoutedTable) -> Sequence[StoredBatch]:
        """Return the batches of the plan that hold something of a source table, with nothing of other tables."""
        return self._batches(routed.table)

    def _batches(self, table: TableName) -> Sequence[StoredBatch]:
        return self.batches.get(table, ())

    def _counted(self, routed: RoutedTable, state: LakeTable | None) -> Sequence[StoredBatch]:
        """Return the batches to merge of a source table."""
        batches = self._batches_of(routed)
        if self.counts is None:
            return batches
        marker, renames = _marker(state, routed.table), self._renames(routed.table, state)

        def keys_of(batch: StoredBatch) -> frozenset[tuple[str, ...]]:
            schemas = renamed_schemas(routed.table, [batch], renames)
            keys = (routed_schema(schema, routed.target).primary_key for schema in schemas)
            return frozenset(tuple(name.lower() for name in key) for key in keys)

        known = Marker() if marker.is_foreign_to(self.plan.source_uuid) else marker
        return self.counts(routed.table, batches, known, state, keys_of)

    def _work(self, table: TableName, mode: Mode, batches: Sequence[StoredBatch], state: LakeTable | None) -> TableWork:
        """Return what a table needs; a snapshot replaces all rows that another incarnation of the source wrote."""
        marker = _marker(state, table)
        if self.watch is not None:
            marker = self.watch.with_drop(table, marker)
        foreign = marker.is_foreign_to(self.plan.source_uuid)
        known, policy = Marker() if foreign else marker, self._policy(table)
        work = self.decide(table, mode, batches, known, self.plan, policy)
        if not work.inputs:
            return work
        windows = (each.batch.manifest for each in work.inputs if each.batch.manifest.window is not None)
        refuse_statements(table, policy, windows, known.merged_to)
        work = found_again(self.store, work, policy)
        if work.retyped and not foreign:
            refuse_retyped(work, known, state, self._renames(table, state))
            if is_retyped_only(work):
                return TableWork(table, mode, (), known)  # such as of a column that got a comment
        emptied = emptied_at(work, known, has_rows=self._has_rows(work))
        by = replace(work.marker, source_uuid=self.plan.source_uuid, merge_id=self.plan.merge_id, emptied=emptied)
        work = replace(work, marker=by)
        if work.added_defaults:
            work = limit_replays(work, self._epoch_changes())
        return replace(work, rebuild_before=AFTER_ALL_CHANGES, kept=()) if foreign else work

    def _has_rows(self, work: TableWork) -> bool:
        """Whether rows come after the last statement of a merge that removed all of them, or at all without one."""
        since = last_reset(work)
        return has_rows(work.table, work.inputs if since is None else live(self.store, work.table, work, since))

    def _policy(self, table: TableName) -> SchemaPolicy:
        return policy_of(self.config, table, self.answers)

    def _by_policy(
        self, target: LakeTarget, lake: LakeMerge, works: Sequence[TableWork], state: LakeTable | None
    ) -> tuple[LakeMerge, list[TableWork], LakeTable | None]:
        """Drop columns that the source dropped, and leave out those that do not go into the lake, as the source file says."""
        routed_tables, decided = [], []
        drops: frozenset[str] = frozenset()
        for routed, work in zip(lake.routed_tables, works, strict=True):
            decision, policy = self._columns_of(routed, work, state), self._policy(routed.table)
            others = others_of(lake, state, routed.table) if decision.left_out else ()
            refuse_columns(policy, routed, decision, work.inputs, others)
            drops |= decision.left_out
            routed_tables.append(decision.of(routed))
            marker = replace(work.marker, source_columns=decision.source_columns)
            decided.append(replace(work, marker=marker) if work.inputs else work)
        if state is not None:
            key = {name.lower() for name in state.primary_key}
            names = [column.name for column in state.columns if column.name.lower() in drops - key]
            state = target.drop(state, names) if names else state
        return replace(lake, routed_tables=tuple(routed_tables)), decided, state

    def _columns_of(self, routed: RoutedTable, work: TableWork, state: LakeTable | None) -> ColumnDecision:
        """Return which columns of a source table the merge adds, drops and leaves out."""
        if not self._policy(routed.table).watches_columns:
            return ColumnDecision()
        marker = _marker(state, routed.table)
        known = Marker() if marker.is_foreign_to(self.plan.source_uuid) else marker
        renames = self._renames(routed.table, state)
        policy, epochs = self._policy(routed.table), self._epoch_changes()
        return decide_columns(policy, routed, work.inputs, state, known, renames, epochs)

    def _epoch_changes(self) -> tuple[EpochChange, ...]:
        drain = ObjectCursorStore(self.store).load(self.config.source, DRAIN)
        return drain.epoch_changes if drain is not None else ()

    def _renames(self, table: TableName, state: LakeTable | None) -> tuple[ColumnRename, ...]:
        """Return the renames of a source table's columns."""
        return known(state, table, renames_of(table, self._batches(table)))

    def _renamed(self, target: LakeTarget, lake: LakeMerge, state: LakeTable) -> LakeTable:
        """Rename the lake's columns like the source's columns."""
        for routed in lake.routed_tables:
            marker = state.markers.get(routed.table, Marker())
            renames = renames_of(routed.table, self._batches_of(routed))
            if not renames:
                continue
            others, keeps = others_of(lake, state, routed.table), routed.target.keeps
            change = renaming(state, marker, renames, keeps, others, self._epoch_changes())
            if change is not None:
                state = target.rename(state, change.names, change.renames)
        return state

    def _apply(
        self,
        session: SparkSession,
        target: LakeTarget,
        lake: LakeMerge,
        parts: Sequence[Contribution],
        state: LakeTable | None,
    ) -> dict[str, int]:
        """Apply the parts to the table's columns and rows; returns the number of changes by source table."""
        # The commit repeats the marker of a part without changes.
        before = state.markers if state is not None else {}
        markers = {part.routed.table: before.get(part.routed.table, Marker()) for part in parts}
        due = [self._with_replay(part, state) for part in parts if part.work.inputs]
        columns_before = state.columns if state is not None else ()
        columns = evolved(target, lake, [part for part, _ in due], state, self.config)
        columns = with_computed(session, self.config, target, lake, [part for part, _ in due], state, columns)
        applied = 0
        # One commit; two if only some of the source tables wait for a first snapshot that completes their rows.
        for to_come in sorted({self._waits(part) for part, _ in due}):
            group = [(part, inputs) for part, inputs in due if self._waits(part) is to_come]
            markers |= {part.routed.table: part.waiting(columns) for part, _ in group}
            fills = [
                one
                for part, _ in group
                if part.work.added_defaults and not is_indistinct(self.config.source, lake, part, state)
                for one in self._fills(part, columns_before, columns)
            ]
            mode = group[0][0].work.mode
            unfinished = unfinished_epochs(self._epoch_changes()) if mode == "scd2" else ()
            superseded = self._superseded(lake, [part for part, _ in group], state)
            commit = TableCommit(markers, superseded, fills, unfinished, self.plan.merge_id)
            if (
                replaced := self._replaced(session, target, group, state, columns, commit, to_come=to_come)
            ) is not None:
                applied += replaced
                continue
            frames = [self._frame(session, part, inputs, columns) for part, inputs in group]
            frames += self._deletes(session, lake, [part for part, _ in group], frames, columns, state)
            frame = reduce(_union, frames)
            at_most = sum(part.rows for part, _ in group)
            with shuffled_for(session, self.config.merge, at_most):
                if mode == "append":
                    applied += target.append(frame, commit)
                    continue
                guard = any(part.work.guard for part, _ in group)
                with self._reading_back(session, target, [part for part, _ in group], to_come=to_come) as reselect:
                    applied += target.upsert(Changes(frame, guard, at_most, to_come), commit, reselect)
        if len(due) == 1:
            return {due[0][0].routed.table: applied}
        return {part.routed.table: part.rows for part, _ in due}

    def _fills(
        self, part: Contribution, before: Sequence[LakeColumn], columns: Sequence[LakeColumn]
    ) -> Iterator[Filled]:
        """Yield the values of added columns.

        Raises:
            TableRedefined: the lake has a column of the name, which cannot hold the value.
        """
        for one in part.filled(self.config.source):
            there, column = column_of(one, before), column_of(one, columns)
            if one.value is not None and there is not None and column is not None:
                try:
                    refuse_text(column, one.value, part.routed.table)
                except IncompatibleSchema as why:
                    raise redefined_error(why, part.routed.table) from why
            if one.value is not None or there is not None:
                yield one

    def _replaced(
        self,
        session: SparkSession,
        target: LakeTarget,
        group: Sequence[tuple[Contribution, Sequence[MergeInput]]],
        state: LakeTable | None,
        columns: Sequence[LakeColumn],
        commit: TableCommit,
        *,
        to_come: bool,
    ) -> int | None:
        """Apply changes without Spark SQL; None if Spark has to do it."""
        mode = group[0][0].work.mode
        rules = (self.config.reselect.rule(part.routed.database, part.routed.name) for part, _ in group)
        if self.origin is not None and not to_come and any(reads_all(rule, self.lag) for rule in rules):
            return None
        files = [files_of(part.routed.table, inputs) for part, inputs in group]
        plain = (
            is_plain(part.routed, part.work, _marker(state, part.routed.table), self.plan, commit.supersedes, of_part)
            for (part, _), of_part in zip(group, files, strict=True)
        )
        if not (is_done_here(session, [one for of_part in files for one in of_part]) and all(plain)):
            return None

        def read(fields: tuple[pa.Field, ...]) -> Iterator[pa.Table]:
            for part, inputs in group:
                shape, where = self._shape(part, fields), part.routed.target.where
                fills = fills_here(session, part.filled(self.config.source), columns, fields)
                for rows in changes_of(self.store, inputs, shape):
                    yield filtered_here(session, filled(rows, fills), columns, where, mode, part.routed.table)
                yield from (shape.reset(one) for one in part.entries)

        with _TURN if sum(part.rows for part, _ in group) > ROWS_BESIDE else nullcontext():
            return target.replace(read, commit, guard=any(part.work.guard for part, _ in group))

    def _shape(self, part: Contribution, fields: tuple[pa.Field, ...]) -> LakeShape:
        routed = part.routed
        return LakeShape(routed.table, fields, routed.constants(self.config.source), routed.target.keeps, part.renames)

    @contextmanager
    def _reading_back(
        self, session: SparkSession, target: LakeTarget, parts: Sequence[Contribution], *, to_come: bool
    ) -> Iterator[SourceReselect | None]:
        """Yield the re-selection, None while a first snapshot is pending; its files are removed after the block."""
        if self.origin is None or to_come:
            yield None
            return
        newest = [
            (part.routed, newest_schema(part.routed.table, self._batches_of(part.routed), part.renames))
            for part in parts
        ]
        tables = [(routed, schema) for routed, schema in newest if schema is not None]
        origin, lag = self.origin, self.lag
        back = SourceReselect(session, self.config, self.store, self.plan, origin, lag, self.say, target.evolve, tables)
        try:
            yield back
        finally:
            back.remove()

    def _waits(self, part: Contribution) -> bool:
        """Whether a first snapshot is pending, which will replace rows that cannot be completed."""
        is_pending = self.waits and self.config.start == "snapshot" and not part.work.marker.snapshots
        return part.work.mode != "append" and is_pending

    def _schemas(
        self, routed: RoutedTable, batches: Sequence[StoredBatch], state: LakeTable | None
    ) -> tuple[TableSchema, ...]:
        """Return the schemas of a source table's rows, as in the lake."""
        schemas = renamed_schemas(routed.table, batches, self._renames(routed.table, state))
        return tuple(routed_schema(schema, routed.target) for schema in schemas)

    def _with_replay(self, part: Contribution, state: LakeTable | None) -> tuple[Contribution, list[MergeInput]]:
        """Add the windows that a late chunk must be merged with."""
        work, routed = part.work, part.routed
        if work.replay is None:
            return part, list(work.inputs)
        drain = ObjectCursorStore(self.store).load(self.config.source, DRAIN)
        again = replayed_batches(self.store, self.config.source, work.table, work.replay, self.plan.quarantine, drain)
        schemas = renamed_schemas(work.table, again, part.renames)
        if self._policy(work.table).drop_column in ("follow", "ask") and state is not None:
            target = narrowed(routed.target, former_columns(schemas, [*part.schemas, state]))
            routed = replace(routed, target=target)
            part = replace(part, routed=routed)
        older = tuple(routed_schema(schema, routed.target) for schema in schemas)
        inputs = (*work.inputs, *(MergeInput(batch, work.replay[0]) for batch in again))
        refuse_partial_swap(work.table, again, work.replay[0])
        manifests = (batch.manifest for batch in again)
        before = statement_effects(work.table, manifests, work.replay[0], Marker(), self._policy(work.table))
        # Resets after the replay also remove rows of the replay.
        floor = max(filter(None, (work.reset_before, before.before)), default=None)
        work = following(replace(work, inputs=inputs), replace(before, before=floor))
        work = limit_replays(work, drain.epoch_changes if drain is not None else ())
        return replace(part, work=work, schemas=(*older, *part.schemas)), list(work.inputs)

    def _frame(
        self, session: SparkSession, part: Contribution, inputs: Sequence[MergeInput], columns: Sequence[LakeColumn]
    ) -> DataFrame:
        routed = part.routed
        mapping = RowMapping(routed.target.keeps, routed.constants(self.config.source), part.work.marker.reads)
        mapping = replace(mapping, ahead_until=part.work.ahead_until, renames=part.renames)
        frame = changes(session, self.store, routed.table, inputs, columns, mapping)
        if filled := filled_columns(part.filled(self.config.source), columns):
            frame = frame.withColumns(filled)
        return filtered(frame, routed.target.where, part.work.mode, routed.table)

    def _deletes(
        self,
        session: SparkSession,
        lake: LakeMerge,
        parts: Sequence[Contribution],
        frames: Sequence[DataFrame],
        columns: Sequence[LakeColumn],
        state: LakeTable | None,
    ) -> list[DataFrame]:
        """Return deletes of rows in read ranges that are in no chunk; in append mode the entries of resets."""
        deletes: list[DataFrame] = []
        for part, frame in zip(parts, frames, strict=True):
            constants = part.routed.constants(self.config.source)
            if part.work.mode == "append":
                resets = entries(session, part.entries, columns, constants)
                deletes += [] if resets is None else [resets]
                continue
            if state is None or state.snapshot_id is None or not part.work.ranges:
                continue
            max_keys = self.config.reselect.rule(part.routed.database, part.routed.name).max_keys
            of_ranges = RangeDeletes(session, lake.name, state, columns, constants, self.origin, max_keys)
            kept = part.work.kept_before
            deletes += [of_ranges.of(one, frame, kept(one.point)) for one in part.work.ranges]
        return deletes

    def _superseded(self, lake: LakeMerge, parts: Sequence[Contribution], state: LakeTable | None) -> list[Superseded]:
        """Return the rows that snapshots replace or statements remove."""
        superseded = []
        for part in parts:
            rules = part.superseded(self.config.source, state)
            if not rules and not part.entries:
                continue
            if is_indistinct(self.config.source, lake, part, state):
                raise MergeError(
                    "rows of a table must be deleted, because of a statement (such as TRUNCATE) or a late snapshot, and cannot be "
                    "distinguished from those of the other tables that share the lake table",
                    hint="Add keys that differ (server, schema, table) to the route and begin with a new lake table.",
                    table=part.routed.table,
                    lake_table=str(lake.name),
                )
            superseded += rules
        return superseded


def is_done_here(session: SparkSession, files: Sequence[tuple[DataFile, TableSchema]]) -> bool:
    """Whether this process applies the changes of files: they are few, or there are no other machines for them."""
    return is_local(session) or is_few(files)


def _marker(state: LakeTable | None, table: TableName) -> Marker:
    """Return the marker of a source table; an empty one without rows."""
    return state.markers.get(table, Marker()) if state is not None else Marker()


def _dropped(state: LakeTable, table: TableName) -> Point | None:
    """Return where a source table was dropped, unless it was created again."""
    return state.markers.get(table, Marker()).dropped


def _union(one: DataFrame, other: DataFrame) -> DataFrame:
    """Return the union of two frames; without ``_absent``, all rows of a frame are complete."""
    return one.unionByName(other, allowMissingColumns=True)
