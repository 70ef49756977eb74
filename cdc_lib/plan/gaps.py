"""Gaps of a source: acknowledged batches that are no longer stored, and missing cursors."""

from __future__ import annotations

from dataclasses import dataclass

from cdc_lib.errors import BatchesMissing, CursorMissing
from cdc_lib.model.cursor import DRAIN, LAKE, Cursor
from cdc_lib.model.position import Point, Position
from cdc_lib.model.window import SnapshotTask, Window
from cdc_lib.ports import ObjectStore
from cdc_lib.source import Source
from cdc_lib.store import layout
from cdc_lib.store.manifests import read_to_of, without_last_chunk
from cdc_lib.store.windows import Chain, chained, known_windows

_MANY = 20
"""More snapshots than these are looked for in a listing of the store, and not one by one."""


@dataclass(frozen=True, slots=True)
class Gap:
    """A range of the binlog that was acknowledged, and whose batch is no longer stored.

    Args:
        source: name of the source.
        epoch: of the range.
        start: its start.
        stop: start of the next batch, or the end of what is acknowledged.
    """

    source: str
    epoch: int
    start: Position
    stop: Position

    @property
    def window(self) -> Window:
        """The window of the missing batch."""
        return Window(self.source, self.epoch, self.start, self.stop)

    @property
    def what(self) -> str:
        """The gap as a message."""
        return f"the batch of window {self.window.id} is acknowledged and no longer stored, so the lake cannot continue"

    @property
    def hint(self) -> str:
        """The commands that close the gap."""
        return (
            f"cdc batches refill {self.source} writes it again in place, from the server or the raw archive. If neither has that window: "
            f"cdc batches refill {self.source} --over continues after it with new snapshots of all tables."
        )

    def error(self) -> BatchesMissing:
        """Return the gap as an error."""
        return BatchesMissing(self.what, hint=self.hint, source=self.source, start=str(self.start), stop=str(self.stop))


def chain_of(store: ObjectStore, drain: Cursor, lake: Cursor) -> Chain:
    """Return the batches that the lake merges next in its epoch, up to the first missing one."""
    end = drain.end_of_epoch(lake.epoch)
    at = lake.in_flight[-1].stop if lake.in_flight else lake.position
    if end is None or end <= at:
        return Chain((), None)
    start = Point.at(lake.epoch, at)
    return chained(known_windows(store, lake.source, drain, start, lake.epoch), start, Point.at(lake.epoch, end))


def gap_of(store: ObjectStore, drain: Cursor | None, lake: Cursor | None) -> Gap | None:
    """Return the first gap; None if all acknowledged batches are stored."""
    if drain is None or lake is None:
        return None
    for window in lake.in_flight:
        if store.get(layout.manifest_key(window)) is None:
            return Gap(lake.source, window.epoch, window.start, window.stop)
    return as_gap(lake, chain_of(store, drain, lake))


def lost_chunk(store: ObjectStore, task: SnapshotTask) -> BatchesMissing | None:
    """Return the error of a snapshot that was acknowledged as complete, and whose last chunk is not stored."""
    if not task.complete or not task.chunks:
        return None
    if read_to_of(store, task) is not None:
        return None
    which = f"chunk {task.chunks - 1}" if not task.ranges else "the last chunk of a range"
    return BatchesMissing(
        f"{which} of the snapshot of {task.name} is acknowledged and no longer stored, so the lake cannot continue",
        hint=f"cdc snapshot {task.source} {task.name} reads the table again.",
        source=task.source,
        snapshot=task.snapshot_id,
    )


def lost_chunks(store: ObjectStore, drain: Cursor, lake: Cursor) -> list[BatchesMissing]:
    """Return the errors of all unmerged snapshots whose last chunk is not stored."""
    merged = {task.id: task.chunks for task in lake.snapshots}
    waiting = [task for task in drain.snapshots if task.complete and task.chunks > merged.get(task.id, 0)]
    if len(waiting) > _MANY:
        waiting = without_last_chunk(store, waiting)
    return [error for task in waiting if (error := lost_chunk(store, task)) is not None]


def as_gap(lake: Cursor, chain: Chain) -> Gap | None:
    """Return the gap of a chain; None if it has none."""
    if chain.gap is None:
        return None
    start, stop = (position_of(lake.position, point) for point in chain.gap)
    return Gap(lake.source, lake.epoch, start, stop)


def position_of(like: Position, point: Point) -> Position:
    """Return a point as a position, with its file named like that of another position."""
    base, _, digits = like.file.rpartition(".")
    return Position(f"{base}.{point.file:0{len(digits)}d}", point.offset)


def lost_cursor(source: Source) -> CursorMissing | None:
    """Return the error of a cursor that is missing although the source has started; None if there is none.

    A new cursor would start at another position, and the changes in between would be in no lake table.
    """
    drain, lake, store, name = source.cursor(DRAIN), source.cursor(LAKE), source.store, source.name
    if drain is not None and lake is not None:
        return None
    if lake is not None:
        return _lost(name, DRAIN, "the lake cursor is there")
    cuts = _any(store, layout.cuts_prefix(name))
    if drain is not None:
        return _lost(name, LAKE, "cuts of the lake are there") if cuts else None
    if cuts or _any(store, layout.batches_prefix(name)) or _any(store, layout.snapshots_prefix(name)):
        return _lost(name, DRAIN, "so is the lake cursor, but batches or cuts are there")
    return None


def planned_cursor(source: Source, consumer: str) -> Cursor:
    """Return a cursor of a source that was planned.

    Raises:
        CursorMissing: the source has begun, and the cursor is missing.
        CursorMoved: nothing was planned yet.
    """
    if (cursor := source.cursor(consumer)) is not None:
        return cursor
    refuse_lost(source)
    return source.required(consumer)


def refuse_lost(source: Source) -> None:
    """Refuse to continue without a cursor.

    Raises:
        CursorMissing: a cursor is missing.
    """
    if (error := lost_cursor(source)) is not None:
        raise error


def _lost(source: str, consumer: str, evidence: str) -> CursorMissing:
    return CursorMissing(
        f"the {consumer} cursor is missing, and {evidence}",
        hint=f"cdc cursor restore {source} --rebuild makes it again from the lake's cuts and the stored batches. An export is more exact: "
        f"cdc cursor restore {source} --file FILE; versions of the bucket have the cursors as well.",
        source=source,
    )


def _any(store: ObjectStore, prefix: str) -> bool:
    return next(iter(store.list(prefix)), None) is not None
