"""Positions of snapshot chunks among the changes."""

from __future__ import annotations

from collections.abc import Callable

from cdc_lib.model.cursor import Cursor
from cdc_lib.model.manifest import Manifest, SnapshotChunk
from cdc_lib.model.position import Point
from cdc_lib.model.window import SnapshotTask


def chunk_of(manifest: Manifest) -> SnapshotChunk:
    """Return the chunk that a snapshot's manifest describes."""
    if manifest.chunk is None:
        raise AssertionError(manifest.id)
    return manifest.chunk


def low_of(manifest: Manifest) -> Point:
    """Return the point before the chunk's SELECT: every change before it is in the rows."""
    return Point.at(manifest.epoch, chunk_of(manifest).low_watermark)


def read_to_of(manifest: Manifest) -> Point:
    """Return the point after the chunk's SELECT: no change after it is in the rows."""
    return Point.at(manifest.epoch, chunk_of(manifest).read_to)


def first_reads(drain: Cursor, first_chunk: Callable[[SnapshotTask], Manifest | None]) -> list[Point]:
    """Return for each table, but those that are quarantined, a position after which its newest whole snapshot was read.

    Changes before it are in the rows of the table, regardless of older snapshots. A quarantined table gets a later snapshot.

    Args:
        drain: the drain cursor.
        first_chunk: returns the first chunk of a snapshot; None if its batch was collected. Then the position of the request counts.
    """
    quarantined = {record.table for record in drain.quarantined_tables}
    whole = (task for task in drain.snapshots if task.selection is None and task.chunks)
    newest = {task.name: task for task in sorted(whole, key=lambda task: task.requested_at)}
    reads = [(task, first_chunk(task)) for task in newest.values() if task.name not in quarantined]
    return [task.requested_at if first is None else low_of(first) for task, first in reads]
