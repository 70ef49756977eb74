"""Which batches a table still needs, and how they are merged, independent of earlier merges.

Law 6: a batch that the table's marker counts is skipped. Law 5: rows are ordered by their order key, in any batch.
A snapshot chunk may be merged after windows that are newer than it. The rows that those deleted must not come back, so
the windows after its low watermark are merged with it again (``replay``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from cdc_lib.errors import MergeError, ValuesNotLogged
from cdc_lib.merge.chunks import begin_of, end_of, is_newer, low_of, read_to_of, reading_order
from cdc_lib.merge.key_ranges import ReadRange, read_ranges
from cdc_lib.merge.table_resets import (
    Retyped,
    StatementEffects,
    is_of_database,
    statement_effects,
    swaps_in_earlier_shadow,
)
from cdc_lib.model.lake_table import Marker, PlacedDefault, SnapshotMark
from cdc_lib.model.manifest import Manifest, SnapshotChunk, chunk_of
from cdc_lib.model.merge_plan import MergePlan
from cdc_lib.model.position import Point
from cdc_lib.model.schema_policy import DEFAULT_POLICY, SchemaPolicy
from cdc_lib.model.table_mode import Mode, TableReset
from cdc_lib.model.table_name import TableName
from cdc_lib.model.xa_settlement import XaCommit

INCOMPLETE = "the binlog does not contain all columns of some rows"


@dataclass(frozen=True, slots=True)
class StoredBatch:
    """A manifest and the key it was read from.

    Args:
        key: of the manifest.
        manifest: its contents.
        commits: XA transactions that its window commits, each with the batch that holds its rows.
    """

    key: str
    manifest: Manifest
    commits: tuple[tuple[XaCommit, StoredBatch], ...] = ()

    def holds(self, table: str) -> bool:
        """Whether it has rows or statements of the table, or is an empty chunk of it."""
        return table in tables_of([self])

    def defines(self, table: str) -> bool:
        """Whether it has a definition of the table: that of its rows, or of an empty chunk."""
        manifests = (self.manifest, *(held.manifest for _, held in self.commits))
        return any(schema.name == table for one in manifests for schema in one.schemas.values())


@dataclass(frozen=True, slots=True)
class MergeInput:
    """A batch to read, without the rows before ``floor``."""

    batch: StoredBatch
    floor: Point | None


@dataclass(frozen=True, slots=True)
class TableWork:
    """What one table needs.

    Args:
        table: ``database.table``.
        mode: how it is merged.
        inputs: batches to read; empty if the table has all of them.
        marker: the table's marker after the merge.
        guard: whether the table may hold rows that are newer than some of the inputs.
        replay: windows from the first to the second point must be merged too, because a chunk comes late.
        supersedes: append mode: changes before this point are in the rows of a late first snapshot.
        rebuild_before: a new snapshot replaces the table's rows before this point; changes in between were left out.
        rebuild_at: when that snapshot began to be read.
        reset_before: mirror mode: a statement removed all rows before this point.
        resets: other modes: where statements removed all earlier rows, in order; each is an entry in append mode.
        list_start: append mode: the entry that precedes the rows of a new snapshot; None if the table has it or needs none.
        added_defaults: values of added columns for rows before a point; they wait in the marker until the lake table has
            the column.
        ahead_until: re-selected rows of the table may already show changes before this point.
        ranges: key ranges that are read again: their lake rows that no chunk holds were deleted.
        rewrite: append and scd2: the table's changes between these points are removed, because the inputs hold all of them.
        rewrite_reads: append mode: whether that includes rows that a snapshot read.
        kept: statements removed all earlier rows at these points, in order, and the lake keeps them.
        retyped: statements that may have changed values in rows, in order.
    """

    table: TableName
    mode: Mode
    inputs: tuple[MergeInput, ...]
    marker: Marker
    guard: bool = False
    replay: tuple[Point, Point] | None = None
    supersedes: Point | None = None
    rebuild_before: Point | None = None
    rebuild_at: datetime | None = None
    reset_before: Point | None = None
    resets: tuple[TableReset, ...] = ()
    list_start: TableReset | None = None
    added_defaults: tuple[PlacedDefault, ...] = ()
    ahead_until: Point | None = None
    ranges: tuple[ReadRange, ...] = ()
    rewrite: tuple[Point, Point] | None = None
    rewrite_reads: bool = False
    kept: tuple[Point, ...] = ()
    retyped: tuple[Retyped, ...] = ()

    def kept_before(self, point: Point) -> Point | None:
        """Return the point before which rows stay that a snapshot read at a point does not have."""
        return max((one for one in self.kept if one <= point), default=None)


def tables_of(batches: Iterable[StoredBatch]) -> tuple[TableName, ...]:
    """Return the tables that the batches have something for, sorted."""
    names: set[TableName] = set()
    for batch in batches:
        names.update(file.table for file in batch.manifest.files)
        if batch.manifest.chunk is not None:
            names.add(batch.manifest.chunk.table)
        names.update(one.table for one in batch.manifest.statements if not is_of_database(one))
        for commit, _ in batch.commits:
            names.update(commit.prepared.tables)
    return tuple(sorted(names))


def work_on(
    table: TableName,
    mode: Mode,
    batches: Sequence[StoredBatch],
    marker: Marker,
    plan: MergePlan,
    policy: SchemaPolicy = DEFAULT_POLICY,
) -> TableWork:
    """Decide what the table needs.

    Args:
        table: ``database.table``.
        mode: how it is merged.
        batches: all batches of the plan, in its order.
        marker: the table's marker; an empty one for a new table.
        plan: the plan; the merge takes the table to its stop.
        policy: what the table does about changes of its definition.

    Raises:
        MergeError: the chunk before a chunk is missing.
    """
    relevant = [batch for batch in batches if batch.holds(table)]
    chunks = [batch for batch in relevant if batch.manifest.chunk is not None]
    windows = [
        batch
        for batch in relevant
        if batch.manifest.window is not None and is_newer(batch.manifest, end_of(batch.manifest), marker)
    ]
    taken, after = _take_chunks(table, chunks, marker)
    if not taken and not windows:
        return TableWork(table, mode, (), marker)
    lows = [low_of(batch.manifest) for batch in taken]
    floor = _floor(mode, marker, after)
    inputs = (*(MergeInput(batch, None) for batch in taken), *(MergeInput(batch, floor) for batch in windows))
    merged_to = max(filter(None, (marker.merged_to, Point.at(plan.epoch, plan.stop))))
    late = min(lows, default=None)
    known = replace(marker, dropped=_dropped(table, marker, plan))
    manifests = (batch.manifest for batch in (*taken, *windows))
    now = statement_effects(table, manifests, marker.merged_to, known, policy)
    after = replace(after.with_merged_to(merged_to), dropped=now.dropped, shadow=now.shadow, pending_defaults=())
    after = replace(
        after, kept_before=max(now.kept, default=None), defined_at=defined_at(table, (*taken, *windows), marker)
    )
    ahead = max(filter(None, (marker.ahead_until, after.ahead_until)), default=None)
    ranges = read_ranges([batch.manifest for batch in taken])
    work = TableWork(table, mode, inputs, after, _needs_guard(inputs, marker), ahead_until=ahead, ranges=ranges)
    read_at = min(filter(None, (batch.manifest.first_time for batch in taken)), default=None)
    work = replace(work, rebuild_before=_rebuild_point(table, taken, marker, after, plan), rebuild_at=read_at)
    if mode == "append" and work.rebuild_before is not None:
        work = replace(work, list_start=_list_start(lows, work.rebuild_before, read_at))
    if work.rebuild_before is None:
        refuse_unclear(table, now.unclear)
        work = replace(work, retyped=now.retyped)
    work = following(work, now, floor)
    if late is None or marker.merged_to is None or late >= marker.merged_to:
        return work
    if work.rebuild_before is not None:
        return work
    if mode != "append":
        return replace(work, replay=(late, marker.merged_to))
    return work if marker.reads else replace(work, supersedes=late)


def defined_at(table: str, batches: Iterable[StoredBatch], marker: Marker) -> Point | None:
    """Return where the newest rows of a table end that a merge of batches leaves in it."""
    ends = [end_of(batch.manifest) for batch in batches if batch.defines(table)]
    return max(filter(None, (*ends, marker.defined_at)), default=None)


def _dropped(table: str, marker: Marker, plan: MergePlan) -> Point | None:
    """Return where the table was dropped, if it still is: perhaps while it was quarantined."""
    released = (
        one
        for one in plan.quarantine
        if one.table == table and one.released_position is not None and not one.snapshot_id
    )
    at = [Point.at(one.released_epoch, one.released_position) for one in released if one.released_position is not None]
    dropped = [point for point in at if marker.merged_to is None or point >= marker.merged_to]
    return max(filter(None, (*dropped, marker.dropped)), default=None)


def refuse_unclear(table: str, unclear: str) -> None:
    """Refuse to continue after an online schema change that set values which the binlog does not show.

    Raises:
        ValuesNotLogged: ``unclear`` is not empty.
    """
    if unclear:
        raise ValuesNotLogged(
            f"an online schema change changed values in rows that its statements do not show ({unclear})",
            hint="A merge requests a new snapshot, which replaces the rows; or: cdc snapshot {source} {table}",
            table=table,
        )


def rows_not_logged(table: str, what: str, **context: str | int | None) -> ValuesNotLogged:
    """Return the error of incomplete rows that only a new snapshot completes."""
    return ValuesNotLogged(
        f"{INCOMPLETE}: {what}",
        hint="A merge requests a new snapshot, which replaces the rows. With binlog_row_image=FULL at the source, also in sessions, "
        "this is not needed.",
        table=table,
        **context,
    )


def refuse_partial_swap(table: str, batches: Iterable[StoredBatch], since: Point) -> None:
    """Refuse to merge batches again that hold the end of an online schema change without its beginning.

    Args:
        table: ``database.table``.
        batches: windows, in the stream's order.
        since: changes before this point are not merged again.

    Raises:
        MergeError: they hold such an end.
    """
    if swaps_in_earlier_shadow(table, (batch.manifest for batch in batches), since):
        raise MergeError(
            "an online schema change tool ended in the time that is merged again, and began before it",
            hint="The batches at its beginning show the values of columns that it added. Use an earlier --since with "
            "cdc backfill, or take a new snapshot: cdc snapshot {source} {table}",
            table=table,
        )


def following(work: TableWork, now: StatementEffects, floor: Point | None = None) -> TableWork:
    """Apply statements such as TRUNCATE: in mirror mode, all changes before them are left out.

    In the other modes all changes are merged, and the statement is one more.

    Args:
        work: what the table needs.
        now: effects of the statements.
        floor: append mode: changes before this point are in the rows of a snapshot, or were merged already.
    """
    kept = tuple(sorted({*work.kept, *now.kept}))
    work = replace(work, added_defaults=(*now.added_defaults, *work.added_defaults), kept=kept)
    if work.mode == "append":
        entries = (one for one in now.entries if floor is None or _point_of(one) >= floor)
        return replace(work, resets=tuple(sorted({*work.resets, *entries})))
    if work.mode != "mirror":
        return replace(work, resets=tuple(sorted({*work.resets, *now.resets})))
    if now.before is None:
        return work
    before = max(filter(None, (work.reset_before, now.before)))
    inputs = tuple(MergeInput(each.batch, max(filter(None, (each.floor, before)))) for each in work.inputs)
    return replace(work, inputs=inputs, reset_before=before)


def _point_of(reset: TableReset) -> Point:
    return Point(reset.epoch, reset.file, reset.offset)


def _list_start(lows: Iterable[Point], rebuild: Point, at: datetime | None) -> TableReset | None:
    """Return the entry before a new snapshot's rows, if its first chunk is among those taken."""
    low = min(lows)
    return TableReset(*low, at) if low < rebuild else None


