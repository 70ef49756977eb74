"""Which batches a table needs when a range is merged again, independent of what it already has: pure.

Rule 1: the table gets all changes from the requested ones up to its current position: a row that was deleted since would
come back otherwise. Rule 2: the range begins no later than the table's position, so the table holds one range of the stream
without a gap, in any order of backfills. Rule 3: the order key decides between rows and changes; in append and scd2 mode,
the changes of the range are removed and written again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cdc_lib.backfill.other_key import Key, Keys, OneKey, under_one_key
from cdc_lib.errors import MergeConflict, MergeError
from cdc_lib.merge.chunks import begin_of, end_of, low_of, read_to_of, reading_order
from cdc_lib.merge.plan import (
    MergeInput,
    StoredBatch,
    TableWork,
    defined_at,
    following,
    refuse_partial_swap,
    refuse_unclear,
)
from cdc_lib.merge.table_resets import StatementEffects, statement_effects
from cdc_lib.model.lake_table import Marker, SnapshotMark
from cdc_lib.model.manifest import Manifest, chunk_of
from cdc_lib.model.merge_plan import MergePlan
from cdc_lib.model.position import Point
from cdc_lib.model.schema_policy import DEFAULT_POLICY, SchemaPolicy
from cdc_lib.model.table_mode import Mode, TableReset
from cdc_lib.model.table_name import TableName


@dataclass(frozen=True, slots=True)
class BackfillDecision:
    """Decides what each table of a backfill needs; replaces :func:`cdc_lib.merge.plan.work_on`.

    Args:
        begin: start of the requested range.
        end: end of the range that every table must reach.
        loaded: start and end of the loaded batches.
        is_copy: whether the table is a new copy, which may hold only a part of the source's rows.
        from_start: whether the source itself began at ``begin``, without reading rows.
    """

    begin: Point
    end: Point
    loaded: tuple[Point, Point]
    is_copy: bool
    from_start: bool

    def __call__(
        self,
        table: TableName,
        mode: Mode,
        batches: Sequence[StoredBatch],
        marker: Marker,
        plan: MergePlan,
        policy: SchemaPolicy = DEFAULT_POLICY,
    ) -> TableWork:
        """Decide what one table needs.

        Args:
            table: ``database.table``.
            mode: how it is merged.
            batches: all loaded batches: complete snapshots, then windows in the stream's order.
            marker: the table's marker; an empty one for a missing table.
            plan: shows where tables were quarantined.
            policy: what the table does about changes of its definition.

        Raises:
            MergeConflict: another merge moved the table past the loaded batches.
            MergeError: the lake table is missing, and the batches do not hold all of it.
        """
        low, high = self._range(marker)
        relevant = [batch for batch in batches if batch.holds(table)]
        windows = [batch for batch in relevant if _lies_between(batch.manifest, low, high)]
        chunks = _newest_snapshot(relevant, marker)
        if not windows and not chunks:
            return TableWork(table, mode, (), marker)
        self._refuse(table, low, high)
        work = TableWork(table, mode, (), _with_mark(marker, chunks).with_merged_to(high), guard=True)
        read_at = min(filter(None, (batch.manifest.first_time for batch in chunks)), default=None)
        work = replace(
            work,
            ahead_until=marker.ahead_until,
            rebuild_before=_rebuild_point(table, mode, chunks, marker, plan),
            rebuild_at=read_at,
        )
        floor = _floor(table, mode, work.marker, plan)
        since = max(filter(None, (low, floor)))
        manifests = [batch.manifest for batch in (*chunks, *windows)]
        replayed = statement_effects(table, manifests, since, Marker(), policy)
        new = statement_effects(table, manifests, marker.merged_to or since, marker, policy)
        if not self.is_copy and marker == Marker() and not (chunks or replayed.before or self.from_start):
            raise _incomplete(table)
        after = replace(work.marker, dropped=new.dropped, shadow=new.shadow, pending_defaults=())
        kept = max((*replayed.kept, *new.kept), default=None)
        after = replace(after, kept_before=kept, defined_at=defined_at(table, (*chunks, *windows), marker))
        # A snapshot may begin within a window: of that window, neither statements nor changes from before the range are merged.
        inputs = (
            *(MergeInput(batch, None) for batch in chunks),
            *(MergeInput(batch, since if begin_of(batch.manifest) < low else floor) for batch in windows),
        )
        work = replace(work, marker=after, inputs=inputs)
        if mode == "append":
            begin = max(filter(None, (since, work.rebuild_before)))
            if not chunks and any(mark.low == begin for mark in _replacing(table, marker, plan)):
                begin = begin.just_after()  # the start entry of the snapshot's rows is kept
            # Rows of a snapshot that was read at the table's position have that position, not an earlier one.
            reads = [low_of(batch.manifest).just_after() for batch in chunks]
            work = replace(work, rewrite=(begin, max((high, *reads))), rewrite_reads=bool(chunks))
            if chunks and chunk_of(chunks[0].manifest).snapshot_id in _released(table, plan):
                work = replace(work, list_start=TableReset(*low_of(chunks[0].manifest), read_at))
        refuse_partial_swap(table, windows, since)
        refuse_unclear(table, replayed.unclear or new.unclear)
        if mode == "scd2":
            work = replace(work, rewrite=(since, high))
        return following(work, _both(replayed, new), since)

    def under_one_key(
        self, batches: Sequence[StoredBatch], table: TableName, marker: Marker, key: Key | None, keys: Keys
    ) -> OneKey:
        """Decide which batches of a table have rows with the lake table's key.

        Only chunks of the newest snapshot are used. A snapshot of which the lake has only some chunks counts as merged: its
        first chunk replaced the table.

        Args:
            batches: all loaded batches: complete snapshots, then windows in the stream's order.
            table: ``database.table``.
            marker: the table's marker; an empty one for a missing table.
            key: of the lake table; None without a lake table.
            keys: returns the keys of a batch's rows.
        """
        relevant = [batch for batch in batches if batch.holds(table)]
        chunks, between = _newest_snapshot(relevant, marker), self._range(marker)
        lows = [low_of(batch.manifest) for batch in chunks[:1]] or [
            one.low for one in marker.snapshots if not one.partial
        ]
        windows = [batch.key for batch in relevant if _lies_between(batch.manifest, *between)]
        return under_one_key(
            relevant,
            keys,
            key=key,
            low=max(lows, default=None),
            chunks=frozenset(batch.key for batch in chunks),
            windows=frozenset(windows),
        )

    def _range(self, marker: Marker) -> tuple[Point, Point]:
        """Return the range of which a table gets all changes."""
        low = min(filter(None, (self.begin, marker.merged_to)))
        low = low if self.is_copy else max(low, self.loaded[0])  # removed batches were merged before
        return low, max(filter(None, (self.end, marker.merged_to)))

    def _refuse(self, table: str, low: Point, high: Point) -> None:
        if low < self.loaded[0] or high > self.loaded[1]:
            raise MergeConflict(
                "another merge moved the table meanwhile", hint="Nothing was changed; retry.", table=table
            )


def _lies_between(manifest: Manifest, low: Point, high: Point) -> bool:
    return manifest.window is not None and end_of(manifest) > low and begin_of(manifest) < high


def _newest_snapshot(batches: Sequence[StoredBatch], marker: Marker) -> list[StoredBatch]:
    """Return the chunks of the newest complete snapshot, in order; empty if the table has a later one.

    Partial snapshots are ignored: they did not replace the table.
    """
    read = [batch for batch in batches if batch.manifest.chunk is not None]
    chunks = [(low_of(batch.manifest), batch) for batch in read if chunk_of(batch.manifest).selection is None]
    if not chunks:
        return []
    first = {chunk_of(b.manifest).snapshot_id: low for low, b in sorted(chunks, key=lambda one: one[0], reverse=True)}
    newest = max(first, key=lambda snapshot_id: (first[snapshot_id], snapshot_id))
    if any((mark.low, mark.snapshot_id) > (first[newest], newest) for mark in marker.snapshots if not mark.partial):
        return []
    of_newest = [batch for _, batch in chunks if chunk_of(batch.manifest).snapshot_id == newest]
    return sorted(of_newest, key=lambda batch: reading_order(batch.manifest))


def _with_mark(marker: Marker, chunks: Sequence[StoredBatch]) -> Marker:
    """Return the marker of a table after a complete snapshot."""
    if not chunks or marker.snapshot(chunk_of(chunks[0].manifest).snapshot_id) is not None:
        return marker
    lows = [low_of(batch.manifest) for batch in chunks]
    reads = [read_to_of(batch.manifest) for batch in chunks]
    name = chunk_of(chunks[0].manifest).snapshot_id
    return marker.with_snapshot(SnapshotMark(name, len(chunks), True, lows[0], max(lows), max(reads)))


def _released(table: str, plan: MergePlan) -> frozenset[str]:
    """Return the snapshots that replaced the whole table: changes before them were left out."""
    return frozenset(one.snapshot_id for one in plan.quarantine if one.table == table and one.snapshot_id)


def _replacing(table: str, marker: Marker, plan: MergePlan) -> list[SnapshotMark]:
    """Return the marks of the snapshots that replaced the whole table."""
    released = _released(table, plan)
    return [mark for mark in marker.snapshots if mark.snapshot_id in released]


def _floor(table: str, mode: Mode, after: Marker, plan: MergePlan) -> Point | None:
    """Return the point before which changes are ignored; in append mode also changes that a snapshot includes."""
    marks = after.snapshots if mode == "append" else _replacing(table, after, plan)
    return max((mark.low for mark in marks), default=None)


def _rebuild_point(
    table: str, mode: Mode, chunks: Sequence[StoredBatch], marker: Marker, plan: MergePlan
) -> Point | None:
    """Return the point before which the chunks replace rows; None if they do not, except in append mode."""
    if not chunks:
        return None
    name, low = chunk_of(chunks[0].manifest).snapshot_id, low_of(chunks[0].manifest)
    if mode != "append" and name not in _released(table, plan):
        return None
    return low if marker.snapshot(name) is not None else low.just_after()


def _both(replayed: StatementEffects, new: StatementEffects) -> StatementEffects:
    fills = (*replayed.added_defaults, *(one for one in new.added_defaults if one not in replayed.added_defaults))
    before = max(filter(None, (replayed.before, new.before)), default=None)
    entries = tuple(sorted({*replayed.entries, *new.entries}))
    kept = tuple(sorted({*replayed.kept, *new.kept}))
    resets = tuple(sorted({*replayed.resets, *new.resets}))
    return replace(new, before=before, added_defaults=fills, resets=resets, entries=entries, kept=kept)


def _incomplete(table: str) -> MergeError:
    return MergeError(
        "the lake table is not there, and the batches of this time do not hold all of its rows",
        hint="Use an earlier --since that includes the table's snapshot or its CREATE TABLE; use --into copy for the changes "
        "of this time alone; or read the table from the source again (cdc snapshot).",
        table=table,
    )
