"""Compares the rows that the merge in flight changed with the source, once its cut is published and before it is acknowledged.

    keys of the batches ─▶ lake rows as of the cut, source rows now ─▶ rows that differ ─▶ looks ─▶ ``after_merge.json``

Nothing but that document is written. The source is read in one read-only session, by primary key.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from cdc_lib.config import Credentials, SourceConfig, StoreKeys
from cdc_lib.errors import CdcError, ServerChanged, SourceError
from cdc_lib.lake.catalog import open_catalog, translate_errors
from cdc_lib.lake.routing import LakeMerge, RoutedTable, lake_merges
from cdc_lib.merge.load import load_plan
from cdc_lib.merge.plan import StoredBatch, tables_of
from cdc_lib.merge.planner import plan_of
from cdc_lib.model.changed_rows import KEPT_DIFFERENCES, AfterMerge, ChangedRows, OpenRow, WrongRow
from cdc_lib.model.cursor import DRAIN, LAKE, Cursor
from cdc_lib.model.lake_table import LakeTable, Marker
from cdc_lib.model.merge_plan import Cut, MergePlan, TableCut
from cdc_lib.model.position import Point
from cdc_lib.model.table_name import TableName
from cdc_lib.mysql.connection import Session
from cdc_lib.mysql.information_schema import InformationSchema
from cdc_lib.mysql.read_only_session import answer, reading
from cdc_lib.mysql.server_facts import ServerFacts, read_binlog_end, read_facts
from cdc_lib.mysql.watermark import low_watermark
from cdc_lib.plan.start import address_of
from cdc_lib.ports import CursorStore, ObjectStore
from cdc_lib.store.after_merge import keep_after_merge, last_after_merge
from cdc_lib.store.cursors import required_cursor
from cdc_lib.store.cuts import cut_of
from cdc_lib.verify.changed.cell_text import row_text
from cdc_lib.verify.changed.half_looks import Half, Outcome, digest, later, now
from cdc_lib.verify.changed.keys import changed_keys
from cdc_lib.verify.changed.lake_rows import LakeRows, rows_of
from cdc_lib.verify.classify import Look, RowState, Verdict
from cdc_lib.verify.comparability import Subject
from cdc_lib.verify.differences import findings
from cdc_lib.verify.source_checksums import SourceSums
from cdc_lib.verify.subjects import indistinct_rows, subject_at

BEFORE_ALL = Point(0, 0, 0)

PATIENCE_SECONDS = 60.0
"""Read timeout of one statement: a merge does not wait long for a source that does not answer."""


@dataclass(frozen=True, slots=True)
class _AskedRow:
    """A row to compare: of this merge, or open since an earlier one."""

    key: tuple[str, ...]
    batch: str
    merge_id: str
    kept: OpenRow | None = None


@dataclass(frozen=True, slots=True)
class _Merge:
    """The merge in flight, with its cut, and the last comparison of each pair of source table and lake table before it."""

    plan: MergePlan
    cut: Cut
    drain: Cursor
    batches: Sequence[StoredBatch]
    earlier: Mapping[tuple[TableName, str], ChangedRows]


def compare_changed_rows(
    config: SourceConfig, credentials: Credentials, store: ObjectStore, cursors: CursorStore, keys: StoreKeys | None
) -> AfterMerge | None:
    """Compare the rows that the merge in flight changed and store the result; None if it has published no cut.

    Args:
        config: the source.
        credentials: its log-in.
        store: holds batches and cuts, and gets the result.
        cursors: the cursor store.
        keys: of the store's S3 account, which the lake may be in; those of the environment without.

    Raises:
        CdcError: the batches, the source or the lake cannot be read.
    """
    lake = cursors.load(config.source, LAKE)
    if lake is None or not lake.is_merging:
        return None
    plan = plan_of(lake)
    cut = cut_of(store, config.source, plan.merge_id)
    if cut is None:
        return None
    drain = required_cursor(cursors, config.source, DRAIN)
    before = last_after_merge(store, config.source)
    merge = _Merge(plan, cut, drain, load_plan(store, plan), before.by_table if before is not None else {})
    found = _MergedTables(config, credentials, store, merge).tables(keys)
    known = {**merge.earlier, **{(one.table, one.lake_table): one for one in found}}
    there = {(one.table, one.lake_table) for one in cut.tables}
    tables = tuple(one for pair, one in sorted(known.items()) if pair in there)
    after = AfterMerge(config.source, plan.merge_id, datetime.now(UTC), "", tables)
    keep_after_merge(store, after)
    return after


@dataclass(frozen=True, slots=True)
class _MergedTables:
    """Compares the tables of one merge."""

    config: SourceConfig
    credentials: Credentials
    store: ObjectStore
    merge: _Merge

    def tables(self, keys: StoreKeys | None) -> list[ChangedRows]:
        """Return what was found in each table that has rows to compare."""
        changed = set(tables_of(self.merge.batches))
        chosen = {(one.table, one.lake_table): one for one in self.merge.cut.tables if self._has_rows(one, changed)}
        if not chosen:
            return []
        config = self.config.at(*address_of(self.config, self.merge.drain))
        with translate_errors(config.source):
            lake_rows = LakeRows(open_catalog(config, keys), config.source)
        try:
            with reading(config.server, self.credentials, PATIENCE_SECONDS) as connection:
                facts = read_facts(connection, config.server)
                if not facts.identity.is_same_server(self.merge.drain.identity):
                    raise ServerChanged(
                        f"the cursor belongs to {self.merge.drain.identity}, but {facts.identity} answers",
                        hint="The next plan follows the failover, or reports why it cannot.",
                        source=config.source,
                    )
                one = _Tables(self.config, self.credentials, self.store, self.merge, lake_rows, connection, facts)
                return [
                    one.compared(lake, routed, chosen[routed.table, str(lake.name)])
                    for lake in lake_merges(self.config, [cut.table for cut in self.merge.cut.tables])
                    for routed in lake.routed_tables
                    if (routed.table, str(lake.name)) in chosen
                ]
        finally:
            lake_rows.catalog.close()

    def _has_rows(self, one: TableCut, changed: Collection[TableName]) -> bool:
        """Whether a table is among those that the merge changed, or an earlier merge left rows of it open."""
        if not self.config.verify.names(*one.table.pair):
            return False
        earlier = self.merge.earlier.get((one.table, one.lake_table))
        return one.table in changed or (earlier is not None and bool(earlier.open_rows))


@dataclass(frozen=True, slots=True)
class _Tables:
    """Compares tables over one session."""

    config: SourceConfig
    credentials: Credentials
    store: ObjectStore
    merge: _Merge
    lake_rows: LakeRows
    connection: Session
    facts: ServerFacts

    def compared(self, lake: LakeMerge, routed: RoutedTable, cut: TableCut) -> ChangedRows:
        """Compare the rows of one table, or report why that cannot be done.

        Raises:
            SourceError: the source cannot be read.
        """
        whole, earlier = self.merge.cut, self.merge.earlier.get((cut.table, cut.lake_table))
        empty = ChangedRows(
            cut.table, cut.lake_table, whole.merge_id, whole.epoch, whole.position, whole.gtid_set, datetime.now(UTC)
        )
        if earlier is not None:
            empty = replace(
                empty, differences=earlier.differences, equal_position=earlier.equal_position,
                equal_epoch=earlier.equal_epoch, equal_gtid_set=earlier.equal_gtid_set, equal_at=earlier.equal_at,
            )  # fmt: skip
        try:
            why, opened = self._skipped(lake, routed, cut), None
            if not why:
                opened = self.lake_rows.open(lake.name, cut.table, cut.lake_snapshot, routed=routed.target.routed)
                subject = self._subject(lake, routed, opened.state)
                if isinstance(subject, Subject):
                    looks = _Looks(self.connection, self.facts, self.merge, subject, opened.state.marker)
                    asked, sampled, changes = self._asked(subject, earlier)
                    lake_states = rows_of(opened, subject, {name: one.key for name, one in asked.items()})
                    result = replace(empty, changes=changes, compared=len(asked), sampled=sampled)
                    return looks.judged(result, asked, lake_states, self._most_open)
                why = subject
        except SourceError:
            raise
        except CdcError as error:
            why = error.message
        return replace(empty, skipped=why)

    @property
    def _most_open(self) -> int:
        """How many rows stay open at most, so that the next merge's own rows are compared too."""
        return max(1, self.config.verify.after_merge // 2)

    def _skipped(self, lake: LakeMerge, routed: RoutedTable, cut: TableCut) -> str:
        if cut.dropped is not None:
            return "it was dropped at the source"
        if cut.as_of is not None:
            return "it is quarantined, or released and not in the lake again yet; see cdc status"
        return indistinct_rows(self.config.source, lake, routed)

    def _subject(self, lake: LakeMerge, routed: RoutedTable, state: LakeTable) -> Subject | str:
        reader = InformationSchema(self.connection)
        subject = subject_at(self.config, self.credentials, reader, lake, routed, lambda: state)
        if isinstance(subject, str):
            return subject
        if subject.how == "copies":
            return "it has no key by which its rows could be found"
        if subject.folded:
            return "every change is kept (append), so that a key has many rows"
        return subject.as_in(state)

    def _asked(self, subject: Subject, earlier: ChangedRows | None) -> tuple[dict[str, _AskedRow], bool, int]:
        """Return the rows to compare by their names, whether the merge changed more, and its number of changes."""
        most, merge_id = self.config.verify.after_merge, self.merge.plan.merge_id
        kept = earlier.open_rows if earlier is not None else ()
        seed = f"{merge_id} {subject.schema.name}"
        found = changed_keys(self.store, subject, self.merge.batches, max(1, most - len(kept)), seed)
        asked = {row_text(subject.keys, one.key): _AskedRow(one.key, one.batch, one.merge_id, one) for one in kept}
        for one in found.chosen:
            name = row_text(subject.keys, one.texts)
            before = asked.get(name)
            asked[name] = _AskedRow(one.texts, one.batch, merge_id, before.kept if before is not None else None)
        return asked, found.sampled or bool(found.unusable), found.changes


@dataclass(frozen=True, slots=True)
class _Looks:
    """Judges the rows of one table."""

    connection: Session
    facts: ServerFacts
    merge: _Merge
    subject: Subject
    marker: Marker

    def judged(
        self, result: ChangedRows, asked: Mapping[str, _AskedRow], lake: Mapping[str, RowState], most_open: int
    ) -> ChangedRows:
        """Return the result with the rows that are wrong, and those that stay open."""
        source = self._source({name: one.key for name, one in asked.items()})
        differing = [name for name in asked if not _same(source.get(name), lake.get(name))]
        outcomes = {name: self._kept(asked[name], lake.get(name)) for name in differing}
        open_names = [name for name, one in outcomes.items() if one.verdict is Verdict.OPEN]
        halves, seen = self._read_again({n: asked[n].key for n in open_names if not outcomes[n].waits})
        source = {**source, **seen}
        for name, half in halves.items():
            verdict = now(half, lake.get(name), self.lake_at)
            outcomes[name] = replace(outcomes[name], verdict=verdict)
        still = [name for name in open_names if outcomes[name].verdict is Verdict.OPEN]
        wrong = [name for name, one in outcomes.items() if one.verdict is Verdict.WRONG]
        rows = tuple(self._open_row(asked[name], outcomes[name], halves.get(name)) for name in still[:most_open])
        record = tuple(self._wrong_row(name, asked[name], source, lake) for name in wrong[:KEPT_DIFFERENCES])
        result = replace(
            result, at=datetime.now(UTC), in_flight=len(still), wrong=len(wrong), open_rows=rows,
            differences=(*result.differences, *record)[-KEPT_DIFFERENCES:],
        )  # fmt: skip
        if wrong or not asked:
            return result
        return replace(
            result, equal_position=result.position, equal_epoch=result.epoch, equal_gtid_set=result.gtid_set,
            equal_at=result.at,
        )  # fmt: skip

    @property
    def lake_at(self) -> Point:
        """The point up to which the lake table has all changes, and no later one; before all if some rows may have later ones.

        Rows that were read by SELECT may show changes up to the high watermark that was read after them.
        """
        at = Point.at(self.merge.cut.epoch, self.merge.cut.position)
        reads = [one.read_to for one in self.marker.snapshots]
        if self.marker.reselected is not None:
            reads.append(self.marker.reselected.high)
        return BEFORE_ALL if any(one > at for one in reads) else at

    def _source(self, keys: Mapping[str, tuple[str, ...]]) -> dict[str, RowState]:
        sums = SourceSums(self.connection, self.subject, chunk_rows=len(keys) or 1)
        return sums.rows(keys)

    def _read_again(self, keys: Mapping[str, tuple[str, ...]]) -> tuple[dict[str, Half], dict[str, RowState]]:
        """Read rows between two watermarks, for the looks of rows that differ."""
        if not keys:
            return {}, {}
        low = Point.at(self.merge.drain.epoch, low_watermark(self.connection, self.facts))
        rows = self._source(keys)
        answer(self.connection, "COMMIT")  # on MariaDB the watermark began a transaction
        high = Point.at(self.merge.drain.epoch, read_binlog_end(self.connection, self.facts))
        return {name: Half(low, high, rows.get(name)) for name in keys}, rows

    def _kept(self, one: _AskedRow, lake: RowState | None) -> Outcome:
        return later(one.kept, lake, self.lake_at) if one.kept is not None else Outcome(Verdict.OPEN)

    def _open_row(self, one: _AskedRow, outcome: Outcome, half: Half | None) -> OpenRow:
        if half is None:
            if one.kept is None:
                raise AssertionError(one)
            return replace(one.kept, batch=one.batch, merge_id=one.merge_id)
        source = digest(half.source) if half.source is not None else ""
        return OpenRow(one.key, one.batch, one.merge_id, half.low, half.high, source, outcome.before)

    def _wrong_row(
        self, name: str, one: _AskedRow, source: Mapping[str, RowState], lake: Mapping[str, RowState]
    ) -> WrongRow:
        cut = self.merge.cut
        at = Point.at(cut.epoch, cut.position)
        (row,) = findings(self.subject, {name: one.key}, {name: Look(at, at, at, source, lake)})["rows"]
        columns = tuple(cell.column for cell in row.cells)
        return WrongRow(
            row.kind, dict(row.key), columns, one.batch, one.merge_id, cut.epoch, cut.position, datetime.now(UTC)
        )


def _same(source: RowState | None, lake: RowState | None) -> bool:
    if source is None or lake is None:
        return source is lake
    return source.cells == lake.cells and source.copies == lake.copies