def _rebuild_point(
    table: str, taken: Sequence[StoredBatch], before: Marker, after: Marker, plan: MergePlan
) -> Point | None:
    """Return the point before which a released table's snapshot replaces rows, if its chunks are among those taken.

    It is just after the snapshot's low watermark, because an earlier snapshot may have the same one; it is the watermark
    itself if the table has chunks of the snapshot. Changes that the table has come before it.
    """
    released = {one.snapshot_id for one in plan.quarantine if one.table == table and one.snapshot_id}
    new = {chunk_of(batch.manifest).snapshot_id for batch in taken} & released
    points = [
        mark.low if before.snapshot(mark.snapshot_id) else mark.low.just_after()
        for mark in after.snapshots
        if mark.snapshot_id in new
    ]
    return max(points, default=None)


def replayed_windows(
    windows: Iterable[tuple[str, Point, Point]], replay: tuple[Point, Point], table: str
) -> tuple[str, ...]:
    """Return the keys of the stored windows ``(key, start, stop)`` between two points, in order.

    Raises:
        MergeError: some of them are no longer stored.
    """
    low, high = replay
    in_order = sorted(windows, key=lambda window: window[1:])
    chosen = [(key, start, stop) for key, start, stop in in_order if stop > low and start < high]
    covered = low
    for _, start, stop in chosen:
        if start > covered and start.epoch == covered.epoch:
            break
        covered = max(covered, stop)
    if covered < high:
        raise MergeError(
            "a snapshot chunk comes after windows that are already merged, and the batches between its low watermark and "
            "the table's marker, which show what was deleted since, are no longer stored",
            hint="Take a new snapshot, and keep batches longer than it takes: cdc snapshot {source} {table}",
            table=table,
            low_watermark=str(tuple(low)),
            merged_to=str(tuple(high)),
            found_up_to=str(tuple(covered)),
        )
    return tuple(key for key, _, _ in chosen)


