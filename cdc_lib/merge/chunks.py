"""Positions of windows and snapshot chunks among the changes."""

from __future__ import annotations

from collections.abc import Callable

from cdc_lib.model.cursor import Cursor
from cdc_lib.model.lake_table import Marker
from cdc_lib.model.manifest import Manifest, chunk_of
from cdc_lib.model.position import Point
from cdc_lib.model.window import SnapshotTask


def low_of(manifest: Manifest) -> Point:
    """Return the point before the chunk's SELECT: every change before it is in the rows."""
    return Point.at(manifest.epoch, chunk_of(manifest).low_watermark)


def read_to_of(manifest: Manifest) -> Point:
    """Return the point after the chunk's SELECT: no change after it is in the rows."""
    return Point.at(manifest.epoch, chunk_of(manifest).read_to)


def begin_of(manifest: Manifest) -> Point:
    """Return the start of a window, or the point before a chunk's SELECT."""
    return low_of(manifest) if manifest.window is None else Point.at(manifest.epoch, manifest.window.start)


def end_of(manifest: Manifest) -> Point:
    """Return the end of a window, or the point after a chunk's SELECT."""
    return read_to_of(manifest) if manifest.window is None else Point.at(manifest.window.epoch, manifest.window.stop)


def is_newer(manifest: Manifest, end: Point, marker: Marker) -> bool:
    """Whether a batch shows a newer definition of its table than the rows that the table has.

    A chunk may do so although the table is merged further than that: changes of a quarantined table are left out.

    Args:
        manifest: of the batch.
        end: where it ends.
        marker: of the table.
    """
    if marker.merged_to is None:
        return True
    return end > marker.merged_to if manifest.chunk is None else end >= (marker.defined_at or marker.merged_to)


def reading_order(manifest: Manifest) -> tuple[str, str, Point, int, int]:
    """Return what chunks are sorted by: each snapshot's in the order in which they were read.

    The ranges of a divided snapshot are read side by side. So a chunk of a later range may have an earlier watermark, and an
    older schema.
    """
    chunk = chunk_of(manifest)
    read_at = low_of(manifest) if chunk.range_count > 1 else Point(0, 0, 0)
    return chunk.snapshot_id, chunk.table, read_at, chunk.range_number, chunk.number


def first_reads(drain: Cursor, first_chunk: Callable[[SnapshotTask], Manifest | None]) -> list[Point]:
    """Return for each table, but those that are quarantined, a position after which its newest whole snapshot was read.

    Changes before it are in the rows of the table, regardless of older snapshots. A quarantined table gets a later snapshot.

    Args:
        drain: the drain cursor.
        first_chunk: returns the chunk of a snapshot that was read first; None if it is not known, because batches were collected
            or ranges are to be read. Then the position of the request counts.
    """
    quarantined = {record.table for record in drain.quarantined_tables}
    whole = (task for task in drain.snapshots if task.selection is None and task.chunks)
    newest = {task.name: task for task in sorted(whole, key=lambda task: task.requested_at)}
    reads = [(task, first_chunk(task)) for task in newest.values() if task.name not in quarantined]
    return [task.requested_at if first is None else low_of(first) for task, first in reads]
