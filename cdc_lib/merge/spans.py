"""Ranges of keys that a snapshot brings whole: rows of the lake in them that it does not bring are gone at the source. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from cdc_lib.model.batch import Manifest, SnapshotChunk
from cdc_lib.model.lake import Point
from cdc_lib.model.part import Part
from cdc_lib.model.position import Position
from cdc_lib.model.schema import TableSchema


@dataclass(frozen=True, slots=True)
class Span:
    """A range of keys that was read whole.

    Args:
        schema: of the table, as its last chunk saw it.
        part: the range.
        low: position before the first SELECT. Rows of the lake with an order key before it, whose key no chunk brings, are
            gone: a row that came later stands in the binlog, and so does whatever became of it.
        epoch: of the position.
        at: when it was read (UTC).
    """

    schema: TableSchema
    part: Part
    low: Position
    epoch: int
    at: datetime

    @property
    def point(self) -> Point:
        """Where it was read."""
        return Point.at(self.epoch, self.low)


def spans(chunks: Sequence[Manifest]) -> tuple[Span, ...]:
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
        if chunk.last and chunk.part is not None and chunk.part.is_range and manifest.schemas:
            found.append(_span(manifest, chunk.part, begun))
    return tuple(found)


def _span(last: Manifest, part: Part, first: Manifest) -> Span:
    begun: SnapshotChunk | None = first.chunk
    if begun is None or first.first_time is None:
        raise AssertionError(first.id)
    return Span(next(iter(last.schemas.values())), part, begun.low_watermark, first.epoch, first.first_time)
