"""One lake table of a merge, from its batches to its commit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt

from cdc_lib.config.source import SourceConfig
from cdc_lib.errors import MergeConflict, MergeError
from cdc_lib.merge.emptied import emptied
from cdc_lib.merge.part import Part
from cdc_lib.merge.plan import Batch, Piece, TableWork, following, refuse_untold_swap, work_on
from cdc_lib.merge.renames import (
    known,
    newest_schema,
    renamed_schemas,
    renaming,
    told_by,
)
from cdc_lib.merge.routing import LakeMerge, Share, lake_merges
from cdc_lib.merge.shape import evolved, is_alike, merge_mode, others_of, rekeyed
from cdc_lib.model.cursor import DRAIN
from cdc_lib.model.lake import LakeColumn, LakeTable, Marker, Point
from cdc_lib.model.merge import MergePlan, TableCut
from cdc_lib.model.mode import Mode
from cdc_lib.model.renamed import Renamed
from cdc_lib.model.route import routed_schema
from cdc_lib.model.schema import TableSchema
from cdc_lib.ports import MergeTarget, ObjectStore, Superseded
from cdc_lib.store.cursors import ObjectCursorStore
from spark_jobs.batches import RowShare, changes, replayed_batches
from spark_jobs.brief import brief_settings
from spark_jobs.filters import filtered
from spark_jobs.gone import GoneRows
from spark_jobs.reselect import Origin, ReadBack, Say
from spark_jobs.session import set_for
from spark_jobs.tables.faults import told
from spark_jobs.tables.fill import column_of, filled_columns
from spark_jobs.tables.iceberg import IcebergTable

ATTEMPTS = 3
"""How often a table is merged again when another commit came first, before the whole job gives up."""


Decide = Callable[[str, Mode, Sequence[Batch], Marker, MergePlan], TableWork]
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
    """

    config: SourceConfig
    store: ObjectStore
    plan: MergePlan
    batches: Sequence[Batch]
    origin: Origin | None = None
    say: Say = print
    lag: timedelta | None = None
    decide: Decide = work_on
    waits: bool = True

    def run(self, session: SparkSession, lake: LakeMerge) -> list[TableCut]:
        """Merge one lake table, and again when another commit came first.

        Returns:
            The lake table as it stands, once for each source table.

        Raises:
            MergeError: and its kinds; the table stands as it stood.
            StoreError: a batch or the lake's storage cannot be read.
            ConfigError: a predicate of the source file cannot be used.
        """
        again = Retrying(stop=stop_after_attempt(ATTEMPTS), retry=retry_if_exception_type(MergeConflict), reraise=True)
        with told("merge", ", ".join(lake.tables)):
            return again(self._attempt, session, lake)

    def standing(self, session: SparkSession, cuts: Iterable[TableCut]) -> list[TableCut]:
        """Return the tables that this merge has nothing for as they stand now, without those that are dropped.

        Their rows are those of the cut before; maintenance, or the merge of another source table, may have made another
        snapshot since. A lake table that no route leads to any more is left out.
        """
        cuts = list(cuts)
        known = {str(lake.name): lake for lake in lake_merges(self.config, (cut.table for cut in cuts))}
        found = {
            name: self._target(session, known[name]).load() for name in {c.lake_table for c in cuts} & known.keys()
        }
        return [
            TableCut(
                cut.table,
                cut.lake_table,
                stands.snapshot_id,
                0,
                cut.aside,
                self._ahead(stands, cut.table),
                _dropped(stands, cut.table),
                stands.mode,
            )
            for cut in cuts
            if (stands := found.get(cut.lake_table)) is not None and stands.snapshot_id is not None
        ]

    def _ahead(self, stands: LakeTable, table: str) -> Point | None:
        """Return up to which point rows that were re-selected are ahead of the plan's end; None when none is."""
        read = stands.markers.get(table, Marker()).reselected
        return read.high if read is not None and read.high > Point.at(self.plan.epoch, self.plan.stop) else None

    def _target(self, session: SparkSession, lake: LakeMerge) -> MergeTarget[DataFrame]:
        routed = {share.table: share.target.routed for share in lake.shares}
        return IcebergTable(session, lake.name, self.config.source, routed)

    def _attempt(self, session: SparkSession, lake: LakeMerge) -> list[TableCut]:
        target = self._target(session, lake)
        stands = target.load()
        told = [versions for share in lake.shares if (versions := self._schemas(share, self.batches, stands))]
        if stands is None and not told:
            return []  # statements on tables that never had a row here, or the snapshot of one that was gone by then
        mode = merge_mode(lake, stands, told)
        markers = stands.markers if stands is not None else {}
        works = [
            self.decide(share.table, mode, self.batches, markers.get(share.table, Marker()), self.plan)
            for share in lake.shares
        ]
        due = any(work.pieces for work in works)
        if stands is not None and stands.mode != mode and due:
            stands = target.become(mode)
        if stands is not None and due:
            stands = self._renamed(target, lake, stands)
        parts = [
            Part(share, work, self._schemas(share, self.batches, stands), self._renames(share, stands))
            for share, work in zip(lake.shares, works, strict=True)
        ]
        if stands is not None:
            stands = rekeyed(target, lake, parts, stands)
        applied: Mapping[str, int] = {}
        if due:
            records = stands.records if stands is not None else 0
            suited = brief_settings(sum(part.rows for part in parts), records, self.config.merge.conf)
            with set_for(session, suited):
                applied = self._apply(session, target, lake, parts, stands)
        after = target.load()
        if after is None or after.snapshot_id is None or not all(part.has_arrived(after) for part in parts):
            raise MergeError(
                "the table does not stand where this merge was to bring it",
                hint="Look at the table's snapshots: something else writes to it.",
                table=", ".join(lake.tables),
                lake_table=str(lake.name),
            )
        return [
            TableCut(
                table,
                str(lake.name),
                after.snapshot_id,
                applied.get(table, 0),
                ahead=self._ahead(after, table),
                dropped=_dropped(after, table),
                mode=after.mode,
            )
            for table in lake.tables
        ]

    def _renames(self, share: Share, stands: LakeTable | None) -> tuple[Renamed, ...]:
        """Return the renames of a source table's columns."""
        return known(stands, share.table, told_by(share.table, self.batches))

    def _renamed(self, target: MergeTarget[DataFrame], lake: LakeMerge, stands: LakeTable) -> LakeTable:
        """Let the lake's columns follow those that got other names."""
        for share in lake.shares:
            told, marker = told_by(share.table, self.batches), stands.markers.get(share.table, Marker())
            others, keeps = others_of(lake, stands, share.table), share.target.keeps
            drain = ObjectCursorStore(self.store).load(self.config.source, DRAIN) if told else None
            found = renaming(stands, marker, told, keeps, others, drain.switches if drain is not None else ())
            if found is not None:
                stands = target.rename(stands, found.names, found.renames)
        return stands

    def _apply(
        self,
        session: SparkSession,
        target: MergeTarget[DataFrame],
        lake: LakeMerge,
        parts: Sequence[Part],
        stands: LakeTable | None,
    ) -> dict[str, int]:
        """Bring the table's columns and rows to where the parts lead; returns the changes by source table."""
        # Also of a part that brings nothing: the commit repeats its marker.
        before = stands.markers if stands is not None else {}
        markers = {part.share.table: before.get(part.share.table, Marker()) for part in parts}
        due = [self._with_replay(part) for part in parts if part.work.pieces]
        had = stands.columns if stands is not None else ()
        columns = evolved(target, lake, [part for part, _ in due], stands)
        applied = 0
        # One commit, but for tables of which some wait for a first snapshot that completes rows, and others do not.
        for to_come in sorted({self._waits(part) for part, _ in due}):
            group = [(part, pieces) for part, pieces in due if self._waits(part) is to_come]
            markers |= {part.share.table: part.waiting(columns) for part, _ in group}
            fills = [
                one
                for part, _ in group
                if not is_alike(self.config.source, lake, part, stands)
                for one in part.filled(self.config.source)
                if one.value is not None or column_of(one, had) is not None
            ]
            frames = [self._frame(session, part, pieces, columns) for part, pieces in group]
            frames += self._gone(session, lake, [part for part, _ in group], frames, columns, stands)
            frame = reduce(_union, frames)
            supersedes = self._superseded(lake, [part for part, _ in group], stands)
            if group[0][0].work.mode != "append":
                guard = any(part.work.guard for part, _ in group)
                with self._reading_back(session, target, [part for part, _ in group], to_come=to_come) as reselect:
                    applied += target.upsert(
                        frame,
                        markers=markers,
                        guard=guard,
                        snapshot_to_come=to_come,
                        supersedes=supersedes,
                        fills=fills,
                        reselect=reselect,
                        most=sum(part.rows for part, _ in group),
                    )
            else:
                applied += target.append(frame, markers=markers, supersedes=supersedes)
        if len(due) == 1:
            return {due[0][0].share.table: applied}
        return {part.share.table: part.rows for part, _ in due}

    @contextmanager
    def _reading_back(
        self, session: SparkSession, target: MergeTarget[DataFrame], parts: Sequence[Part], *, to_come: bool
    ) -> Iterator[ReadBack | None]:
        """Give what reads rows back, unless a snapshot is still to bring them all; its files go with the block."""
        if self.origin is None or to_come:
            yield None
            return
        shares = [(part.share, newest_schema(part.share.table, self.batches, part.renames)) for part in parts]
        told = [(share, schema) for share, schema in shares if schema is not None]
        origin, lag = self.origin, self.lag
        back = ReadBack(session, self.config, self.store, self.plan, origin, lag, self.say, target.evolve, told)
        try:
            yield back
        finally:
            back.remove()

    def _waits(self, part: Part) -> bool:
        """Whether a snapshot is still to bring all rows, also those that cannot be completed."""
        first = self.waits and self.config.start == "snapshot" and not part.work.marker.snapshots
        return part.work.mode != "append" and first

    def _schemas(self, share: Share, batches: Sequence[Batch], stands: LakeTable | None) -> tuple[TableSchema, ...]:
        """Return the versions of a source table's rows, as they stand in the lake."""
        schemas = renamed_schemas(share.table, batches, self._renames(share, stands))
        return tuple(routed_schema(schema, share.target) for schema in schemas)

    def _with_replay(self, part: Part) -> tuple[Part, list[Piece]]:
        """Add the windows that a late chunk must be merged with."""
        work, share = part.work, part.share
        if work.replay is None:
            return part, list(work.pieces)
        drain = ObjectCursorStore(self.store).load(self.config.source, DRAIN)
        again = replayed_batches(self.store, self.config.source, work.table, work.replay, self.plan.aside, drain)
        schemas = renamed_schemas(work.table, again, part.renames)
        older = tuple(routed_schema(schema, share.target) for schema in schemas)
        pieces = (*work.pieces, *(Piece(batch, work.replay[0]) for batch in again))
        refuse_untold_swap(work.table, again, work.replay[0])
        before = emptied(work.table, (batch.manifest for batch in again), work.replay[0], Marker())
        # What was taken since the replay is taken of these as well.
        floor = max(filter(None, (work.emptied, before.before)), default=None)
        work = following(replace(work, pieces=pieces), replace(before, before=floor))
        return replace(part, work=work, schemas=(*older, *part.schemas)), list(work.pieces)

    def _frame(
        self, session: SparkSession, part: Part, pieces: Sequence[Piece], columns: Sequence[LakeColumn]
    ) -> DataFrame:
        share = part.share
        row = RowShare(part.share.target.keeps, share.constants(self.config.source), part.work.marker.reads)
        row = replace(row, ahead=part.work.ahead, renames=part.renames)
        frame = changes(session, self.store, share.table, pieces, columns, row)
        if found := filled_columns(part.filled(self.config.source), columns):
            frame = frame.withColumns(found)
        return filtered(frame, share.target.where, part.work.mode, share.table)

    def _gone(
        self,
        session: SparkSession,
        lake: LakeMerge,
        parts: Sequence[Part],
        frames: Sequence[DataFrame],
        columns: Sequence[LakeColumn],
        stands: LakeTable | None,
    ) -> list[DataFrame]:
        """Return deletes of rows in ranges that are read again, which no chunk brings; a list of changes keeps its rows."""
        found = []
        for part, frame in zip(parts, frames, strict=True):
            if stands is None or stands.snapshot_id is None or part.work.mode == "append" or not part.work.spans:
                continue
            share, most = part.share, self.config.reselect.rule(part.share.database, part.share.name).max_keys
            whose = share.constants(self.config.source)
            gone = GoneRows(session, lake.name, stands, columns, whose, self.origin, most)
            found += [gone.of(span, frame) for span in part.work.spans]
        return found

    def _superseded(self, lake: LakeMerge, parts: Sequence[Part], stands: LakeTable | None) -> list[Superseded]:
        """Return the rows that late first snapshots and those of released tables bring themselves, or a statement took."""
        found = []
        for part in parts:
            rules = part.superseded(self.config.source, stands)
            if not rules:
                continue
            if is_alike(self.config.source, lake, part, stands):
                raise MergeError(
                    "rows of a table are to be taken out, for a statement (TRUNCATE, say) or a late snapshot, and cannot be told "
                    "from those of the other tables that share the lake table",
                    hint="Add keys that differ (server, schema, table) to the route and begin with a new lake table.",
                    table=part.share.table,
                    lake_table=str(lake.name),
                )
            found += rules
        return found


def _dropped(stands: LakeTable, table: str) -> Point | None:
    """Return where a source table was dropped, and not made again."""
    return stands.markers.get(table, Marker()).dropped


def _union(one: DataFrame, other: DataFrame) -> DataFrame:
    """Put frames together; where one has no ``_absent``, its rows are whole."""
    return one.unionByName(other, allowMissingColumns=True)
