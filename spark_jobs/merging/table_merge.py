"""One lake table of a merge, from its batches to its commit."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt

from cdc_lib.config.source import SourceConfig
from cdc_lib.errors import CdcError, MergeConflict, MergeError
from cdc_lib.lake.routing import LakeMerge, RoutedTable, lake_merges
from cdc_lib.merge.contribution import Contribution
from cdc_lib.merge.evolve_table import evolved, is_alike, merge_mode, others_of, rekeyed
from cdc_lib.merge.foreign_changes import EVER
from cdc_lib.merge.plan import Batch, MergeInput, TableWork, following, refuse_untold_swap, work_on
from cdc_lib.merge.renames import (
    known,
    newest_schema,
    renamed_schemas,
    renames_of,
    renaming,
)
from cdc_lib.merge.table_resets import statement_effects
from cdc_lib.model.column_rename import ColumnRename
from cdc_lib.model.cursor import DRAIN
from cdc_lib.model.lake_table import LakeColumn, LakeTable, Marker
from cdc_lib.model.lake_upkeep import Tidied
from cdc_lib.model.merge_plan import MergePlan, TableCut
from cdc_lib.model.position import Point, Position
from cdc_lib.model.route import routed_schema
from cdc_lib.model.schema import TableSchema
from cdc_lib.model.table_commit import Changes, Superseded, TableCommit
from cdc_lib.model.table_mode import Mode
from cdc_lib.model.table_name import TableName
from cdc_lib.ports import MergeTarget, ObjectStore
from cdc_lib.store.cursors import ObjectCursorStore
from spark_jobs.changes.added_defaults import column_of, filled_columns
from spark_jobs.changes.filters import filtered
from spark_jobs.changes.frames import RowMapping, changes, replayed_batches
from spark_jobs.changes.table_resets import entries
from spark_jobs.errors import translate_errors
from spark_jobs.lake_format import LAKE_FORMAT
from spark_jobs.merging.foreign_changes import Watch, is_foreign_to
from spark_jobs.merging.range_deletes import RangeDeletes
from spark_jobs.merging.reselect import Origin, ReadBack, Say
from spark_jobs.merging.small_merge import brief_settings
from spark_jobs.runtime.log_lines import say as say_line
from spark_jobs.runtime.session import set_for

ATTEMPTS = 3
"""How often a table is merged again when another commit came first, before the whole job gives up."""


KeysOf = Callable[[Batch], frozenset[tuple[str, ...]]]
"""Returns the primary keys that rows of a batch have in the lake table, in lower case."""

Counts = Callable[[TableName, Sequence[Batch], Marker, LakeTable | None, KeysOf], Sequence[Batch]]
"""Returns those of the batches that count for a table."""

Decide = Callable[[TableName, Mode, Sequence[Batch], Marker, MergePlan], TableWork]
"""Says what a table needs: see :func:`cdc_lib.merge.plan.work_on`."""


@dataclass(frozen=True, slots=True)
class TableMerge:
    """What all tables of a merge have in common.

    Args:
        config: the source.
        store: where the batches lie.
        plan: the plan.
        batches: its batches, in order.
        origin: the way to the source; None where rows cannot be read back.
        say: takes a line for each table whose rows are.
        lag: of the merge's windows.
        decide: what each table needs.
        waits: whether snapshots are still to bring rows, where the source begins with them.
        watch: looks at each table before it is merged; None where a table beside one is written.
        named_by_cuts: returns the snapshots that cuts name; None where tables are not tidied.
        counts: which batches count for a table; all of them without.
    """

    config: SourceConfig
    store: ObjectStore
    plan: MergePlan
    batches: Sequence[Batch]
    origin: Origin | None = None
    say: Say = say_line
    lag: timedelta | None = None
    decide: Decide = work_on
    waits: bool = True
    watch: Watch | None = None
    named_by_cuts: Callable[[], Collection[int]] | None = None
    counts: Counts | None = None

    def run(self, session: SparkSession, lake: LakeMerge) -> list[TableCut]:
        """Merge one lake table, and again when another commit came first.

        Returns:
            The lake table as it is, once for each source table.

        Raises:
            MergeError: and its kinds; the table is as it stood.
            StoreError: a batch or the lake's storage cannot be read.
            ConfigError: a predicate of the source file cannot be used.
        """
        again = Retrying(stop=stop_after_attempt(ATTEMPTS), retry=retry_if_exception_type(MergeConflict), reraise=True)
        with translate_errors("merge", ", ".join(lake.tables)):
            cuts: list[TableCut] = again(self._attempt, session, lake)
        if self.named_by_cuts is not None and cuts:
            self._tidy(session, lake, self.named_by_cuts)
        return cuts

    def _tidy(self, session: SparkSession, lake: LakeMerge, named_by_cuts: Callable[[], Collection[int]]) -> None:
        """Keep the table small; what it holds is merged, so a failure is said and done again after the next merge."""
        try:
            done = LAKE_FORMAT.tidy(session, lake.name, self.config.maintenance, named_by_cuts, datetime.now(UTC))
        except CdcError as error:
            self.say(f"{lake.name}: not tidied: {type(error).__name__}: {error}")
            return
        if done != Tidied():
            self.say(f"{lake.name}: {done.snapshots} old snapshots removed, {done.rewritten} files became {done.added}")

    def standing(self, session: SparkSession, cuts: Iterable[TableCut]) -> list[TableCut]:
        """Return the tables that this merge has nothing for as they are now, without those that are dropped.

        Their rows are those of the cut before; maintenance, or the merge of another source table, may have made another
        snapshot since. A lake table that no route leads to any more is left out.
        """
        cuts = list(cuts)
        known = {str(lake.name): lake for lake in lake_merges(self.config, (cut.table for cut in cuts))}
        found = {
            name: self._target(session, known[name]).load() for name in {c.lake_table for c in cuts} & known.keys()
        }
        return [
            one
            for cut in cuts
            if cut.lake_table in found and (one := self._found(session, known, cut, found)) is not None
        ]

    def _found(
        self,
        session: SparkSession,
        known: Mapping[str, LakeMerge],
        cut: TableCut,
        found: Mapping[str, LakeTable | None],
    ) -> TableCut | None:
        """Return a table as it is now, or as the cut before had it where it no longer holds what was merged."""
        now = found[cut.lake_table]
        if now is None and (cut.dropped is not None or not self.config.tables.captures(*cut.table.pair)):
            return None  # nobody expects it any more
        target = self._target(session, known[cut.lake_table])
        if self.watch is not None and self.watch.look(cut, target, now) is not None:
            return replace(cut, changes=0)
        return self._cut(now, cut.lake_table, cut.table, 0, cut.as_of) if now is not None else None

    def _cut(
        self, now: LakeTable, lake_table: str, table: TableName, changes: int, behind: Position | None
    ) -> TableCut | None:
        if now.snapshot_id is None:
            return None
        ahead, dropped = self._ahead(now, table), _dropped(now, table)
        return TableCut(
            table, lake_table, now.snapshot_id, changes, behind, ahead, dropped, now.mode, now.fingerprint(table)
        )

    def _ahead(self, state: LakeTable, table: TableName) -> Point | None:
        """Return up to which point rows that were re-selected are ahead of the plan's end; None when none is."""
        read = state.markers.get(table, Marker()).reselected
        return read.high if read is not None and read.high > Point.at(self.plan.epoch, self.plan.stop) else None

    def _target(self, session: SparkSession, lake: LakeMerge) -> MergeTarget[DataFrame]:
        routed = {share.table: share.target.routed for share in lake.shares}
        return LAKE_FORMAT.table(session, lake.name, self.config.source, routed)

    def _attempt(self, session: SparkSession, lake: LakeMerge) -> list[TableCut]:
        target = self._target(session, lake)
        state = target.load()
        if self.watch is not None:
            self.watch.begin(lake, target, state)
        batches = {share.table: self._counted(share, state) for share in lake.shares}
        translate_errors = [
            versions for share in lake.shares if (versions := self._schemas(share, batches[share.table], state))
        ]
        if state is None and not translate_errors:
            return []  # statements on tables that never had a row here, or the snapshot of one that was gone by then
        mode = merge_mode(lake, state, translate_errors)
        works = [self._work(share.table, mode, batches[share.table], state) for share in lake.shares]
        due = any(work.inputs for work in works)
        if state is not None and state.mode != mode and due:
            target.become(mode)
            return self._attempt(session, lake)  # that may have been a commit: all is decided on what the table is now
        if state is not None and due:
            state = self._renamed(target, lake, state)
        parts = [
            Contribution(share, work, self._schemas(share, batches[share.table], state), self._renames(share, state))
            for share, work in zip(lake.shares, works, strict=True)
        ]
        if state is not None:
            state = rekeyed(target, lake, parts, state)
        applied: Mapping[str, int] = {}
        if due:
            records = state.records if state is not None else 0
            suited = brief_settings(sum(part.rows for part in parts), records, self.config.merge.conf)
            with set_for(session, suited):
                applied = self._apply(session, target, lake, parts, state)
        after = target.load()
        if after is None or after.snapshot_id is None or not all(part.has_arrived(after) for part in parts):
            raise MergeError(
                "the table is not at the position that this merge was to reach",
                hint="Look at the table's snapshots: something else writes to it.",
                table=", ".join(lake.tables),
                lake_table=str(lake.name),
            )
        name = str(lake.name)
        found = (self._cut(after, name, table, applied.get(table, 0), None) for table in lake.tables)
        return [one for one in found if one is not None]

    def _counted(self, share: RoutedTable, state: LakeTable | None) -> Sequence[Batch]:
        """Return the batches that count for a source table."""
        if self.counts is None:
            return self.batches
        marker, renames = _marker(state, share.table), self._renames(share, state)

        def keys_of(batch: Batch) -> frozenset[tuple[str, ...]]:
            schemas = renamed_schemas(share.table, [batch], renames)
            keys = (routed_schema(schema, share.target).primary_key for schema in schemas)
            return frozenset(tuple(name.lower() for name in key) for key in keys)

        known = Marker() if is_foreign_to(marker, self.plan) else marker
        return self.counts(share.table, self.batches, known, state, keys_of)

    def _work(self, table: TableName, mode: Mode, batches: Sequence[Batch], state: LakeTable | None) -> TableWork:
        """Return what a table needs; of one that another life of the source wrote, all rows give way to a new snapshot."""
        marker = _marker(state, table)
        foreign = is_foreign_to(marker, self.plan)
        work = self.decide(table, mode, batches, Marker() if foreign else marker, self.plan)
        if not work.inputs:
            return work
        work = replace(work, marker=replace(work.marker, source_uuid=self.plan.source_uuid))
        return replace(work, rebuild_before=EVER) if foreign else work

    def _renames(self, share: RoutedTable, state: LakeTable | None) -> tuple[ColumnRename, ...]:
        """Return the renames of a source table's columns."""
        return known(state, share.table, renames_of(share.table, self.batches))

    def _renamed(self, target: MergeTarget[DataFrame], lake: LakeMerge, state: LakeTable) -> LakeTable:
        """Let the lake's columns follow those that got other names."""
        for share in lake.shares:
            translate_errors, marker = renames_of(share.table, self.batches), state.markers.get(share.table, Marker())
            others, keeps = others_of(lake, state, share.table), share.target.keeps
            drain = ObjectCursorStore(self.store).load(self.config.source, DRAIN) if translate_errors else None
            found = renaming(
                state, marker, translate_errors, keeps, others, drain.epoch_changes if drain is not None else ()
            )
            if found is not None:
                state = target.rename(state, found.names, found.renames)
        return state

    def _apply(
        self,
        session: SparkSession,
        target: MergeTarget[DataFrame],
        lake: LakeMerge,
        parts: Sequence[Contribution],
        state: LakeTable | None,
    ) -> dict[str, int]:
        """Bring the table's columns and rows to where the parts lead; returns the changes by source table."""
        # Also of a part that brings nothing: the commit repeats its marker.
        before = state.markers if state is not None else {}
        markers = {part.routed.table: before.get(part.routed.table, Marker()) for part in parts}
        due = [self._with_replay(part) for part in parts if part.work.inputs]
        had = state.columns if state is not None else ()
        columns = evolved(target, lake, [part for part, _ in due], state)
        applied = 0
        # One commit, but for tables of which some wait for a first snapshot that completes rows, and others do not.
        for to_come in sorted({self._waits(part) for part, _ in due}):
            group = [(part, pieces) for part, pieces in due if self._waits(part) is to_come]
            markers |= {part.routed.table: part.waiting(columns) for part, _ in group}
            fills = [
                one
                for part, _ in group
                if not is_alike(self.config.source, lake, part, state)
                for one in part.filled(self.config.source)
                if one.value is not None or column_of(one, had) is not None
            ]
            frames = [self._frame(session, part, pieces, columns) for part, pieces in group]
            frames += self._gone(session, lake, [part for part, _ in group], frames, columns, state)
            frame = reduce(_union, frames)
            commit = TableCommit(markers, self._superseded(lake, [part for part, _ in group], state), fills)
            if group[0][0].work.mode != "append":
                guard, at_most = any(part.work.guard for part, _ in group), sum(part.rows for part, _ in group)
                with self._reading_back(session, target, [part for part, _ in group], to_come=to_come) as reselect:
                    applied += target.upsert(Changes(frame, guard, at_most, to_come), commit, reselect)
            else:
                applied += target.append(frame, commit)
        if len(due) == 1:
            return {due[0][0].routed.table: applied}
        return {part.routed.table: part.rows for part, _ in due}

    @contextmanager
    def _reading_back(
        self, session: SparkSession, target: MergeTarget[DataFrame], parts: Sequence[Contribution], *, to_come: bool
    ) -> Iterator[ReadBack | None]:
        """Give what reads rows back, unless a snapshot is still to bring them all; its files go with the block."""
        if self.origin is None or to_come:
            yield None
            return
        shares = [(part.routed, newest_schema(part.routed.table, self.batches, part.renames)) for part in parts]
        translate_errors = [(share, schema) for share, schema in shares if schema is not None]
        origin, lag = self.origin, self.lag
        back = ReadBack(
            session, self.config, self.store, self.plan, origin, lag, self.say, target.evolve, translate_errors
        )
        try:
            yield back
        finally:
            back.remove()

    def _waits(self, part: Contribution) -> bool:
        """Whether a snapshot is still to bring all rows, also those that cannot be completed."""
        first = self.waits and self.config.start == "snapshot" and not part.work.marker.snapshots
        return part.work.mode != "append" and first

    def _schemas(
        self, share: RoutedTable, batches: Sequence[Batch], state: LakeTable | None
    ) -> tuple[TableSchema, ...]:
        """Return the versions of a source table's rows, as they are in the lake."""
        schemas = renamed_schemas(share.table, batches, self._renames(share, state))
        return tuple(routed_schema(schema, share.target) for schema in schemas)

    def _with_replay(self, part: Contribution) -> tuple[Contribution, list[MergeInput]]:
        """Add the windows that a late chunk must be merged with."""
        work, share = part.work, part.routed
        if work.replay is None:
            return part, list(work.inputs)
        drain = ObjectCursorStore(self.store).load(self.config.source, DRAIN)
        again = replayed_batches(self.store, self.config.source, work.table, work.replay, self.plan.quarantine, drain)
        schemas = renamed_schemas(work.table, again, part.renames)
        older = tuple(routed_schema(schema, share.target) for schema in schemas)
        pieces = (*work.inputs, *(MergeInput(batch, work.replay[0]) for batch in again))
        refuse_untold_swap(work.table, again, work.replay[0])
        before = statement_effects(work.table, (batch.manifest for batch in again), work.replay[0], Marker())
        # What was taken since the replay is taken of these as well.
        floor = max(filter(None, (work.reset_before, before.before)), default=None)
        work = following(replace(work, inputs=pieces), replace(before, before=floor))
        return replace(part, work=work, schemas=(*older, *part.schemas)), list(work.inputs)

    def _frame(
        self, session: SparkSession, part: Contribution, pieces: Sequence[MergeInput], columns: Sequence[LakeColumn]
    ) -> DataFrame:
        share = part.routed
        row = RowMapping(part.routed.target.keeps, share.constants(self.config.source), part.work.marker.reads)
        row = replace(row, ahead_until=part.work.ahead_until, renames=part.renames)
        frame = changes(session, self.store, share.table, pieces, columns, row)
        if found := filled_columns(part.filled(self.config.source), columns):
            frame = frame.withColumns(found)
        return filtered(frame, share.target.where, part.work.mode, share.table)

    def _gone(
        self,
        session: SparkSession,
        lake: LakeMerge,
        parts: Sequence[Contribution],
        frames: Sequence[DataFrame],
        columns: Sequence[LakeColumn],
        state: LakeTable | None,
    ) -> list[DataFrame]:
        """Return deletes of rows in ranges that are read again, which no chunk brings; a list of changes has entries instead."""
        found: list[DataFrame] = []
        for part, frame in zip(parts, frames, strict=True):
            whose = part.routed.constants(self.config.source)
            if part.work.mode == "append":
                emptied_at = entries(session, part.entries, columns, whose)
                found += [] if emptied_at is None else [emptied_at]
                continue
            if state is None or state.snapshot_id is None or not part.work.ranges:
                continue
            most = self.config.reselect.rule(part.routed.database, part.routed.name).max_keys
            gone = RangeDeletes(session, lake.name, state, columns, whose, self.origin, most)
            found += [gone.of(span, frame) for span in part.work.ranges]
        return found

    def _superseded(self, lake: LakeMerge, parts: Sequence[Contribution], state: LakeTable | None) -> list[Superseded]:
        """Return the rows that late first snapshots and those of released tables bring themselves, or a statement took."""
        found = []
        for part in parts:
            rules = part.superseded(self.config.source, state)
            if not rules and not part.entries:
                continue
            if is_alike(self.config.source, lake, part, state):
                raise MergeError(
                    "rows of a table must be deleted, because of a statement (such as TRUNCATE) or a late snapshot, and cannot be "
                    "distinguished from those of the other tables that share the lake table",
                    hint="Add keys that differ (server, schema, table) to the route and begin with a new lake table.",
                    table=part.routed.table,
                    lake_table=str(lake.name),
                )
            found += rules
        return found


def _marker(state: LakeTable | None, table: TableName) -> Marker:
    """Return what a lake table has of a source table; an empty marker for nothing."""
    return state.markers.get(table, Marker()) if state is not None else Marker()


def _dropped(state: LakeTable, table: TableName) -> Point | None:
    """Return where a source table was dropped, and not made again."""
    return state.markers.get(table, Marker()).dropped


def _union(one: DataFrame, other: DataFrame) -> DataFrame:
    """Put frames together; where one has no ``_absent``, its rows are whole."""
    return one.unionByName(other, allowMissingColumns=True)