def has_arrived(marker: Marker, work: TableWork) -> bool:
    """Whether a table with this marker holds everything that the work merges."""
    target = work.marker
    if target.merged_to is not None and (marker.merged_to is None or marker.merged_to < target.merged_to):
        return False
    return all(
        (mark := marker.snapshot(m.snapshot_id)) is not None and mark.chunks >= m.chunks for m in target.snapshots
    )


def _take_chunks(table: str, chunks: Sequence[StoredBatch], marker: Marker) -> tuple[list[StoredBatch], Marker]:
    """Return the chunks that the table does not have, and its marker after they are merged.

    A snapshot that is older than another one that the table has was cancelled for it. An abandoned merge that still runs
    would restore rows from it that were deleted in between.
    """
    taken = []
    known = marker
    ranges: dict[tuple[str, int], int] = {}
    for batch in sorted(chunks, key=lambda one: reading_order(one.manifest)):
        chunk, low = chunk_of(batch.manifest), low_of(batch.manifest)
        read_to = read_to_of(batch.manifest)
        first = SnapshotMark(chunk.snapshot_id, 0, False, low, low, read_to, chunk.selection is not None)
        mark = marker.snapshot(chunk.snapshot_id) or first
        others = (other for other in marker.snapshots if other.snapshot_id != chunk.snapshot_id)
        newer = any((other.low, other.snapshot_id) > (low, chunk.snapshot_id) for other in others)
        if newer or _is_merged(chunk, known.snapshot(chunk.snapshot_id)):
            continue
        this = (chunk.snapshot_id, chunk.range_number)
        expected = mark.chunks if chunk.range_count == 1 else ranges.get(this, 0)
        if chunk.number != expected:
            raise MergeError(
                f"chunk {chunk.number} of a snapshot comes before chunk {expected}",
                hint="The plan leaves out a chunk; plan the merge again.",
                table=table,
                snapshot=chunk.snapshot_id,
            )
        taken.append(batch)
        ranges[this] = chunk.number + 1
        high, read_to = max(mark.high, low), max(mark.read_to, read_to)
        # A snapshot is merged when all of its ranges are complete.
        complete = chunk.last or (mark.complete and chunk.range_count > 1)
        mark = replace(mark, chunks=mark.chunks + 1, complete=complete, high=high, read_to=read_to)
        marker = marker.with_snapshot(mark)
    return taken, marker


def _is_merged(chunk: SnapshotChunk, mark: SnapshotMark | None) -> bool:
    """Whether a table with this mark of the snapshot has the chunk; it has all ranges of a divided one, or none."""
    return mark is not None and (chunk.range_count > 1 or chunk.number < mark.chunks)


def _floor(mode: Mode, before: Marker, after: Marker) -> Point | None:
    """Return the point before which rows of windows are in the table, or in the snapshot in append mode."""
    points = [before.merged_to] if before.merged_to is not None else []
    if mode == "append" and after.snapshots:
        points.append(max(mark.low for mark in after.snapshots))
    return max(points, default=None)


def _needs_guard(inputs: Sequence[MergeInput], marker: Marker) -> bool:
    top = marker.top
    return top is not None and any(_begin(each) < top for each in inputs)


def _begin(item: MergeInput) -> Point:
    begin = begin_of(item.batch.manifest)
    return begin if item.floor is None else max(begin, item.floor)
