"""DECIMAL of up to 38 digits.

Row image (MySQL ``strings/decimal.cc``, decimal2bin): digits before and after the point in groups of nine, four bytes
each, big-endian; the left-over digits of either side in 1 to 4 bytes (1-2, 3-4, 5-6, 7-9 digits). The first bit is flipped,
and all bits are when the number is negative. Text row: ``[-]digits[.digits]`` with all of the scale's digits.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numba import njit

from cdc_lib.binlog.types.builders import FixedBuilder
from cdc_lib.binlog.types.codec import Bytes, Cells, ValueFault
from cdc_lib.model.schema import SourceType

BEYOND = "its digits are beyond those of the column's type"

_BYTES_OF_DIGITS = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)


def packed_size(precision: int, scale: int) -> int:
    """Return the bytes of a packed DECIMAL(precision, scale)."""
    whole, left = divmod(precision - scale, 9)
    parts, right = divmod(scale, 9)
    return whole * 4 + _BYTES_OF_DIGITS[left] + parts * 4 + _BYTES_OF_DIGITS[right]


def groups(precision: int, scale: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the widths in bytes and the powers of ten of a packed number's groups, in their order."""
    widths: list[int] = []
    digits: list[int] = []
    whole, left = divmod(precision - scale, 9)
    parts, right = divmod(scale, 9)
    for count in ([left] if left else []) + [9] * (whole + parts) + ([right] if right else []):
        digits.append(count)
        widths.append(_BYTES_OF_DIGITS[count])
    return np.array(widths, np.int64), np.array([10**count for count in digits], np.int64)


@njit(cache=True, nogil=True, inline="always")
def _store(values, row, l0, l1, l2, l3, negative):
    """Write four 32-bit limbs (lowest first) as a 128-bit two's complement number."""
    low = np.uint64(l0) | (np.uint64(l1) << np.uint64(32))
    high = np.uint64(l2) | (np.uint64(l3) << np.uint64(32))
    if negative:
        low = ~low + np.uint64(1)
        high = ~high
        if low == np.uint64(0):
            high += np.uint64(1)
    values[2 * row] = np.int64(low)
    values[2 * row + 1] = np.int64(high)


@njit(cache=True, nogil=True)
def image(b, pos, length, n, values, valid, at, widths, powers):
    """Unpack row images to 128 bits; returns the row of a cell with digits beyond its type, else -1."""
    mask = np.uint64(0xFFFFFFFF)
    s32 = np.uint64(32)
    for i in range(n):
        if length[i] < 0:
            valid[at + i] = 0
            values[2 * (at + i)] = 0
            values[2 * (at + i) + 1] = 0
            continue
        valid[at + i] = 1
        p = pos[i]
        negative = b[p] & 0x80 == 0
        flip = np.int64(0xFF) if negative else np.int64(0)
        first = np.int64(0x80)
        l0 = np.uint64(0)
        l1 = np.uint64(0)
        l2 = np.uint64(0)
        l3 = np.uint64(0)
        for g in range(widths.shape[0]):
            group = np.int64(0)
            for _ in range(widths[g]):
                group = (group << 8) | (np.int64(b[p]) ^ flip ^ first)
                first = np.int64(0)
                p += 1
            if group >= powers[g]:
                return i
            power = np.uint64(powers[g])
            l0 = l0 * power + np.uint64(group)
            l1 = l1 * power + (l0 >> s32)
            l2 = l2 * power + (l1 >> s32)
            l3 = l3 * power + (l2 >> s32)
            l0 &= mask
            l1 &= mask
            l2 &= mask
        _store(values, at + i, l0, l1, l2, l3, negative)
    return -1


@njit(cache=True, nogil=True)
def text(b, pos, length, n, values, valid, at):
    """Read digits around an optional point to 128 bits; returns the row of a cell that is no number, else -1."""
    mask = np.uint64(0xFFFFFFFF)
    s32 = np.uint64(32)
    ten = np.uint64(10)
    for i in range(n):
        valid[at + i] = length[i] >= 0
        l0 = np.uint64(0)
        l1 = np.uint64(0)
        l2 = np.uint64(0)
        l3 = np.uint64(0)
        negative = False
        for j in range(max(length[i], 0)):
            c = b[pos[i] + j]
            if c == 45 and j == 0:
                negative = True
                continue
            if c == 46:
                continue
            if c < 48 or c > 57:
                return i
            l0 = l0 * ten + np.uint64(c - 48)
            l1 = l1 * ten + (l0 >> s32)
            l2 = l2 * ten + (l1 >> s32)
            l3 = l3 * ten + (l2 >> s32)
            l0 &= mask
            l1 &= mask
            l2 &= mask
        _store(values, at + i, l0, l1, l2, l3, negative)
    return -1


class DecimalCodec:
    """Codec of DECIMAL up to 38 digits.

    Args:
        source_type: of kind ``decimal``.
        from_text: the cells are those of a text result set, not of a row image.
    """

    def __init__(self, source_type: SourceType, *, from_text: bool) -> None:
        """Lay out the groups of the packed form."""
        self.arrow_type = pa.decimal128(source_type.precision, source_type.scale)
        self._column = FixedBuilder(self.arrow_type, np.int64, per_row=2)
        self._widths, self._powers = groups(source_type.precision, source_type.scale)
        self._from_text = from_text

    def append(self, data: Bytes, pos: Cells, length: Cells, rows: int) -> None:
        """Append cells."""
        column = self._column
        column.reserve(rows)
        target = (column.values, column.validity.bytes, column.rows)
        if not self._from_text:
            fault = image(data, pos, length, rows, *target, self._widths, self._powers)
            if fault >= 0:
                raise ValueFault(int(fault), BEYOND)
        else:
            fault = text(data, pos, length, rows, *target)
            if fault >= 0:
                raise ValueFault(int(fault), "the server's text is not a decimal number")
        column.rows += rows

    def finish(self) -> pa.Array:
        """Return the column."""
        return self._column.finish()
