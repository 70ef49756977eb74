"""Files of batches that are searched together: a key is looked up in the keys of several files at once.

A drain makes one small file for each window and table. Their keys are put one after the other, so that a lookup takes one comparison of
arrays for a segment, not one for each file.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cdc_lib.apply.key_rows import KeyRows, RowKey, Rows
from cdc_lib.read.archive.reach import Part

_FILES = 8
"""Most files of a segment, unless one window has more: after each segment it is asked whether older ones are needed."""

_ROWS = 200_000
"""A segment with so many rows gets no more files."""

_BOUNDARIES = 5
"""One file in so many begins a segment, chosen by its name: so most segments stay the same when windows are added or removed."""

Hits = dict[int, dict[int, Rows]]
"""By the number of a part and of a row group in it: rows."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Files that follow each other, newest first.

    Args:
        parts: the files.
        paths: key of each file in the store.
    """

    parts: tuple[Part, ...]
    paths: tuple[str, ...]


def segments_of(parts: Sequence[Part], paths: Sequence[str]) -> tuple[Segment, ...]:
    """Return files in segments.

    Args:
        parts: files, newest first.
        paths: key of each file in the store.
    """
    found: list[Segment] = []
    files: list[tuple[Part, str]] = []
    rows = 0
    for part, path in reversed(list(zip(parts, paths, strict=True))):
        is_boundary = zlib.crc32(path.encode()) % _BOUNDARIES == 0
        # The files of one window are in no order of time, so no segment ends between them.
        is_next = bool(files) and files[-1][0].low != part.low
        if is_next and (is_boundary or len(files) >= _FILES or rows >= _ROWS):
            found.append(_segment(files))
            files, rows = [], 0
        files.append((part, path))
        rows += part.file.rows
    if files:
        found.append(_segment(files))
    return tuple(reversed(found))


def _segment(oldest_first: Sequence[tuple[Part, str]]) -> Segment:
    parts, paths = zip(*reversed(oldest_first), strict=True)
    return Segment(parts, paths)


@dataclass(frozen=True, slots=True)
class SegmentKeys:
    """The keys of a segment.

    Args:
        keys: of all files, one after the other.
        groups: number of the part and of the row group that each stretch of keys comes from.
        starts: where each stretch begins.
    """

    keys: KeyRows
    groups: tuple[tuple[int, int], ...]
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, files: Sequence[Sequence[Sequence[pa.ChunkedArray]]], types: Sequence[pa.DataType]) -> SegmentKeys:
        """Put keys together.

        Args:
            files: of each part, of each row group: its key columns.
            types: of the key columns.
        """
        groups = [(part, number) for part, some in enumerate(files) for number in range(len(some))]
        counts = [len(files[part][number][0]) for part, number in groups]
        keys = [
            pa.chunked_array([chunk for part, number in groups for chunk in files[part][number][i].chunks], of)
            for i, of in enumerate(types)
        ]
        starts = np.cumsum([0, *counts], dtype=np.int64)[:-1]
        return cls(KeyRows.of(keys, None), tuple(groups), starts)

    @property
    def bytes(self) -> int:
        """Memory that it takes."""
        return self.keys.bytes + 100 * len(self.groups)

    def hits(self, key: RowKey) -> Hits:
        """Return the rows of a key."""
        found: Hits = {}
        for stretch, rows in self._by_stretch(self.keys.with_key(key)):
            part, number = self.groups[stretch]
            found.setdefault(part, {})[number] = rows - self.starts[stretch]
        return found

    def _by_stretch(self, rows: Rows) -> Iterator[tuple[int, Rows]]:
        if len(rows):
            stretches = self.starts.searchsorted(rows, "right") - 1
            for stretch in np.unique(stretches).tolist():
                yield stretch, rows[stretches == stretch]
