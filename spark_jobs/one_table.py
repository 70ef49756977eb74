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
from cdc_lib.errors import IncompatibleSchema, MergeConflict, MergeError
from cdc_lib.merge.emptied import emptied
from cdc_lib.merge.evolve import can_be_rekeyed
from cdc_lib.merge.modes import mode_of, refuse_change
from cdc_lib.merge.plan import Batch, Piece, TableWork, following, has_arrived, work_on
from cdc_lib.merge.renames import (
    at_point,
    behind,
    behind_point,
    known,
    newest_schema,
    now_called,
    renamed_schemas,
    renaming,
    told_by,
)
from cdc_lib.merge.routing import LakeMerge, Share, alike, lake_merges
from cdc_lib.merge.union import disagree, union
from cdc_lib.model.cursor import DRAIN
from cdc_lib.model.lake import MARKER_PROPERTY, LakeColumn, LakeTable, Marker, PlacedFill, Point
from cdc_lib.model.merge import MergePlan, TableCut
from cdc_lib.model.mode import Mode
from cdc_lib.model.renamed import Renamed
from cdc_lib.model.route import routed_schema
from cdc_lib.model.schema import TableSchema
from cdc_lib.ports import Filled, MergeTarget, ObjectStore, Superseded
from cdc_lib.store.cursors import ObjectCursorStore
from spark_jobs.batches import RowShare, changes, replayed_batches
from spark_jobs.brief import brief_settings, set_for
from spark_jobs.filters import filtered
from spark_jobs.gone import GoneRows
from spark_jobs.reselect import Origin, ReadBack, Say
from spark_jobs.tables.faults import told
from spark_jobs.tables.fill import filled_columns
from spark_jobs.tables.iceberg import IcebergTable

ATTEMPTS = 3
"""How often a table is merged again when another commit came first, before the whole job gives up."""


Decide = Callable[[str, Mode, Sequence[Batch], Marker, MergePlan], TableWork]
"""Says what a table needs: see :func:`cdc_lib.merge.plan.work_on`."""


