"""What a table needs when batches are merged once more, whatever it has of them already: pure.

Rule 1: a table that changes are given to again gets all that follow them, up to where it is: a row that was deleted since
would come back otherwise. Rule 2: what it gets begins no later than where it is, so that it holds one stretch of the stream
without a gap, whichever order the parts are asked for in. Rule 3: the order key decides between its rows and the changes; where
every change or version counts, those of the stretch are taken out and made again, as if the table had never had them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cdc_lib.backfill.other_key import Key, Keys, OneKey, under_one_key
from cdc_lib.errors import MergeConflict, MergeError
from cdc_lib.merge.chunks import chunk_of, low_of, read_to_of
from cdc_lib.merge.plan import Batch, MergeInput, TableWork, following, refuse_unclear, refuse_untold_swap
from cdc_lib.merge.table_resets import StatementEffects, statement_effects
from cdc_lib.model.lake_table import Marker, SnapshotMark
from cdc_lib.model.manifest import Manifest
from cdc_lib.model.merge_plan import MergePlan
from cdc_lib.model.position import Point
from cdc_lib.model.table_mode import Mode, TableReset
from cdc_lib.model.table_name import TableName


@dataclass(frozen=True, slots=True)
class BackfillDecision:
    """Decides for each table of a backfill; is in the place of :func:`cdc_lib.merge.plan.work_on`.

    Args:
        begin: where what is asked for begins.
        end: tables are brought up to here at least.
        loaded: between which points the batches at hand lie.
        is_copy: whether the table is one that was made for this, and may hold a part of the source's rows alone.
        from_start: whether the source itself began at ``begin``, without reading rows.
    """

    begin: Point
    end: Point
    loaded: tuple[Point, Point]
    is_copy: bool
    from_start: bool

    def __call__(
        self, table: TableName, mode: Mode, batches: Sequence[Batch], marker: Marker, plan: MergePlan
    ) -> TableWork:
        """Decide what one table needs.

        Args:
            table: ``database.table``.
            mode: how it is merged.
            batches: all that are at hand: whole snapshots, then windows in the stream's order.
            marker: the table's marker; an empty one for a table that is not there.
            plan: tells which tables were left out where.

        Raises:
            MergeConflict: another merge moved the table beyond the batches at hand.
            MergeError: the lake table is not there, and the batches do not hold all of it.
        """
        low, high = self._stretch(marker)
        mine = [batch for batch in batches if batch.holds(table)]
        windows = [batch for batch in mine if _lies_between(batch.manifest, low, high)]
        chunks = _newest_snapshot(mine, marker)
        if not windows and not chunks:
            return TableWork(table, mode, (), marker)
        self._refuse(table, low, high)
        work = TableWork(table, mode, (), _with_mark(marker, chunks).with_merged_to(high), guard=True)
        begun = min(filter(None, (batch.manifest.first_time for batch in chunks)), default=None)
        work = replace(
            work,
            ahead_until=marker.ahead_until,
            rebuild_before=_anew(table, mode, chunks, marker, plan),
            rebuild_at=begun,
        )
        floor = _floor(table, mode, work.marker, plan)
        since = max(filter(None, (low, floor)))
        taken = statement_effects(table, (batch.manifest for batch in windows), since, Marker())
        new = statement_effects(table, (batch.manifest for batch in windows), marker.merged_to or since, marker)
        if not self.is_copy and marker == Marker() and not (chunks or taken.before or self.from_start):
            raise _not_whole(table)
        after = replace(work.marker, dropped=new.dropped, shadow=new.shadow, pending_defaults=())
        pieces = (*(MergeInput(batch, None) for batch in chunks), *(MergeInput(batch, floor) for batch in windows))
        work = replace(work, marker=after, inputs=pieces)
        if mode == "append":
            begin = max(filter(None, (since, work.rebuild_before)))
            if not chunks and any(mark.low == begin for mark in _replacing(table, marker, plan)):
                begin = begin.just_after()  # the entry before the snapshot's rows stays with them
            # Rows of a snapshot that was read where the table ends stand at that place, not before it.
            reads = [low_of(batch.manifest).just_after() for batch in chunks]
            work = replace(work, rewrite=(begin, max((high, *reads))), rewrite_reads=bool(chunks))
            if chunks and chunk_of(chunks[0].manifest).snapshot_id in _released(table, plan):
                work = replace(work, list_start=TableReset(*low_of(chunks[0].manifest), begun))
        refuse_untold_swap(table, windows, since)
        refuse_unclear(table, taken.unclear or new.unclear)
        if mode == "scd2":
            work = replace(work, rewrite=(since, high))
        return following(work, _both(taken, new), since)

    def under_one_key(
        self, batches: Sequence[Batch], table: TableName, marker: Marker, key: Key | None, keys: Keys
    ) -> OneKey:
        """Decide which batches of a table have rows of the key by which its lake table keeps them.

        Chunks of a snapshot that is not the newest never count. A snapshot of which the lake has a part counts as one that it has:
        with its first chunk it replaced the table.

        Args:
            batches: all that are at hand: whole snapshots, then windows in the stream's order.
            table: ``database.table``.
            marker: the table's marker; an empty one for a table that is not there.
            key: of the lake table; None where there is none.
            keys: returns the keys of a batch's rows.
        """
        mine = [batch for batch in batches if batch.holds(table)]
        chunks, between = _newest_snapshot(mine, marker), self._stretch(marker)
        lows = [low_of(batch.manifest) for batch in chunks[:1]] or [
            one.low for one in marker.snapshots if not one.partial
        ]
        windows = [batch.key for batch in mine if _lies_between(batch.manifest, *between)]
        return under_one_key(
            mine,
            keys,
            key=key,
            low=max(lows, default=None),
            chunks=frozenset(batch.key for batch in chunks),
            windows=frozenset(windows),
        )

    def _stretch(self, marker: Marker) -> tuple[Point, Point]:
        """Return between which points a table gets all changes."""
        low = min(filter(None, (self.begin, marker.merged_to)))
        low = low if self.is_copy else max(low, self.loaded[0])  # what is gone was merged before
        return low, max(filter(None, (self.end, marker.merged_to)))

    def _refuse(self, table: str, low: Point, high: Point) -> None:
        if low < self.loaded[0] or high > self.loaded[1]:
            raise MergeConflict(
                "another merge moved the table meanwhile", hint="Nothing was changed; begin again.", table=table
            )


def _lies_between(manifest: Manifest, low: Point, high: Point) -> bool:
    window = manifest.window
    if window is None:
        return False
    return Point.at(window.epoch, window.stop) > low and Point.at(window.epoch, window.start) < high


def _newest_snapshot(mine: Sequence[Batch], marker: Marker) -> list[Batch]:
    """Return the chunks of the last whole snapshot at hand, in order; none where the table has a later one, which replaced it.

    What a part of a table brought replaced nothing, and is not all that there was.
    """
    read = [batch for batch in mine if batch.manifest.chunk is not None]
    chunks = [(low_of(batch.manifest), batch) for batch in read if chunk_of(batch.manifest).selection is None]
    if not chunks:
        return []
    first = {chunk_of(b.manifest).snapshot_id: low for low, b in sorted(chunks, key=lambda one: one[0], reverse=True)}
    newest = max(first, key=lambda snapshot_id: (first[snapshot_id], snapshot_id))
    if any((mark.low, mark.snapshot_id) > (first[newest], newest) for mark in marker.snapshots if not mark.partial):
        return []
    found = [batch for _, batch in chunks if chunk_of(batch.manifest).snapshot_id == newest]
    return sorted(found, key=lambda batch: chunk_of(batch.manifest).number)


def _with_mark(marker: Marker, chunks: Sequence[Batch]) -> Marker:
    """Return the marker of a table that has a whole snapshot."""
    if not chunks or marker.snapshot(chunk_of(chunks[0].manifest).snapshot_id) is not None:
        return marker
    lows = [low_of(batch.manifest) for batch in chunks]
    reads = [read_to_of(batch.manifest) for batch in chunks]
    name = chunk_of(chunks[0].manifest).snapshot_id
    return marker.with_snapshot(SnapshotMark(name, len(chunks), True, lows[0], max(lows), max(reads)))


def _released(table: str, plan: MergePlan) -> frozenset[str]:
    """Return the snapshots that replaced all of the table: changes before them were left out."""
    return frozenset(one.snapshot_id for one in plan.quarantine if one.table == table and one.snapshot_id)


def _replacing(table: str, marker: Marker, plan: MergePlan) -> list[SnapshotMark]:
    """Return the marks of the snapshots that replaced all of the table."""
    released = _released(table, plan)
    return [mark for mark in marker.snapshots if mark.snapshot_id in released]


def _floor(table: str, mode: Mode, after: Marker, plan: MergePlan) -> Point | None:
    """Return before which point changes count for nothing any more; of a list of changes, also those that its snapshot has."""
    marks = after.snapshots if mode == "append" else _replacing(table, after, plan)
    return max((mark.low for mark in marks), default=None)


def _anew(table: str, mode: Mode, chunks: Sequence[Batch], marker: Marker, plan: MergePlan) -> Point | None:
    """Return before which point rows give way to the chunks: of a list of changes always."""
    if not chunks:
        return None
    name, low = chunk_of(chunks[0].manifest).snapshot_id, low_of(chunks[0].manifest)
    if mode != "append" and name not in _released(table, plan):
        return None
    return low if marker.snapshot(name) is not None else low.just_after()


def _both(taken: StatementEffects, new: StatementEffects) -> StatementEffects:
    fills = (*taken.added_defaults, *(one for one in new.added_defaults if one not in taken.added_defaults))
    before = max(filter(None, (taken.before, new.before)), default=None)
    entries = tuple(sorted({*taken.entries, *new.entries}))
    return replace(
        new, before=before, added_defaults=fills, resets=tuple(sorted({*taken.resets, *new.resets})), entries=entries
    )


def _not_whole(table: str) -> MergeError:
    return MergeError(
        "the lake table is not there, and the batches of this time do not hold all of its rows",
        hint="Take an earlier --since, so that the table's snapshot, or the statement that made it, lies after it; "
        "--into copy for what changed in this time alone; or cdc snapshot reads the table from the source.",
        table=table,
    )
