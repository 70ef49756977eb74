"""Compares the rows that the merge in flight changed with the source, once its cut is published and before it is acknowledged.

    keys of the batches ─▶ lake rows as of the cut, source rows now ─▶ rows that differ ─▶ looks ─▶ ``after_merge.json``

Nothing but that document is written. The source is read in one read-only session, by primary key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from cdc_lib.config import StoreKeys
from cdc_lib.errors import CdcError, SourceError
from cdc_lib.lake.catalog import open_catalog, translate_errors
from cdc_lib.lake.routing import LakeMerge, RoutedTable, lake_merges
from cdc_lib.merge.load import load_plan
from cdc_lib.merge.plan import StoredBatch, tables_of
from cdc_lib.merge.planner import plan_of
from cdc_lib.model.changed_rows import KEPT_DIFFERENCES, AfterMerge, ChangedRows
from cdc_lib.model.cursor import DRAIN, LAKE, Cursor
from cdc_lib.model.lake_table import LakeTable
from cdc_lib.model.merge_plan import Cut, MergePlan, TableCut
from cdc_lib.model.table_name import TableName
from cdc_lib.ports import ObjectStore
from cdc_lib.source import Source
from cdc_lib.store.after_merge import keep_after_merge, last_after_merge
from cdc_lib.store.cuts import cut_of
from cdc_lib.verify.cell_arrays import names_of
from cdc_lib.verify.changed.keys import changed_keys
from cdc_lib.verify.comparability import Subject
from cdc_lib.verify.lake_tables import LakeTables
from cdc_lib.verify.looks import AskedRow, Judged, Looks
from cdc_lib.verify.source_checksums import SourceSums
from cdc_lib.verify.source_side import WAITS_FOR_SNAPSHOT, SourceSide, indistinct_rows, source_side

PATIENCE_SECONDS = 60.0
"""Read timeout of one statement: a merge does not wait long for a source that does not answer."""


@dataclass(frozen=True, slots=True)
class _Merge:
    """The merge in flight, with its cut, and the last comparison of each pair of source table and lake table before it."""

    plan: MergePlan
    cut: Cut
    drain: Cursor
    batches: Sequence[StoredBatch]
    earlier: Mapping[tuple[TableName, str], ChangedRows]


def compare_changed_rows(source: Source, keys: StoreKeys | None) -> AfterMerge | None:
    """Compare the rows that the merge in flight changed and store the result; None if it has published no cut.

    Raises:
        CdcError: the batches, the source or the lake cannot be read.
    """
    lake, store = source.cursor(LAKE), source.store
    if lake is None or not lake.is_merging:
        return None
    plan = plan_of(lake)
    cut = cut_of(store, source.name, plan.merge_id)
    if cut is None:
        return None
    drain = source.required(DRAIN)
    before = last_after_merge(store, source.name)
    merge = _Merge(plan, cut, drain, load_plan(store, plan), before.by_table if before is not None else {})
    found = _found_in(source, merge, keys)
    known = {**merge.earlier, **{(one.table, one.lake_table): one for one in found}}
    there = {(one.table, one.lake_table) for one in cut.tables}
    tables = tuple(one for pair, one in sorted(known.items()) if pair in there)
    after = AfterMerge(source.name, plan.merge_id, datetime.now(UTC), "", tables)
    keep_after_merge(store, after)
    return after


def _found_in(source: Source, merge: _Merge, keys: StoreKeys | None) -> list[ChangedRows]:
    """Return what was found in each table that has rows to compare."""
    config, changed = source.config, set(tables_of(merge.batches))
    waiting = {pair for pair, earlier in merge.earlier.items() if earlier.open_rows}
    chosen = {
        (one.table, one.lake_table): one
        for one in merge.cut.tables
        if config.verify.names(*one.table.pair) and (one.table in changed or (one.table, one.lake_table) in waiting)
    }
    if not chosen:
        return []
    with translate_errors():
        catalog = open_catalog(config, keys)
    with catalog, source_side(source, merge.drain, PATIENCE_SECONDS) as side:
        tables = _Tables(side, source.store, merge, LakeTables(catalog, config.source))
        return [
            tables.compared(lake, routed, chosen[routed.table, str(lake.name)])
            for lake in lake_merges(config, [cut.table for cut in merge.cut.tables])
            for routed in lake.routed_tables
            if (routed.table, str(lake.name)) in chosen
        ]


@dataclass(frozen=True, slots=True)
class _Tables:
    """Compares tables over one session."""

    side: SourceSide
    store: ObjectStore
    merge: _Merge
    lake_tables: LakeTables

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
                opened = self.lake_tables.open(lake.name, cut.table, cut.lake_snapshot, routed=routed.target.routed)
                subject = self._subject(lake, routed, opened.state)
                if isinstance(subject, Subject):
                    source = SourceSums(self.side.connection, subject, chunk_rows=1)
                    looks = Looks(self.side, source, whole, opened.state.marker)
                    asked, sampled, changes = self._asked(subject, earlier)
                    lake_states = opened.rows(subject, [one.key for one in asked.values()])
                    result = replace(empty, changes=changes, compared=len(asked), sampled=sampled)
                    return _with_judged(result, looks.judged(asked, lake_states, self._most_open), asked)
                why = subject
        except SourceError:
            raise
        except CdcError as error:
            why = error.message
        return replace(empty, skipped=why)

    @property
    def _most_open(self) -> int:
        """How many rows stay open at most, so that the next merge's own rows are compared too."""
        return max(1, self.side.source.config.verify.after_merge // 2)

    def _skipped(self, lake: LakeMerge, routed: RoutedTable, cut: TableCut) -> str:
        if cut.dropped is not None:
            return "it was dropped at the source"
        if cut.as_of is not None:
            return WAITS_FOR_SNAPSHOT
        return indistinct_rows(self.side.source.name, lake, routed)

    def _subject(self, lake: LakeMerge, routed: RoutedTable, state: LakeTable) -> Subject | str:
        subject = self.side.subject(lake, routed, lambda: state)
        if isinstance(subject, str):
            return subject
        if subject.how == "copies":
            return "it has no key by which its rows could be found"
        if subject.folded:
            return "every change is kept (append), so that a key has many rows"
        return subject.as_in(state)

    def _asked(self, subject: Subject, earlier: ChangedRows | None) -> tuple[dict[str, AskedRow], bool, int]:
        """Return the rows to compare by their names, whether the merge changed more, and its number of changes."""
        most, merge_id = self.side.source.config.verify.after_merge, self.merge.plan.merge_id
        kept = earlier.open_rows if earlier is not None else ()
        seed = f"{merge_id} {subject.schema.name}"
        found = changed_keys(self.store, subject, self.merge.batches, max(1, most - len(kept)), seed)
        names = names_of(subject.keys, [one.key for one in kept])
        asked = {name: AskedRow(one.key, one.batch, one.merge_id, one) for name, one in zip(names, kept, strict=True)}
        names = names_of(subject.keys, [one.texts for one in found.chosen])
        for name, one in zip(names, found.chosen, strict=True):
            before = asked.get(name)
            asked[name] = AskedRow(one.texts, one.batch, merge_id, before.kept if before is not None else None)
        return asked, found.sampled or bool(found.unusable), found.changes


def _with_judged(result: ChangedRows, judged: Judged, asked: Mapping[str, AskedRow]) -> ChangedRows:
    """Return the result of a table with what its rows are."""
    record = tuple(judged.wrong.values())[:KEPT_DIFFERENCES]
    result = replace(
        result, at=datetime.now(UTC), in_flight=judged.in_flight, wrong=len(judged.wrong), open_rows=judged.open_rows,
        differences=(*result.differences, *record)[-KEPT_DIFFERENCES:],
    )  # fmt: skip
    if judged.wrong or not asked:
        return result
    return replace(
        result, equal_position=result.position, equal_epoch=result.epoch, equal_gtid_set=result.gtid_set,
        equal_at=result.at,
    )  # fmt: skip
