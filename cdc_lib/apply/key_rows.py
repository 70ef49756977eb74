"""The keys of one row group, in which rows are looked up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

OrderValue = int | float | bytes | None
"""A part of a key as it is compared; None is a part that is null in the lake."""

Rows = NDArray[np.int64]
"""Numbers of rows within a row group."""


@dataclass(frozen=True, slots=True)
class RowKey:
    """A key, or its first parts.

    Args:
        order: order value of each part.
        values: the parts as Arrow scalars of the columns' types.
    """

    order: tuple[OrderValue, ...]
    values: tuple[pa.Scalar, ...]


@dataclass(frozen=True, slots=True)
class KeyRows:
    """The key columns of a row group.

    Args:
        keys: one array for each key column.
        ordered: the first key column as numbers, if it is numbers in ascending order; else None.
        marked: where the mode's own column is true: ``_is_deleted`` or ``_is_current``; None if the mode has none.
    """

    keys: tuple[pa.Array, ...]
    ordered: NDArray[np.int64] | None
    marked: NDArray[np.bool_] | None

    @classmethod
    def of(cls, keys: Sequence[pa.ChunkedArray], mark: pa.ChunkedArray | None) -> KeyRows:
        """Prepare columns for lookups."""
        arrays = tuple(comparable(one.combine_chunks()) for one in keys)
        marked = None if mark is None else pc.fill_null(mark, False).to_numpy()
        return cls(arrays, _ordered(arrays[0]), marked)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.keys[0])

    @property
    def bytes(self) -> int:
        """Memory that the arrays take."""
        marked = 0 if self.marked is None else self.marked.nbytes
        return int(sum(one.nbytes for one in self.keys)) + marked + 500

    def with_key(self, key: RowKey) -> Rows:
        """Return the rows of a key."""
        start, stop, after = 0, len(self), 0
        if self.ordered is not None and key.order[0] is not None:
            first = self.ordered.dtype.type(key.order[0])
            start, stop = (int(self.ordered.searchsorted(first, side)) for side in ("left", "right"))
            after = 1
        found: Rows = np.arange(start, stop)
        for array, value in zip(self.keys[after:], key.values[after:], strict=True):
            if not len(found):
                break
            part = array.slice(start, stop - start)
            same = pc.equal(part, value) if value.is_valid else pc.is_null(part)
            found = found[pc.fill_null(same, False).to_numpy(zero_copy_only=False)[found - start]]
        return found


def comparable(array: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return values of a key in which equal ones are the same: minus zero becomes zero."""
    return pc.add(array, pa.scalar(0.0, array.type)) if pa.types.is_floating(array.type) else array


def _ordered(array: pa.Array) -> NDArray[np.int64] | None:
    of = array.type
    if array.null_count or not (pa.types.is_integer(of) or pa.types.is_date32(of) or pa.types.is_timestamp(of)):
        return None
    plain = array.view(pa.int32() if of.bit_width == 32 else pa.int64()).to_numpy()
    return plain if bool(np.all(plain[1:] >= plain[:-1])) else None


class AskedKeys:
    """Many keys that are looked up together.

    Args:
        columns: an array for each column of the key, with at least one key; no two are equal.
    """

    def __init__(self, columns: Sequence[pa.Array]) -> None:
        self._values: list[pa.Array] = []
        self._combined: list[Rows] = []
        codes: Rows = np.zeros(len(columns[0]), np.int64)
        for column in map(comparable, columns):
            values = column.unique()
            self._values.append(values)
            codes, combined = _ranked(codes * len(values) + pc.index_in(column, value_set=values).to_numpy())
            self._combined.append(combined)
        self._numbers = np.argsort(codes)
        first = self._values[0]
        self._by_order = pc.array_sort_indices(first).to_numpy().astype(np.int64)
        self._first = _ordered(first.take(pa.array(self._by_order)).slice(0, len(first) - first.null_count))

    @classmethod
    def of(cls, keys: Sequence[RowKey]) -> AskedKeys:
        """Return keys that callers gave; they are numbered in this order."""
        parts = range(len(keys[0].values))
        return cls([pa.array([key.values[i].as_py() for key in keys], keys[0].values[i].type) for i in parts])

    def find(self, rows: KeyRows) -> tuple[Rows, Rows]:
        """Return the rows that have one of the keys, and the number of the key of each."""
        found, code = self._candidates(rows)
        codes: Rows = np.zeros(len(found), np.int64)
        for array, values, combined in zip(rows.keys, self._values, self._combined, strict=True):
            if code is None:
                part = array if len(found) == len(array) else array.take(pa.array(found))
                code = pc.fill_null(pc.index_in(part, value_set=values), -1).to_numpy()
            whole = codes * len(values) + code
            at = np.minimum(combined.searchsorted(whole), len(combined) - 1)
            same = (code >= 0) & (combined[at] == whole)
            found, codes, code = found[same], at[same], None
        return found, self._numbers[codes]

    def _candidates(self, rows: KeyRows) -> tuple[Rows, Rows | None]:
        """Return rows that may have one of the keys, and the number of each one's value in the first column, None if it is not known.

        Where the first column is in order, a search in it finds them.
        """
        if rows.ordered is None or self._first is None or not len(rows):
            return np.arange(len(rows)), None
        begin = self._first.searchsorted(rows.ordered[0], "left")
        end = self._first.searchsorted(rows.ordered[-1], "right")
        within = self._first[begin:end]
        starts, stops = (rows.ordered.searchsorted(within, side) for side in ("left", "right"))
        counts = stops - starts
        firsts = np.cumsum(counts) - counts
        found: Rows = np.arange(counts.sum()) + np.repeat(starts - firsts, counts)
        return found, np.repeat(self._by_order[begin:end], counts)


def _ranked(codes: Rows) -> tuple[Rows, Rows]:
    """Return the rank of each code, and the codes by rank: small numbers, however many parts a key has."""
    combined, ranks = np.unique(codes, return_inverse=True)
    return ranks, combined
