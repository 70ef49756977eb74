"""What a merge does about tables that it cannot merge: it reports them, stores them, and leaves them out where the source file says so."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pyspark.sql import SparkSession

from cdc_lib.config.source import SourceConfig
from cdc_lib.errors import CdcError, CursorMoved, ForeignChange, MergeConflict, TableRedefined, ValuesNotLogged
from cdc_lib.lake.routing import LakeMerge, lake_merges
from cdc_lib.merge.answers import answers_for, policy_of
from cdc_lib.merge.planner import plan_of
from cdc_lib.merge.table_faults import FailedTable, faults_of_one_table, to_compare
from cdc_lib.model.cursor import DRAIN, LAKE, Cursor
from cdc_lib.model.failed_table import Stopped, StoppedTable, statement_of
from cdc_lib.model.held_table import StoppedAt
from cdc_lib.model.merge_plan import Cut, MergePlan
from cdc_lib.model.quarantine import Fault
from cdc_lib.model.table_name import TableName
from cdc_lib.ports import ObjectStore
from cdc_lib.quarantine.records import FaultyTable
from cdc_lib.quarantine.resnapshot import ResnapshotRequest
from cdc_lib.quarantine.tables import Quarantine, hint_of
from cdc_lib.source import Source
from cdc_lib.store.cursors import ObjectCursorStore, required_cursor
from cdc_lib.store.failed_tables import keep_stopped, last_stopped
from cdc_lib.store.foreign import note_commits
from spark_jobs.lake_format import LAKE_FORMAT
from spark_jobs.merging.foreign_changes import ForeignChangeDetector
from spark_jobs.merging.source_rows import Say

ATTEMPTS = 3
"""Attempts to change a cursor when another task moves it."""


def report_foreign_commits(store: ObjectStore, watch: ForeignChangeDetector, say: Say) -> None:
    """Report the foreign commits that were found, and store them."""
    for one in watch.noticed:
        say(f"{one}. cdc verify {watch.source} finds rows that differ from the source.")
    note_commits(store, watch.source, watch.noticed)


@dataclass(frozen=True, slots=True)
class FaultyTables:
    """The tables that one merge cannot merge.

    Args:
        config: the source.
        store: holds the cursors, and what stopped.
        plan: of the merge.
        say: receives one line for each of them.

    Attributes:
        failed: those that failed so far.
        before: those that stopped in the last merge.
    """

    config: SourceConfig
    store: ObjectStore
    plan: MergePlan
    say: Say
    failed: list[FailedTable] = field(default_factory=list)
    before: Sequence[StoppedTable] = ()

    @classmethod
    def of(cls, config: SourceConfig, store: ObjectStore, plan: MergePlan, say: Say) -> FaultyTables:
        """Begin a merge."""
        last = last_stopped(store, config.source)
        return cls(config, store, plan, say, [], last.tables if last is not None else ())

    @property
    def lake_tables(self) -> set[str]:
        """The lake tables that stopped in the last merge."""
        return {one.lake_table for one in self.before}

    def add_untouched(self, watch: ForeignChangeDetector) -> None:
        """Add, and report, the faults of tables that the merge did not change."""
        for one in watch.refused.values():
            one.error.fill(source=watch.source, lake_table=one.lake_table)
            self.say(f"{', '.join(one.tables)}: {one.error.message}. {one.error.hint}")
            self.failed.append(one)

    def others_that_take_commits(self, spark: SparkSession, lakes: Collection[LakeMerge], before: Cut | None) -> int:
        """Return how many lake tables that the merge does not change take a commit, if that shows whose fault a refusal is.

        Else a later merge shows it, which takes the windows that came since; but none takes those of the next epoch as well.

        Args:
            spark: a session.
            lakes: those of the merge.
            before: the last cut.
        """
        most, drain = (
            to_compare(self.failed, self.before),
            ObjectCursorStore(self.store).load(self.config.source, DRAIN),
        )
        ends = (
            drain is not None
            and self.plan.epoch < drain.epoch
            and self.plan.stop == drain.end_of_epoch(self.plan.epoch)
        )
        if not most or not ends or before is None:
            return 0
        others = lake_merges(self.config, (cut.table for cut in before.tables if cut.dropped is None))
        names, taken = {lake.name for lake in lakes}, 0
        for lake in [lake for lake in others if lake.name not in names][: 2 * most]:
            try:
                LAKE_FORMAT.table(spark, lake.name, self.config.source, lake.is_routed).try_commit()
                taken += 1
            except CdcError as error:
                self.say(f"{lake.name}: takes no commit: {error.message}")
        return taken

    def without(self, merged: int, error: CdcError) -> None:
        """Leave out the tables that failed alone, so that the others are not late.

        Args:
            merged: how many lake tables took a commit.
            error: that of the merge.

        Raises:
            MergeConflict: the merge can be planned again without them.
        """
        done = self.leave_out(merged)
        if done:
            raise MergeConflict(
                f"tables are left out of the merge: {error.message}",
                hint="The merge is planned again without them.",
                source=self.config.source,
                tables=", ".join(table for one in done for table in one.tables),
            ) from error

    def leave_out(self, merged: int) -> list[FailedTable]:
        """Leave the tables that failed alone out of merges, if the source file says so, and store the others as stopped.

        With ``on_error: quarantine``, a table that stopped at a statement is held where it is until the statement is decided, and
        another one is quarantined until it is resumed. With ``lake.foreign_changes: snapshot`` tables that others changed get new
        snapshots; so do tables whose rows have another definition than their lake tables, or values that the binlog does not show.

        Returns:
            The tables that the merge can be planned without.
        """
        alone = faults_of_one_table(self.failed, merged, self.before)
        again = [one for one in self.failed if self._is_cured(one) or (one in alone and self._is_read_again(one))]
        rest = [one for one in alone if one not in again] if self.config.on_error == "quarantine" else []
        held = [one for one in rest if statement_of(one.error) is not None]
        quarantined = [one for one in rest if one not in held]
        if again or quarantined:
            self._change(DRAIN, lambda drain, lake: self._recorded(drain, lake, again, quarantined))
        if held:
            self._change(LAKE, lambda _, lake: self._held(lake, held))
        self._store(held, [one for one in self.failed if one not in (*again, *quarantined, *held)])
        self._report(again, quarantined)
        return [*again, *quarantined, *held]

    def _is_read_again(self, one: FailedTable) -> bool:
        return isinstance(one.error, ForeignChange) and self.config.lake.foreign_changes == "snapshot"

    def _is_cured(self, one: FailedTable) -> bool:
        """Whether a new snapshot cures the error: the lake needs no person then."""
        is_begun = ObjectCursorStore(self.store).load(self.config.source, DRAIN) is not None
        return isinstance(one.error, TableRedefined | ValuesNotLogged) and is_begun

    def _change(self, consumer: str, change: Callable[[Cursor, Cursor], Cursor]) -> None:
        """Change a cursor.

        Raises:
            CursorMoved: other tasks moved it in each attempt.
        """
        cursors = ObjectCursorStore(self.store)
        for attempt in range(ATTEMPTS):
            drain, lake = (required_cursor(cursors, self.config.source, one) for one in (DRAIN, LAKE))
            before, after = drain if consumer == DRAIN else lake, change(drain, lake)
            if after == before:
                return
            try:
                cursors.swap(before, after)
            except CursorMoved:
                if attempt == ATTEMPTS - 1:
                    raise
            else:
                return

    def _recorded(
        self, drain: Cursor, lake: Cursor, again: Iterable[FailedTable], quarantined: Iterable[FailedTable]
    ) -> Cursor:
        """Return the drain cursor with records of tables, from where the lake is with them."""
        quarantine = Quarantine(Source.over(self.config, self.store))
        now, unmerged = datetime.now(UTC), lake.without_merge()
        for one in again:
            request = ResnapshotRequest(one.error.message, now, "merge")
            drain = quarantine.with_new_snapshots(drain, lake, one.tables, request)
        for one in quarantined:
            for table in one.tables:
                fault = Fault(unmerged.reached(table)[1], one.error.code, one.error.message, one.error.hint)
                drain = quarantine.excluded(drain, unmerged, FaultyTable(table, fault, None, None), at=now, by="merge")
        return drain

    def _held(self, lake: Cursor, held: Iterable[FailedTable]) -> Cursor:
        """Return the lake cursor without the merge, with tables held; unchanged if another merge is in flight by now."""
        if not lake.is_merging or plan_of(lake).merge_id != self.plan.merge_id:
            return lake
        answers = answers_for(self.config, self.store)
        statements: dict[TableName, StoppedAt] = {}
        for one in held:
            question = statement_of(one.error)
            if question is not None:
                policy = policy_of(self.config, question.table, answers)
                at = StoppedAt(question, policy.at(question.kind, question.point))
                statements |= dict.fromkeys(one.tables, at)
        why = f"{', '.join(sorted(statements))} wait for a decision about a statement"
        return lake.rolled_back(at=datetime.now(UTC), by="merge", why=why).stopped_at(statements)

    def _store(self, held: Iterable[FailedTable], failed: Iterable[FailedTable]) -> None:
        """Store the tables that are not merged, with those that are held since an earlier merge, and report them."""
        now, waiting = datetime.now(UTC), {one.table for one in self.plan.held if one.stopped is not None}
        known = {one.lake_table: one for one in self.before if waiting.issuperset(one.tables)}
        stopped = [StoppedTable.by(one.error, one.tables, one.lake_table, now) for one in held]
        known |= {one.lake_table: one for one in stopped}
        for one in known.values():
            since = f"{one.since:%Y-%m-%d %H:%M:%S} UTC" if one.since is not None else "the last merge"
            self.say(f"{', '.join(one.tables)}: waits since {since}: {one.what}. {one.hint}")
        others = [StoppedTable.by(one.error, one.tables, one.lake_table) for one in failed if not one.error.retryable]
        at_fault = tuple({**known, **{one.lake_table: one for one in others}}.values())
        keep_stopped(self.store, Stopped(self.config.source, self.plan.merge_id, now, at_fault))

    def _report(self, again: Iterable[FailedTable], quarantined: Iterable[FailedTable]) -> None:
        """Report the tables that are left out from now on, each with the command that leads out."""
        for one in again:
            self.say(f"{', '.join(one.tables)}: read again: {one.error.message}")
        why: dict[TableName, FailedTable] = {table: one for one in quarantined for table in one.tables}
        if not why:
            return
        records = required_cursor(ObjectCursorStore(self.store), self.config.source, DRAIN).quarantined_tables
        for record in records:
            if record.table in why:
                what = why[record.table].error.message
                self.say(f"{record.table}: quarantined: {what}. {hint_of(record, self.config.source)}")
