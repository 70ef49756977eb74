"""Key ranges that a snapshot read completely: lake rows in a range that it lacks were deleted at the source. Pure."""

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
    """A key range that was read completely.

    Args:
        schema: of the table, when its last chunk was read.
        selection: the range.
        low: position before the first SELECT. Lake rows with an order key before it, whose key is in no chunk, were
            deleted: all changes of a row inserted later are in the binlog.
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
        """The low watermark as a point."""
        return Point.at(self.epoch, self.low)


def read_ranges(chunks: Sequence[Manifest]) -> tuple[ReadRange, ...]:
    """Return the ranges that chunks read completely.

    A table that was dropped before its last chunk was read has none.

    Args:
        chunks: of one table, each snapshot's in order.
    """
    firsts: dict[str, Manifest] = {}
    ranges = []
    for manifest in chunks:
        chunk = manifest.chunk
        if chunk is None:
            continue
        first = firsts.setdefault(chunk.snapshot_id, manifest)
        if chunk.last and chunk.selection is not None and chunk.selection.is_range and manifest.schemas:
            ranges.append(_read_range(manifest, chunk.selection, first))
    return tuple(ranges)


def _read_range(last: Manifest, selection: RowSelection, first: Manifest) -> ReadRange:
    chunk: SnapshotChunk | None = first.chunk
    if chunk is None or first.first_time is None:
        raise AssertionError(first.id)
    return ReadRange(next(iter(last.schemas.values())), selection, chunk.low_watermark, first.epoch, first.first_time)
