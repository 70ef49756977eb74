"""Which batches a table still needs, and how they must be merged so that it ends right whatever came before.

Law 6: a batch that the table's marker counts is left out. Law 5: rows are ordered by their order key, whichever batch
brings them. A chunk of a snapshot may come after windows that are newer than it: the rows that those deleted must not come
back, so the windows after its low watermark are merged with it once more (``replay``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from cdc_lib.errors import MergeError
from cdc_lib.merge.chunks import chunk_of, low_of, read_to_of
from cdc_lib.merge.key_ranges import ReadRange, spans
from cdc_lib.merge.table_resets import StatementEffects, is_of_database, statement_effects, swaps_in_what_came_before
from cdc_lib.model.lake_table import Marker, PlacedDefault, SnapshotMark
from cdc_lib.model.manifest import Manifest
from cdc_lib.model.merge_plan import MergePlan
from cdc_lib.model.position import Point
from cdc_lib.model.table_mode import Mode, TableReset
from cdc_lib.model.table_name import TableName
from cdc_lib.model.xa_settlement import Commit


@dataclass(frozen=True, slots=True)
class Batch:
    """A manifest and the key it was read from.

    Args:
        key: of the manifest.
        manifest: what it says.
        commits: XA transactions that its window commits, each with the batch that holds its rows.
    """

    key: str
    manifest: Manifest
    commits: tuple[tuple[Commit, Batch], ...] = ()

    def holds(self, table: str) -> bool:
        """Whether it has rows or statements of the table, or says that a chunk of it has none."""
        return table in tables_of([self])


@dataclass(frozen=True, slots=True)
class MergeInput:
    """A batch to read, without the rows before ``floor``."""

    batch: Batch
    floor: Point | None


@dataclass(frozen=True, slots=True)
class TableWork:
    """What one table needs.

    Args:
        table: ``database.table``.
        mode: how it is merged.
        inputs: batches to read; empty when the table has them all.
        marker: the table's marker after the merge.
        guard: whether the table may hold rows that are newer than some of the pieces.
        replay: windows from the first to the second point must be merged along, because a chunk comes late.
        supersedes: append mode: changes before this point are in the rows of a first snapshot that comes late.
        rebuild_before: a snapshot brings the table again after changes that were left out: rows before this point are not of the source
            any more unless it brings them.
        rebuild_at: when that snapshot began to be read.
        reset_before: mirror mode: a statement took all rows of before this point.
        resets: but for a mirror: where statements took all rows of before, in order; of a list of changes each is an entry.
        list_start: append mode: the entry after which the rows of a new snapshot stand; None where the table has it, or needs none.
        added_defaults: values that rows of before a point have in columns that were added; those whose column the lake
            table does not get by this merge wait in its marker.
        ahead_until: rows of the table that were read by themselves may show changes before this point already.
        ranges: ranges of keys that are read again: rows of theirs that no chunk brings are gone.
        rewrite: append and scd2: what the table has between these points is taken out, because the pieces bring all of it.
        rewrite_reads: append mode: whether that counts for rows that a snapshot read as well.
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


def tables_of(batches: Iterable[Batch]) -> tuple[TableName, ...]:
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


