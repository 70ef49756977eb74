"""Merges one lake table: looks at it, decides what to do, changes its definition, and commits its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt

from cdc_lib.errors import CdcError, CorruptBatch, IncompatibleSchema, MergeConflict, MergeError
from cdc_lib.lake.evolution import lake_columns
from cdc_lib.lake.layout import first_layout
from cdc_lib.lake.routing import LakeMerge
from cdc_lib.merge.contribution import Contribution
from cdc_lib.merge.evolve_table import evolved, merge_mode, others_of, rekeyed
from cdc_lib.merge.foreign_changes import is_read_again
from cdc_lib.merge.renames import renames_of, renaming
from cdc_lib.merge.row_rules import filled_rows, superseded_rows
from cdc_lib.merge.scd2.epochs import unfinished_epochs
from cdc_lib.model.lake_table import LakeTable, marker_of, refuse_moved
from cdc_lib.model.lake_upkeep import Tidied
from cdc_lib.model.merge_plan import TableCut
from cdc_lib.model.pace import counted
from cdc_lib.model.table_commit import TableCommit
from cdc_lib.store.clock import refuse_later_commit
from spark_jobs.errors import translate_errors
from spark_jobs.lake_format import LakeTarget
from spark_jobs.merging.computed import with_computed
from spark_jobs.merging.cut_entries import entries_of
from spark_jobs.merging.foreign_changes import Abandoned
from spark_jobs.merging.job import MergeJob
from spark_jobs.merging.rows_commit import RowsCommit
from spark_jobs.runtime.session import java_now

ATTEMPTS = 3
"""Attempts to merge a table when another commit comes first, before the job fails."""


def merge_table(job: MergeJob, session: SparkSession, lake: LakeMerge) -> list[TableCut]:
    """Merge one lake table; retried when another commit comes first.

    Args:
        job: the merge.
        session: a Spark session that no other thread uses.
        lake: the lake table.

    Returns:
        The lake table's new state, once for each source table.

    Raises:
        MergeError: or a subclass; the table is unchanged.
        StoreError: a batch or the lake's storage cannot be read.
        ConfigError: a predicate of the source file cannot be used.
    """
    if lake in job.refused:
        raise job.refused[lake]
    retry = Retrying(stop=stop_after_attempt(ATTEMPTS), retry=retry_if_exception_type(MergeConflict), reraise=True)
    with translate_errors("merge", ", ".join(lake.tables)):
        cuts: list[TableCut] = retry(lambda: TableMerge(job, session, lake).attempt())
    return cuts


@dataclass(frozen=True, slots=True)
class TableMerge:
    """The merge of one lake table.

    Args:
        job: the merge of all tables.
        session: a Spark session that no other thread uses.
        lake: the lake table.
    """

    job: MergeJob
    session: SparkSession
    lake: LakeMerge

    def attempt(self) -> list[TableCut]:
        """Merge once; a table whose files are lost is made again where a new snapshot replaces all of its rows."""
        target = self._target()
        try:
            return self._looked_at(target)
        except CorruptBatch as error:
            if not target.lacks(error):
                raise
            if not self._is_replaced(target):
                return self._given_up(error)
            self.job.say(
                f"{self.lake.name}: made again by its new snapshot, because files of it are lost: {error.message}"
            )
            target.discard()
            return self._looked_at(self._target())

    def _target(self) -> LakeTarget:
        return self.job.target(self.session, self.lake)

    def _given_up(self, error: CorruptBatch) -> list[TableCut]:
        """Return the last state of a damaged lake table that the source no longer has.

        Raises:
            CorruptBatch: the source has it, or the last cut does not.
        """
        watch = self.job.watch
        abandoned = watch.abandoned(self.lake, error.message) if watch is not None else None
        if watch is None or abandoned is None or not abandoned.cuts:
            raise error
        watch.note_unreadable(str(self.lake.name), error, is_dropped=True)
        return self._left(None, abandoned)

    def _is_replaced(self, target: LakeTarget) -> bool:
        """Whether new snapshots in this plan replace all rows of a damaged lake table, also those of other source tables."""
        sources, lake = self.job.sources, self.lake
        cuts = self.job.watch.cuts if self.job.watch is not None else ()
        tables = {*lake.tables, *(cut.table for cut in cuts if cut.lake_table == str(lake.name))}
        if not all(is_read_again(table, sources.of(table), sources.plan) for table in tables):
            return False
        try:
            state = target.load()
        except CorruptBatch:  # a route may bring rows of other sources, whose markers are lost
            return not any(routed.target.routed for routed in lake.routed_tables)
        return state is None or not state.carried

    def _looked_at(self, target: LakeTarget) -> list[TableCut]:
        """Load the table, and merge it, let it begin again, or leave it as it is."""
        lake, watch = self.lake, self.job.watch
        state = target.load()
        refuse_later_commit(state.updated if state is not None else None, java_now(self.session), str(lake.name))
        abandoned = watch.begin(lake, target, state) if watch is not None else None
        if abandoned is not None:
            return self._left(state, abandoned)
        if self.job.decisions.is_asked_again(lake, state):
            return self._begun_again(target, state, None)
        try:
            return self._merged(target, state)
        except IncompatibleSchema as error:
            again = self._target()
            now = again.load()
            # Another merge, perhaps an abandoned one that still runs, may have begun the table again.
            refuse_moved(lake.tables[0], _snapshot_of(state), _snapshot_of(now))
            abandoned = watch.abandoned(lake, error.message) if watch is not None and watch.cuts else None
            return self._begun_again(again, now, error) if abandoned is None else self._left(now, abandoned)

    def _left(self, state: LakeTable | None, abandoned: Abandoned) -> list[TableCut]:
        """Return the state of a lake table that this merge leaves as it is: that of the last cut if it does not exist."""
        self.job.say(f"{self.lake.name}: left as it is, because the source dropped the table: {abandoned.why}")
        if state is None:
            cuts = [replace(cut, changes=0) for cut in abandoned.cuts]
        else:
            cuts = entries_of(self.job.plan, state, self.lake, {})
        return [replace(cut, dropped=abandoned.dropped[cut.table]) for cut in cuts]

    def _begun_again(
        self, target: LakeTarget, state: LakeTable | None, why: IncompatibleSchema | None
    ) -> list[TableCut]:
        """Merge rows into a lake table that begins again with their definition, if no older row counts.

        Args:
            target: of a table that cannot hold the rows as it is.
            state: the table, as the target loaded it last.
            why: it cannot; None if a person asked for it.

        Raises:
            TableRedefined: older rows count, and a new snapshot can replace them.
            IncompatibleSchema: it cannot; or the lake keeps what the source no longer has.
        """
        job, lake = self.job, self.lake
        is_backfill = job.watch is None or job.sources.counts is not None
        if why is not None and (is_backfill or not job.decisions.is_misfit(lake, state)):
            raise why
        begins = job.decisions.beginning(lake, state, why)
        if begins.schema is not None:
            layout = first_layout(job.config, lake, lake_columns(begins.schema, begins.mode))
            state = target.begin_again(begins.schema, begins.mode, begins.part.renames, layout)
        return self._reached(target, [begins.part], self._applied(target, lake, [begins.part], state))

    def _merged(self, target: LakeTarget, state: LakeTable | None) -> list[TableCut]:
        """Merge a lake table that holds what the last merge left."""
        job, lake, sources = self.job, self.lake, self.job.sources
        batches = [sources.counted(routed, state) for routed in lake.routed_tables]
        schemas = [
            versions
            for routed, of_table in zip(lake.routed_tables, batches, strict=True)
            if (versions := sources.schemas(routed, of_table, state))
        ]
        if state is None and not schemas:
            return []  # statements on tables that never had a row here, or the snapshot of a table that was dropped
        mode = merge_mode(job.config, lake, state, schemas)
        works = job.decisions.works(lake, mode, batches, state)
        due = any(work.inputs for work in works)
        if state is not None and state.mode != mode and due:
            target.become(mode)
            return self.attempt()  # the change may have committed: decide again on the new state
        if state is not None and due:
            state = self._renamed(target, state)
        lake, works, dropped = job.decisions.by_policy(lake, works, state)
        if state is not None and dropped:
            state = target.drop(state, dropped)
        parts = job.decisions.parts(lake, works, batches, state)
        if state is not None:
            state = rekeyed(target, lake, parts, state)
        applied = self._applied(target, lake, parts, state) if due else {}
        return self._reached(target, parts, applied)

    def _renamed(self, target: LakeTarget, state: LakeTable) -> LakeTable:
        """Rename the lake's columns like the source's columns."""
        sources = self.job.sources
        for routed in self.lake.routed_tables:
            renames = renames_of(routed.table, sources.of(routed.table))
            if not renames:
                continue
            others, keeps = others_of(self.lake, state, routed.table), routed.target.keeps
            marker = marker_of(state, routed.table)
            change = renaming(state, marker, renames, keeps, others, sources.epoch_changes())
            if change is not None:
                state = target.rename(state, change.names, change.renames)
        return state

    def _applied(
        self, target: LakeTarget, lake: LakeMerge, parts: Sequence[Contribution], state: LakeTable | None
    ) -> dict[str, int]:
        """Apply the parts to the table's columns and rows; returns the number of changes by source table.

        Args:
            target: the lake table.
            lake: its name, and its source tables without columns that are left out.
            parts: what they contribute.
            state: the lake table before; None if it does not exist.
        """
        job, sources, source = self.job, self.job.sources, self.job.config.source
        # The commit repeats the marker of a part without changes.
        markers = {part.routed.table: marker_of(state, part.routed.table) for part in parts}
        due = [sources.with_replay(part, state) for part in parts if part.work.inputs]
        columns = evolved(target, lake, due, state, job.config)
        columns = with_computed(self.session, job.config, target, lake, due, state, columns)
        applied = 0
        # One commit; two if only some of the source tables wait for a first snapshot that completes their rows.
        for to_come in sorted({self._waits(part) for part in due}):
            group = [part for part in due if self._waits(part) is to_come]
            markers |= {part.routed.table: part.waiting(columns) for part in group}
            is_scd2 = group[0].work.mode == "scd2"
            commit = TableCommit(
                markers,
                superseded_rows(source, lake, group, state),
                [*filled_rows(source, lake, group, state, columns)],
                unfinished_epochs(sources.epoch_changes()) if is_scd2 else (),
                job.plan.merge_id,
            )
            rows = RowsCommit(job, self.session, target, lake, state, columns, group, commit, to_come)
            applied += rows.apply()
        if len(due) == 1:
            return {due[0].routed.table: applied}
        return {part.routed.table: part.rows for part in due}

    def _waits(self, part: Contribution) -> bool:
        """Whether a first snapshot is pending, which will replace rows that cannot be completed."""
        is_pending = self.job.waits and self.job.config.start == "snapshot" and not part.work.marker.snapshots
        return part.work.mode != "append" and is_pending

    def _reached(self, target: LakeTarget, parts: Sequence[Contribution], applied: Mapping[str, int]) -> list[TableCut]:
        """Return the new state of a lake table, which holds the parts.

        Raises:
            MergeError: it does not.
        """
        lake = self.lake
        after = target.load()
        if after is None or after.snapshot_id is None or not all(part.has_arrived(after) for part in parts):
            raise MergeError(
                "the table is not at the position that this merge was to reach",
                hint="Look at the table's snapshots: something else writes to it.",
                table=", ".join(lake.tables),
                lake_table=str(lake.name),
            )
        cuts = entries_of(self.job.plan, after, lake, applied)
        self._tidy(target)
        return cuts

    def _tidy(self, target: LakeTarget) -> None:
        """Do the maintenance that is due; the rows are merged, so a failure is only reported and retried after the next merge."""
        job, name = self.job, self.lake.name
        if job.named_by_cuts is None:
            return
        try:
            done = target.tidy(job.config.maintenance, job.named_by_cuts, job.now())
        except CdcError as error:
            job.say(f"{name}: not tidied: {type(error).__name__}: {error}")
            return
        if done != Tidied():
            job.say(
                f"{name}: {counted(done.snapshots, 'old snapshot')} removed, {counted(done.rewritten, 'file')} became {done.added:,}"
            )


def _snapshot_of(state: LakeTable | None) -> int | None:
    return state.snapshot_id if state is not None else None
