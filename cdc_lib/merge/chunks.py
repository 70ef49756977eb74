"""Positions of snapshot chunks among the changes."""

from __future__ import annotations

from cdc_lib.model.manifest import Manifest, SnapshotChunk
from cdc_lib.model.position import Point


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
