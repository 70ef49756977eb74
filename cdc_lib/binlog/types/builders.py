"""Arrow column buffers that grow.

A codec appends the cells of one walk to its builder; at the end of a row group the buffers become an Arrow array without a
copy, and the builder starts over with new ones of the same size (the old ones belong to Arrow then), for the next row group
will be much like the last.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cdc_lib.binlog.types.codec import ValueFault

_Scalar = TypeVar("_Scalar", bound=np.generic)

_FIRST_ROWS = 1024
_FIRST_BYTES = 16 * 1024
MAX_TEXT_BYTES = 2**31 - 1
"""Bytes that the 32-bit offsets of an Arrow string column can address."""
TOO_MUCH_TEXT = "more than 2 GiB of text, or what may become as much in UTF-8, in one column of one row group"


class ValidityBuilder:
    """One byte per row, 1 where there is a value; packed to bits at the end."""

    def __init__(self) -> None:
        """Start empty."""
        self.bytes: npt.NDArray[np.uint8] = np.empty(_FIRST_ROWS, np.uint8)

    def reserve(self, rows: int) -> None:
        """Make room for rows in all."""
        self.bytes = grown(self.bytes, rows)

    def finish(self, rows: int) -> tuple[pa.Buffer | None, int]:
        """Return the bitmap (None without a NULL) and the number of NULLs; start over."""
        valid = self.bytes[:rows]
        nulls = rows - int(np.count_nonzero(valid))
        return (pa.py_buffer(np.packbits(valid, bitorder="little")) if nulls else None), nulls


def grown(array: npt.NDArray[_Scalar], size: int) -> npt.NDArray[_Scalar]:
    """Return the array, or a copy of at least ``size`` (doubling) with the same beginning."""
    if array.shape[0] >= size:
        return array
    wider = np.empty(max(size, 2 * array.shape[0]), array.dtype)
    wider[: array.shape[0]] = array
    return wider


class FixedBuilder:
    """Values of one fixed width.

    Args:
        arrow_type: of the finished array.
        dtype: of one value; 128-bit decimals take two ``int64`` of ``per_row``.
        per_row: elements of ``dtype`` per row.
    """

    def __init__(self, arrow_type: pa.DataType, dtype: npt.DTypeLike, per_row: int = 1) -> None:
        """Start empty."""
        self.arrow_type = arrow_type
        self.rows = 0
        self._per_row = per_row
        self.values: npt.NDArray[Any] = np.empty(_FIRST_ROWS * per_row, dtype)
        self.validity = ValidityBuilder()

    def reserve(self, rows: int) -> None:
        """Make room for this many more rows."""
        self.values = grown(self.values, (self.rows + rows) * self._per_row)
        self.validity.reserve(self.rows + rows)

    def finish(self) -> pa.Array:
        """Return what was appended as an Arrow array and start over."""
        bitmap, nulls = self.validity.finish(self.rows)
        values = self.values[: self.rows * self._per_row]
        array = pa.Array.from_buffers(self.arrow_type, self.rows, [bitmap, pa.py_buffer(values)], nulls)
        self.values = np.empty_like(self.values)
        self.rows = 0
        return array


class TextBuilder:
    """Strings or bytes of any length."""

    def __init__(self, arrow_type: pa.DataType) -> None:
        """Start empty."""
        self.arrow_type = arrow_type
        self.rows = 0
        self.offsets: npt.NDArray[np.int32] = np.zeros(_FIRST_ROWS + 1, np.int32)
        self.data: npt.NDArray[np.uint8] = np.empty(_FIRST_BYTES, np.uint8)
        self.validity = ValidityBuilder()

    @property
    def used(self) -> int:
        """Bytes of text so far."""
        return int(self.offsets[self.rows])

    def reserve(self, rows: int, size: int) -> None:
        """Make room for this many more rows and bytes.

        Raises:
            ValueFault: one row group would hold more text than 32-bit offsets address.
        """
        if self.used + size > MAX_TEXT_BYTES:
            raise ValueFault(0, TOO_MUCH_TEXT)
        self.offsets = grown(self.offsets, self.rows + rows + 1)
        self.data = grown(self.data, self.used + size)
        self.validity.reserve(self.rows + rows)

    def finish(self) -> pa.Array:
        """Return what was appended as an Arrow array and start over."""
        bitmap, nulls = self.validity.finish(self.rows)
        buffers = [bitmap, pa.py_buffer(self.offsets[: self.rows + 1]), pa.py_buffer(self.data[: self.used])]
        array = pa.Array.from_buffers(self.arrow_type, self.rows, buffers, nulls)
        self.offsets = np.empty_like(self.offsets)
        self.offsets[0] = 0
        self.data = np.empty_like(self.data)
        self.rows = 0
        return array