def work_on(table: TableName, mode: Mode, batches: Sequence[Batch], marker: Marker, plan: MergePlan) -> TableWork:
    """Decide what the table needs.

    Args:
        table: ``database.table``.
        mode: how it is merged.
        batches: all batches of the plan, in its order.
        marker: the table's marker; an empty one for a new table.
        plan: the plan; the table is at its stop afterwards.

    Raises:
        MergeError: a chunk comes without the one before it.
    """
    mine = [batch for batch in batches if batch.holds(table)]
    chunks = [batch for batch in mine if batch.manifest.chunk is not None]
    windows = [batch for batch in mine if batch.manifest.window is not None and _is_new(batch.manifest, marker)]
    taken, after = _take_chunks(table, chunks, marker)
    if not taken and not windows:
        return TableWork(table, mode, (), marker)
    lows = [low_of(batch.manifest) for batch in taken]
    floor = _floor(mode, marker, after)
    pieces = (*(MergeInput(batch, None) for batch in taken), *(MergeInput(batch, floor) for batch in windows))
    merged_to = max(filter(None, (marker.merged_to, Point.at(plan.epoch, plan.stop))))
    late = min(lows, default=None)
    known = replace(marker, dropped=_dropped(table, marker, plan))
    now = statement_effects(table, (batch.manifest for batch in windows), marker.merged_to, known)
    after = replace(after.with_merged_to(merged_to), dropped=now.dropped, shadow=now.shadow, pending_defaults=())
    ahead = max(filter(None, (marker.ahead_until, after.ahead_until)), default=None)
    read = spans([batch.manifest for batch in taken])
    work = TableWork(table, mode, pieces, after, _needs_guard(pieces, marker), ahead_until=ahead, ranges=read)
    begun = min(filter(None, (batch.manifest.first_time for batch in taken)), default=None)
    work = replace(work, rebuild_before=_anew(table, taken, marker, after, plan), rebuild_at=begun)
    if mode == "append" and work.rebuild_before is not None:
        work = replace(work, list_start=_opens(lows, work.rebuild_before, begun))
    if work.rebuild_before is None:
        refuse_unclear(table, now.unclear)
    work = following(work, now, floor)
    if late is None or marker.merged_to is None or late >= marker.merged_to:
        return work
    if work.rebuild_before is not None:
        return work
    if mode != "append":
        return replace(work, replay=(late, marker.merged_to))
    return work if marker.reads else replace(work, supersedes=late)


def _dropped(table: str, marker: Marker, plan: MergePlan) -> Point | None:
    """Return where the table was dropped, if it is still: perhaps while it was quarantined, as a release found."""
    gone = (
        one
        for one in plan.quarantine
        if one.table == table and one.released_position is not None and not one.snapshot_id
    )
    at = [Point.at(one.released_epoch, one.released_position) for one in gone if one.released_position is not None]
    found = [point for point in at if marker.merged_to is None or point >= marker.merged_to]
    return max(filter(None, (*found, marker.dropped)), default=None)


def refuse_unclear(table: str, unclear: str) -> None:
    """Refuse to continue where an online schema change gave rows values that nobody told.

    Raises:
        MergeError: it did.
    """
    if unclear:
        raise MergeError(
            f"an online schema change changed values in rows that its statements do not show ({unclear})",
            hint="Take a new snapshot of this table (cdc snapshot); it replaces this merge.",
            table=table,
        )


def refuse_untold_swap(table: str, batches: Iterable[Batch], since: Point) -> None:
    """Refuse to merge batches again that hold the end of an online schema change, and not its beginning.

    Args:
        table: ``database.table``.
        batches: windows, in the stream's order.
        since: changes before this point are not merged again.

    Raises:
        MergeError: they do.
    """
    if swaps_in_what_came_before(table, (batch.manifest for batch in batches), since):
        raise MergeError(
            "an online schema change tool ended in the time that is merged again, and began before it",
            hint="What rows have in columns that it added stands where it began. Let cdc backfill begin there, with an earlier "
            "--since; else cdc snapshot reads the table again.",
            table=table,
        )


def following(work: TableWork, now: StatementEffects, floor: Point | None = None) -> TableWork:
    """Leave out what a statement took: a mirror has nothing of before it.

    Where deleted rows, versions or changes stay, all changes are merged, and the statement is one more.

    Args:
        work: what the table needs.
        now: what statements did.
        floor: append mode: what happened before this point is in the rows of a snapshot, or was merged before.
    """
    work = replace(work, added_defaults=(*now.added_defaults, *work.added_defaults))
    if work.mode == "append":
        entries = (one for one in now.entries if floor is None or _place(one) >= floor)
        return replace(work, resets=tuple(sorted({*work.resets, *entries})))
    if work.mode != "mirror":
        return replace(work, resets=tuple(sorted({*work.resets, *now.resets})))
    if now.before is None:
        return work
    before = max(filter(None, (work.reset_before, now.before)))
    pieces = tuple(MergeInput(piece.batch, max(filter(None, (piece.floor, before)))) for piece in work.inputs)
    return replace(work, inputs=pieces, reset_before=before)


def _place(gone: TableReset) -> Point:
    return Point(gone.epoch, gone.file, gone.offset)


def _opens(lows: Iterable[Point], anew: Point, at: datetime | None) -> TableReset | None:
    """Return the entry before a new snapshot's rows, when its first chunk is among those taken."""
    low = min(lows)
    return TableReset(*low, at) if low < anew else None


