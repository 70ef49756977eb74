"""Rows that snapshots read among the changes of their key.

A chunk is read between two watermarks, at a moment that is not known. So its row may show changes that the binlog has after the low
watermark. As in DBLog, the binlog then wins. The row stays only if it shows what no change between the watermarks made: it is the
row before the first of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from cdc_lib.apply.rows import is_before, order_of
from cdc_lib.merge.collapse import DELETE, INSERT
from cdc_lib.model.manifest import OP
from cdc_lib.model.position import Point
from cdc_lib.read.archive.rows import KeyChanges, VersionShape


@dataclass(frozen=True, slots=True)
class ChunkRow:
    """A row that a snapshot read.

    Args:
        changes: the row, with the low watermark as its position.
        low: low watermark of its chunk: every change before it is in the row.
        high: high watermark of its chunk: no change from there on is in the row.
        chunk: id of the batch.
    """

    changes: KeyChanges
    low: Point
    high: Point
    chunk: str


def with_reads(changes: KeyChanges, reads: Sequence[ChunkRow], shape: VersionShape) -> KeyChanges:
    """Return changes with the rows that snapshots read, as far as these are certain to be earlier versions.

    Args:
        changes: of the binlog, of one key.
        reads: of the same key.
        shape: of versions.
    """
    kept = [one.changes for one in reads if not _is_settled(changes, one, shape)]
    return KeyChanges(
        pa.concat_tables([changes.rows, *(one.rows for one in kept)]),
        (*changes.columns, *(names for one in kept for names in one.columns)),
    )


def _is_settled(changes: KeyChanges, read: ChunkRow, shape: VersionShape) -> bool:
    """Whether a change between the watermarks may have made the row that was read."""
    order = order_of(changes.rows)
    numbers = np.flatnonzero(~is_before(order, read.low) & is_before(order, read.high))
    if not len(numbers):
        return False
    between = changes.rows.take(pa.array(numbers)).to_pylist()
    first = min(range(len(numbers)), key=lambda one: tuple(part[numbers[one]] for part in order))
    if between[first][OP] == INSERT:
        return True  # no row was there before
    row, names = read.changes.rows.to_pylist()[0], read.changes.columns[0]
    return any(
        change[OP] != DELETE and _are_equal(change, row, names & changes.columns[number], shape)
        for change, number in zip(between, numbers.tolist(), strict=True)
    )


def _are_equal(one: dict[str, Any], other: dict[str, Any], names: frozenset[str], shape: VersionShape) -> bool:
    return all(one[each.name] == other[each.name] for each in shape.source if each.name.lower() in names)
