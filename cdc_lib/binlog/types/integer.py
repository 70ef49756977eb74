"""TINYINT to BIGINT, BIT and YEAR.

Row image: little-endian, 1, 2, 3, 4 or 8 bytes; two's complement when signed. BIT(n): ``(n + 7) // 8`` bytes, big-endian.
YEAR: one byte, 0 for 0000, else 1900 more. Text row: decimal digits; BIT as in the row image.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit

from cdc_lib.binlog.bytes.integers import big, little
from cdc_lib.binlog.types.builders import FixedBuilder
from cdc_lib.binlog.types.codec import Bytes, Cells, Kernel, ValueFault
from cdc_lib.model.schema import SourceType

_BOOLEAN = "the source file makes the column a boolean"
_BOOLEAN_HINT = (
    "Set other_values: as_true for the column under booleans in the source file. Or take it out of booleans and read the table "
    "again: cdc snapshot."
)


@njit(cache=True, nogil=True)
def signed(b, pos, length, n, values, valid, at):
    """Sign-extend little-endian integers of 1 to 8 bytes."""
    for i in range(n):
        width = length[i]
        if width < 0:
            valid[at + i] = 0
            values[at + i] = 0
            continue
        valid[at + i] = 1
        shift = 64 - 8 * width
        values[at + i] = (little(b, pos[i], width) << shift) >> shift
    return -1


@njit(cache=True, nogil=True)
def unsigned(b, pos, length, n, values, valid, at):
    """Zero-extend little-endian integers of 1 to 8 bytes."""
    for i in range(n):
        width = length[i]
        valid[at + i] = width >= 0
        values[at + i] = little(b, pos[i], max(width, 0))
    return -1


@njit(cache=True, nogil=True)
def bits(b, pos, length, n, values, valid, at):
    """Big-endian bit strings of up to 64 bits."""
    for i in range(n):
        width = length[i]
        valid[at + i] = width >= 0
        values[at + i] = big(b, pos[i], max(width, 0))
    return -1


@njit(cache=True, nogil=True)
def year(b, pos, length, n, values, valid, at):
    """One byte, years since 1900; 0 is the year 0000."""
    for i in range(n):
        value = np.int64(b[pos[i]]) if length[i] > 0 else np.int64(0)
        values[at + i] = 1900 + value if value > 0 else 0
        valid[at + i] = length[i] >= 0
    return -1


@njit(cache=True, nogil=True)
def text(b, pos, length, n, values, valid, at):
    """Decimal digits with an optional minus; returns the row of a cell that is not one, else -1.

    Numbers without a sign may have 64 bits: the sum wraps to the same bits.
    """
    for i in range(n):
        if length[i] < 0:
            valid[at + i] = 0
            values[at + i] = 0
            continue
        valid[at + i] = 1
        p = pos[i]
        end = p + length[i]
        negative = p < end and b[p] == 45
        if negative:
            p += 1
        if p == end:
            return i
        value = np.int64(0)
        while p < end:
            digit = np.int64(b[p]) - 48
            if digit < 0 or digit > 9:
                return i
            value = value * 10 + digit
            p += 1
        values[at + i] = -value if negative else value
    return -1


class IntegerCodec:
    """Codec of every whole number.

    Args:
        source_type: of kind ``int``, ``bit`` or ``year``.
        from_text: the cells are those of a text result set, not of a row image.
    """

    def __init__(self, source_type: SourceType, *, from_text: bool) -> None:
        """Choose the kernel and the column's width in the lake."""
        lake_type = source_type.lake_type
        self._kernel: Kernel = _kernel(source_type, from_text=from_text)
        if lake_type.startswith("decimal"):
            # Spark reads it as the decimal(20,0) that the lake holds.
            self.arrow_type = pa.uint64()
            self._column = FixedBuilder(self.arrow_type, np.int64)
        elif lake_type == "int":
            self.arrow_type = pa.int32()
            self._column = FixedBuilder(self.arrow_type, np.int32)
        else:
            self.arrow_type = pa.int64()
            self._column = FixedBuilder(self.arrow_type, np.int64)

    def append(self, data: Bytes, pos: Cells, length: Cells, rows: int) -> None:
        """Append cells."""
        column = self._column
        column.reserve(rows)
        fault = self._kernel(data, pos, length, rows, column.values, column.validity.bytes, column.rows)
        if fault >= 0:
            raise ValueFault(int(fault), "the server's text is not a whole number")
        column.rows += rows

    def finish(self) -> pa.Array:
        """Return the column."""
        return self._column.finish()


class BooleanCodec:
    """Codec of whole numbers of one byte that the lake holds as booleans: every number but 0 is true.

    Args:
        source_type: of kind ``int``, with ``as_boolean``.
        from_text: the cells are those of a text result set, not of a row image.
    """

    def __init__(self, source_type: SourceType, *, from_text: bool) -> None:
        """Choose the kernel, and whether numbers other than 0 and 1 are refused."""
        self._kernel: Kernel = _kernel(source_type, from_text=from_text)
        self._strict = source_type.as_boolean == "error"
        self.arrow_type = pa.bool_()
        self._column = FixedBuilder(pa.int32(), np.int32)

    def append(self, data: Bytes, pos: Cells, length: Cells, rows: int) -> None:
        """Append cells."""
        column = self._column
        column.reserve(rows)
        fault = self._kernel(data, pos, length, rows, column.values, column.validity.bytes, column.rows)
        if fault >= 0:
            raise ValueFault(int(fault), "the server's text is not a whole number")
        if self._strict:
            new = slice(column.rows, column.rows + rows)
            wrong = (column.values[new] & ~1 != 0) & (column.validity.bytes[new] != 0)
            if wrong.any():
                row = int(wrong.argmax())
                raise ValueFault(row, f"{column.values[new][row]} is neither 0 nor 1, and {_BOOLEAN}", _BOOLEAN_HINT)
        column.rows += rows

    def finish(self) -> pa.Array:
        """Return the column."""
        return pc.not_equal(self._column.finish(), 0)


def _kernel(source_type: SourceType, *, from_text: bool) -> Kernel:
    if source_type.kind == "bit":
        return bits
    if from_text:
        return text
    if source_type.kind == "year":
        return year
    return unsigned if source_type.unsigned else signed