def _anew(table: str, taken: Sequence[Batch], before: Marker, after: Marker, plan: MergePlan) -> Point | None:
    """Return before which point rows give way to a released table's snapshot, when its chunks are among those taken.

    That is right after where it begins to be read, unless the table has chunks of it: an earlier snapshot may have been read
    at the same place. Changes that the table has lie before it.
    """
    released = {one.snapshot_id for one in plan.quarantine if one.table == table and one.snapshot_id}
    brought = {chunk_of(batch.manifest).snapshot_id for batch in taken} & released
    begins = [
        mark.low if before.snapshot(mark.snapshot_id) else mark.low.just_after()
        for mark in after.snapshots
        if mark.snapshot_id in brought
    ]
    return max(begins, default=None)


def replayed_windows(
    windows: Iterable[tuple[str, Point, Point]], replay: tuple[Point, Point], table: str
) -> tuple[str, ...]:
    """Choose from ``(key, start, stop)`` of all stored windows those that lie between the two points, in order.

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
            hint="Take a new snapshot of this table, and keep batches longer than a snapshot takes.",
            table=table,
            low_watermark=str(tuple(low)),
            merged_to=str(tuple(high)),
            found_up_to=str(tuple(covered)),
        )
    return tuple(key for key, _, _ in chosen)


def has_arrived(marker: Marker, work: TableWork) -> bool:
    """Whether a table with this marker holds everything that the work was to bring."""
    wanted = work.marker
    if wanted.merged_to is not None and (marker.merged_to is None or marker.merged_to < wanted.merged_to):
        return False
    return all(
        (found := marker.snapshot(m.snapshot_id)) is not None and found.chunks >= m.chunks for m in wanted.snapshots
    )


def _is_new(manifest: Manifest, marker: Marker) -> bool:
    if manifest.window is None or marker.merged_to is None:
        return True
    return Point.at(manifest.window.epoch, manifest.window.stop) > marker.merged_to


def _take_chunks(table: str, chunks: Sequence[Batch], marker: Marker) -> tuple[list[Batch], Marker]:
    """Return the chunks that the table does not have, and its marker with them.

    A snapshot that was begun before another one that the table has was given up for it: of a merge that was given up as well
    and continues all the same, it would bring rows back that were deleted in between.
    """
    taken = []
    for batch in sorted(chunks, key=lambda b: (chunk_of(b.manifest).snapshot_id, chunk_of(b.manifest).number)):
        chunk, low = chunk_of(batch.manifest), low_of(batch.manifest)
        read_to = read_to_of(batch.manifest)
        begun = SnapshotMark(chunk.snapshot_id, 0, False, low, low, read_to, chunk.selection is not None)
        mark = marker.snapshot(chunk.snapshot_id) or begun
        others = (other for other in marker.snapshots if other.snapshot_id != chunk.snapshot_id)
        newer = any((other.low, other.snapshot_id) > (low, chunk.snapshot_id) for other in others)
        if chunk.number < mark.chunks or newer:
            continue
        if chunk.number > mark.chunks:
            raise MergeError(
                f"chunk {chunk.number} of a snapshot comes before chunk {mark.chunks}",
                hint="The plan leaves out a chunk; plan the merge again.",
                table=table,
                snapshot=chunk.snapshot_id,
            )
        taken.append(batch)
        high, read_to = max(mark.high, low), max(mark.read_to, read_to)
        mark = replace(mark, chunks=chunk.number + 1, complete=chunk.last, high=high, read_to=read_to)
        marker = marker.with_snapshot(mark)
    return taken, marker


def _floor(mode: Mode, before: Marker, after: Marker) -> Point | None:
    """Rows of windows before this point are in the table, or come with the snapshot in append mode."""
    points = [before.merged_to] if before.merged_to is not None else []
    if mode == "append" and after.snapshots:
        points.append(max(mark.low for mark in after.snapshots))
    return max(points, default=None)


def _needs_guard(pieces: Sequence[MergeInput], marker: Marker) -> bool:
    top = marker.top
    return top is not None and any(_begin(piece) < top for piece in pieces)


def _begin(piece: MergeInput) -> Point:
    manifest = piece.batch.manifest
    if manifest.window is None:
        return low_of(manifest)
    start = Point.at(manifest.window.epoch, manifest.window.start)
    return start if piece.floor is None else max(start, piece.floor)