@dataclass(frozen=True, slots=True)
class _Part:
    """What one source table brings to this merge of a lake table.

    Args:
        share: the source table.
        work: what it needs.
        schemas: the versions of its rows, as they stand in the lake.
        renames: of its columns, in order.
    """

    share: Share
    work: TableWork
    schemas: tuple[TableSchema, ...]
    renames: tuple[Renamed, ...] = ()


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
        mode = _mode(lake, stands, told)
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
            _Part(share, work, self._schemas(share, self.batches, stands), self._renames(share, stands))
            for share, work in zip(lake.shares, works, strict=True)
        ]
        if stands is not None:
            stands = _rekeyed(target, lake, parts, stands)
        applied: Mapping[str, int] = {}
        if due:
            records = stands.records if stands is not None else 0
            suited = brief_settings(sum(map(_rows, parts)), records, self.config.merge.conf)
            with set_for(session, suited):
                applied = self._apply(session, target, lake, parts, stands)
        after = target.load()
        if after is None or after.snapshot_id is None or not _arrived(after, parts):
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
            others, keeps = _others(lake, stands, share.table), share.target.keeps or _everything
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
        parts: Sequence[_Part],
        stands: LakeTable | None,
    ) -> dict[str, int]:
        """Bring the table's columns and rows to where the parts lead; returns the changes by source table."""
        # Also of a part that brings nothing: the commit repeats its marker.
        before = stands.markers if stands is not None else {}
        markers = {part.share.table: before.get(part.share.table, Marker()) for part in parts}
        due = [self._with_replay(part) for part in parts if part.work.pieces]
        columns = _evolved(target, lake, [part for part, _ in due], stands)
        applied = 0
        # One commit, but for tables of which some wait for a first snapshot that completes rows, and others do not.
        for to_come in sorted({self._waits(part) for part, _ in due}):
            group = [(part, pieces) for part, pieces in due if self._waits(part) is to_come]
            markers |= {part.share.table: _with_waiting(part, columns) for part, _ in group}
            fills = [one for part, _ in group if not self._alike(lake, part, stands) for one in self._filled(part)]
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
                    )
            else:
                applied += target.append(frame, markers=markers, supersedes=supersedes)
        if len(due) == 1:
            return {due[0][0].share.table: applied}
        return {part.share.table: _rows(part) for part, _ in due}

    @contextmanager
    def _reading_back(
        self, session: SparkSession, target: MergeTarget[DataFrame], parts: Sequence[_Part], *, to_come: bool
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

    def _waits(self, part: _Part) -> bool:
        """Whether a snapshot is still to bring all rows, also those that cannot be completed."""
        first = self.waits and self.config.start == "snapshot" and not part.work.marker.snapshots
        return part.work.mode != "append" and first

    def _schemas(self, share: Share, batches: Sequence[Batch], stands: LakeTable | None) -> tuple[TableSchema, ...]:
        """Return the versions of a source table's rows, as they stand in the lake."""
        schemas = renamed_schemas(share.table, batches, self._renames(share, stands))
        return tuple(routed_schema(schema, share.target) for schema in schemas)

    def _with_replay(self, part: _Part) -> tuple[_Part, list[Piece]]:
        """Add the windows that a late chunk must be merged with."""
        work, share = part.work, part.share
        if work.replay is None:
            return part, list(work.pieces)
        drain = ObjectCursorStore(self.store).load(self.config.source, DRAIN)
        again = replayed_batches(self.store, self.config.source, work.table, work.replay, self.plan.aside, drain)
        schemas = renamed_schemas(work.table, again, part.renames)
        older = tuple(routed_schema(schema, share.target) for schema in schemas)
        pieces = (*work.pieces, *(Piece(batch, work.replay[0]) for batch in again))
        before = emptied(work.table, (batch.manifest for batch in again), work.replay[0], Marker())
        # What was taken since the replay is taken of these as well.
        floor = max(filter(None, (work.emptied, before.before)), default=None)
        work = following(replace(work, pieces=pieces), replace(before, before=floor))
        return replace(part, work=work, schemas=(*older, *part.schemas)), list(work.pieces)

    def _frame(
        self, session: SparkSession, part: _Part, pieces: Sequence[Piece], columns: Sequence[LakeColumn]
    ) -> DataFrame:
        share = part.share
        row = RowShare(share.target.keeps or _everything, share.constants(self.config.source), part.work.marker.reads)
        row = replace(row, ahead=part.work.ahead, renames=part.renames)
        frame = changes(session, self.store, share.table, pieces, columns, row)
        if found := filled_columns(self._filled(part), columns):
            frame = frame.withColumns(found)
        return filtered(frame, share.target.where, part.work.mode, share.table)

    def _gone(
        self,
        session: SparkSession,
        lake: LakeMerge,
        parts: Sequence[_Part],
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

    def _filled(self, part: _Part) -> list[Filled]:
        """Return what rows of a source table have in columns that were added behind them."""
        share = part.share
        whose = share.constants(self.config.source)
        return [
            Filled(one.before, column, one.fill.value, whose)
            for one in part.work.fills
            if (share.target.keeps or _everything)(column := _column_of(part, one))
        ]

    def _alike(self, lake: LakeMerge, part: _Part, stands: LakeTable | None) -> bool:
        """Whether rows of a source table cannot be told from those of others that share the lake table."""
        carried: Mapping[str, str] = stands.carried if stands is not None else {}
        others = [(self.config.source, table) for table in lake.tables]
        others += [(source, table) for source, _, table in map(_owner, carried)]
        own = (self.config.source, part.share.table)
        return bool(alike(self.config.source, part.share, (other for other in others if other != own)))

    def _superseded(self, lake: LakeMerge, parts: Sequence[_Part], stands: LakeTable | None) -> list[Superseded]:
        """Return the rows that late first snapshots and those of released tables bring themselves, or a statement took."""
        found = []
        for part in parts:
            work = part.work
            whose = part.share.constants(self.config.source)
            rules = _rules(work, whose, standing=_has_rows_of(stands, part.share.table))
            if not rules:
                continue
            if self._alike(lake, part, stands):
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


def _rules(work: TableWork, whose: Mapping[str, str], *, standing: bool) -> list[Superseded]:
    """Return which rows of a source table are taken out, or end; of these also such as come in the same merge."""
    if work.mode in ("soft_delete", "history"):
        found = [Superseded(Point(one.epoch, one.file, one.offset), whose, at=one.at) for one in work.gone]
        anew = work.anew if standing else None
        return found + ([Superseded(anew, whose, at=work.anew_at, anew=True)] if anew is not None else [])
    if not standing:
        return []
    before = max(filter(None, (work.anew or work.supersedes, work.emptied)), default=None)
    found = []
    if before is not None:
        found.append(Superseded(before, whose, reads=work.anew is not None or work.emptied is not None))
    if work.again is not None:
        found.append(Superseded(work.again[1], whose, reads=work.again_reads, since=work.again[0]))
    return found


def _mode(lake: LakeMerge, stands: LakeTable | None, told: Sequence[Sequence[TableSchema]]) -> Mode:
    """Return the mode in which a lake table is merged: the source file's, which a table that stands must be able to follow.

    Raises:
        ConfigError: the source file gives it two.
        MergeError: it cannot follow.
    """
    if not told:
        return stands.mode if stands is not None else "mirror"
    schema = told[0][-1]
    wanted = mode_of(schema, lake.mode)
    if stands is None:
        return wanted
    if bool(stands.primary_key) != bool(schema.primary_key):
        return stands.mode  # another key is refused where columns are compared
    refuse_change(stands.mode, wanted, lake.shares[0].table, str(lake.name))
    return wanted


def _has_rows_of(stands: LakeTable | None, table: str) -> bool:
    """Whether the lake may hold rows of a source table: of a shard that is new it has none yet, and none can be taken out."""
    marker = stands.markers.get(table, Marker()) if stands is not None else Marker()
    return marker.merged_to is not None or bool(marker.snapshots)


def _union(one: DataFrame, other: DataFrame) -> DataFrame:
    """Put frames together; where one has no ``_absent``, its rows are whole."""
    return one.unionByName(other, allowMissingColumns=True)


def _everything(_: str) -> bool:
    return True


def _column_of(part: _Part, filled: PlacedFill) -> str:
    """Return what a column that was added is called now."""
    place = at_point(behind_point(filled.before))
    return now_called(filled.fill.column, behind(place, part.renames))


def _with_waiting(part: _Part, columns: Iterable[LakeColumn]) -> Marker:
    """Return a part's marker, with the values for columns that the lake table does not have yet."""
    have = {column.name.lower() for column in columns}
    waiting = ((one, column) for one in part.work.fills if (column := _column_of(part, one)).lower() not in have)
    keeps = part.share.target.keeps or _everything
    return replace(part.work.marker, waiting=tuple(one for one, column in waiting if keeps(column)))


def _arrived(stands: LakeTable, parts: Iterable[_Part]) -> bool:
    return all(has_arrived(stands.markers[part.share.table], part.work) for part in parts)


def _rows(part: _Part) -> int:
    """Count what a source table brought; after a merge of several nobody can tell whose rows were the last of their keys."""
    files = (file for piece in part.work.pieces for file in piece.batch.manifest.files)
    return sum(file.rows for file in files if file.table == part.share.table)


def _evolved(
    target: MergeTarget[DataFrame], lake: LakeMerge, parts: Sequence[_Part], stands: LakeTable | None
) -> tuple[LakeColumn, ...]:
    """Give the table the columns of all parts; what does not fit together stops it before anything is changed.

    Raises:
        IncompatibleSchema: names the source tables that do not fit together.
    """
    shards = [(part.share.table, schema) for part in parts for schema in part.schemas]
    if len(parts) > 1 and shards:
        union(str(lake.name), shards, lake.mode)
    renames = [one for part in parts for one in part.renames]
    columns = (stands or target.create(shards[0][1], lake.mode, renames)).columns
    for table, schema in shards:
        try:
            columns = target.evolve(schema).columns
        except IncompatibleSchema as error:
            others = _others(lake, stands, table)
            raise disagree(error, str(lake.name), (table, *others)) if others else error from error
    return columns


def _rekeyed(target: MergeTarget[DataFrame], lake: LakeMerge, parts: Sequence[_Part], stands: LakeTable) -> LakeTable:
    """Let the lake table have the key of a snapshot that replaces all of its rows."""
    if len(parts) > 1 or parts[0].work.anew is None or _others(lake, stands, parts[0].share.table):
        return stands
    keys = {tuple(name.lower() for name in schema.primary_key) for schema in parts[0].schemas}
    if len(keys) != 1 or keys == {tuple(name.lower() for name in stands.primary_key)}:
        return stands
    schema = parts[0].schemas[-1]
    return target.rekey(schema) if can_be_rekeyed(stands, schema) else stands


def _others(lake: LakeMerge, stands: LakeTable | None, table: str) -> list[str]:
    """Return the other source tables that share a lake table, as far as its markers name them."""
    carried: Mapping[str, str] = stands.carried if stands is not None else {}
    named = [table for _, _, table in map(_owner, carried) if table]
    return sorted({*named, *lake.tables} - {table})


def _owner(marker: str) -> tuple[str, str, str]:
    """Return source, slash and table of a marker's property; no table where it does not name one."""
    return marker.removeprefix(f"{MARKER_PROPERTY}.").partition("/")
