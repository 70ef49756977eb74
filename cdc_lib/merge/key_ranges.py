"""Ranges of keys that a snapshot brings whole: rows of the lake in them that it does not bring are gone at the source. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from cdc_lib.model.manifest import Manifest, SnapshotChunk
from cdc_lib.model.position import Point, Position
from cdc_lib.model.row_selection import RowSelection
from cdc_lib.model.schema import TableSchema


@dataclass(frozen=True, slots=True)
class ReadRange:
    """A range of keys that was read whole.

    Args:
        schema: of the table, as its last chunk saw it.
        selection: the range.
        low: position before the first SELECT. Rows of the lake with an order key before it, whose key no chunk brings, are
            gone: a row that came later is in the binlog, and so does whatever became of it.
        epoch: of the position.
        at: when it was read (UTC).
    """

    schema: TableSchema
    selection: RowSelection
    low: Position
    epoch: int
    at: datetime

    @property
    def point(self) -> Point:
        """Where it was read."""
        return Point.at(self.epoch, self.low)


def spans(chunks: Sequence[Manifest]) -> tuple[ReadRange, ...]:
    """Return the ranges that chunks bring whole.

    Of a table that was gone when its last chunk was to be read, nothing is known.

    Args:
        chunks: of one table, each snapshot's in order.
    """
    first: dict[str, Manifest] = {}
    found = []
    for manifest in chunks:
        chunk = manifest.chunk
        if chunk is None:
            continue
        begun = first.setdefault(chunk.snapshot_id, manifest)
        if chunk.last and chunk.selection is not None and chunk.selection.is_range and manifest.schemas:
            found.append(_span(manifest, chunk.selection, begun))
    return tuple(found)


def _span(last: Manifest, part: RowSelection, first: Manifest) -> ReadRange:
    begun: SnapshotChunk | None = first.chunk
    if begun is None or first.first_time is None:
        raise AssertionError(first.id)
    return ReadRange(next(iter(last.schemas.values())), part, begun.low_watermark, first.epoch, first.first_time)
