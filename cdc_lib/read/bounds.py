"""Least and greatest keys of files and row groups, by which most of them are not read.

A bound that is unknown excludes nothing. Bounds of text may be truncated: the lower one is then less than the least value, and
the upper one greater than the greatest.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cdc_lib.apply.key_rows import OrderValue

Point = tuple[tuple[int, OrderValue], ...]
"""Parts of a key that sort: (0, None) is null or less than everything, (1, value) a value, (2, None) greater than everything."""

LEAST, GREATEST = (0, None), (2, None)


@dataclass(frozen=True, slots=True)
class Bound:
    """The values of one key column in a file or row group.

    Args:
        lower: None if unknown.
        upper: None if unknown.
        nulls: whether a value may be null.
    """

    lower: OrderValue = None
    upper: OrderValue = None
    nulls: bool = True

    def may_have(self, value: OrderValue) -> bool:
        """Whether a row may have this value."""
        if value is None:
            return self.nulls
        above = self.lower is None or self.lower <= value  # type: ignore[operator]
        return above and (self.upper is None or value <= self.upper)  # type: ignore[operator]


def least_point(bounds: Sequence[Bound]) -> Point:
    """Return a point that no row's key is less than."""
    return tuple(LEAST if one.nulls or one.lower is None else (1, one.lower) for one in bounds)


def greatest_point(bounds: Sequence[Bound]) -> Point:
    """Return a point that no row's key is greater than."""
    return tuple(GREATEST if one.upper is None else (1, one.upper) for one in bounds)


def point_of(order: Sequence[OrderValue]) -> Point:
    """Return a key as a point."""
    return tuple(LEAST if value is None else (1, value) for value in order)


def decode_bound(of: pa.DataType, data: bytes | None) -> OrderValue:
    """Return a bound in Iceberg's single-value serialization; None if it is unknown.

    A column that was widened has shorter bounds in older files.
    """
    if data is None:
        return None
    if pa.types.is_floating(of):
        return float(struct.unpack("<f" if len(data) == 4 else "<d", data)[0])
    if pa.types.is_decimal(of):
        return int.from_bytes(data, "big", signed=True)
    if pa.types.is_boolean(of):
        return int(data != b"\x00")
    if pa.types.is_string(of) or pa.types.is_binary(of) or pa.types.is_fixed_size_binary(of):
        return bytes(data)
    return int.from_bytes(data, "little", signed=True)


class Bounds:
    """The bounds of many files in arrays, so that those of one key are found at once.

    Args:
        files: bounds of each key column, of each file.
        types: of the key columns.
    """

    def __init__(self, files: Sequence[Sequence[Bound]], types: Sequence[pa.DataType]) -> None:
        self._columns = [_ColumnBounds([one[i] for one in files], of) for i, of in enumerate(types)]
        self._count = len(files)

    def with_key(self, order: Sequence[OrderValue]) -> list[int]:
        """Return the numbers of the files that may have a row of this key, or of a key that begins with it."""
        found = np.ones(self._count, np.bool_)
        for column, value in zip(self._columns, order, strict=False):
            found &= column.may_have(value)
        return list(map(int, np.flatnonzero(found)))


class _ColumnBounds:
    def __init__(self, bounds: Sequence[Bound], of: pa.DataType) -> None:
        self.kind = _numpy_type(of)
        self.nulls = np.array([one.nulls for one in bounds], np.bool_)
        self.below = np.array([one.lower is None for one in bounds], np.bool_)
        self.above = np.array([one.upper is None for one in bounds], np.bool_)
        zero: OrderValue = b"" if _is_bytes(of) else 0
        self.lower = self._array([zero if one.lower is None else one.lower for one in bounds])
        self.upper = self._array([zero if one.upper is None else one.upper for one in bounds])

    def may_have(self, value: OrderValue) -> NDArray[np.bool_]:
        if value is None:
            return self.nulls
        held = self._array([value])
        return (self.below | np.asarray(self.lower <= held)) & (self.above | np.asarray(self.upper >= held))

    def _array(self, values: list[OrderValue]) -> NDArray[Any]:
        array: NDArray[Any] = np.empty(len(values), self.kind)
        for number, value in enumerate(values):  # numpy removes trailing zero bytes when it converts a list
            array[number] = value
        return array


def _is_bytes(of: pa.DataType) -> bool:
    return bool(pa.types.is_string(of) or pa.types.is_binary(of) or pa.types.is_fixed_size_binary(of))


def _numpy_type(of: pa.DataType) -> type:
    if pa.types.is_floating(of):
        return np.float64
    if _is_bytes(of) or (pa.types.is_decimal(of) and of.precision > 18):
        return np.object_
    return np.int64
