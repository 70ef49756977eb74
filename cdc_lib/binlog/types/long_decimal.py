"""DECIMAL of 39 to 65 digits: exact text, because the lake's decimal type ends at 38.

Row image: see :mod:`cdc_lib.binlog.types.decimal`. The text is that of SELECT: ``[-]digits[.digits]`` with all digits of the
scale, at least one before the point, and no others in front (ZEROFILL pads the text of a result; the binlog does not record it).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numba import njit

from cdc_lib.binlog.types.builders import TextBuilder
from cdc_lib.binlog.types.codec import Bytes, Cells, ValueFault
from cdc_lib.binlog.types.decimal import BEYOND, groups
from cdc_lib.model.schema import SourceType

_LONGEST = 1 + 65 + 1 + 1
"""Sign, digits, a zero before the point, the point."""


@njit(cache=True, nogil=True)
def image(b, pos, length, n, digits, widths, powers):
    """Unpack row images to one row of ``digits`` each, with a sign (1: negative) in front.

    Returns the row of a cell with digits beyond its type, else -1.
    """
    for i in range(n):
        if length[i] < 0:
            continue
        p = pos[i]
        negative = b[p] & 0x80 == 0
        flip = np.int64(0xFF) if negative else np.int64(0)
        first = np.int64(0x80)
        digits[i, 0] = negative
        at = 1
        for g in range(widths.shape[0]):
            group = np.int64(0)
            for _ in range(widths[g]):
                group = (group << 8) | (np.int64(b[p]) ^ flip ^ first)
                first = np.int64(0)
                p += 1
            if group >= powers[g]:
                return i
            power = powers[g]
            while power > 1:
                power //= 10
                digits[i, at] = group // power % 10
                at += 1
    return -1


@njit(cache=True, nogil=True)
def text(b, pos, length, n, digits, scale):
    """Read text rows to the same; returns the row of a cell that is no such number, else -1."""
    count = digits.shape[1] - 1
    for i in range(n):
        if length[i] < 0:
            continue
        digits[i, :] = 0
        p = pos[i]
        end = p + length[i]
        if p < end and b[p] == 45:
            digits[i, 0] = 1
            p += 1
        whole = end - p - scale - (1 if scale > 0 else 0)
        if whole < 0 or (scale > 0 and b[p + whole] != 46):
            return i
        for j in range(end - p):
            if scale > 0 and j == whole:
                continue
            c = np.int64(b[p + j]) - 48
            # The exponent of a digit, counted from the last one.
            exponent = count - (end - p - j) + (1 if scale > 0 and j < whole else 0)
            if c < 0 or c > 9 or (exponent < 0 and c != 0):
                return i
            if exponent >= 0:
                digits[i, 1 + exponent] = c
    return -1


@njit(cache=True, nogil=True)
def write(length, n, digits, scale, offsets, data, valid, at):
    """Write digits as text."""
    o = np.int64(offsets[at])
    count = digits.shape[1] - 1
    for i in range(n):
        valid[at + i] = length[i] >= 0
        if length[i] >= 0:
            first = count
            for j in range(count - 1, -1, -1):
                if digits[i, 1 + j] != 0:
                    first = j
            if digits[i, 0] and first < count:
                data[o] = 45
                o += 1
            for j in range(min(first, count - scale), count):
                if j == count - scale:
                    if first >= j:
                        data[o] = 48
                        o += 1
                    data[o] = 46
                    o += 1
                data[o] = 48 + digits[i, 1 + j]
                o += 1
            if scale == 0 and first == count:
                data[o] = 48
                o += 1
        offsets[at + i + 1] = o


class LongDecimalCodec:
    """Codec of DECIMAL of more than 38 digits.

    Args:
        source_type: of kind ``decimal``.
        from_text: the cells are those of a text result set, not of a row image.
    """

    def __init__(self, source_type: SourceType, *, from_text: bool) -> None:
        """Lay out the groups of the packed form."""
        self.arrow_type = pa.string()
        self._column = TextBuilder(self.arrow_type)
        self._precision = source_type.precision
        self._scale = source_type.scale
        self._widths, self._powers = groups(source_type.precision, source_type.scale)
        self._from_text = from_text

    def append(self, data: Bytes, pos: Cells, length: Cells, rows: int) -> None:
        """Append cells."""
        column = self._column
        digits = np.empty((rows, 1 + self._precision), np.uint8)
        if self._from_text:
            bad = text(data, pos, length, rows, digits, self._scale)
            if bad >= 0:
                raise ValueFault(int(bad), "the server's text is not a decimal number of the column's type")
        else:
            bad = image(data, pos, length, rows, digits, self._widths, self._powers)
            if bad >= 0:
                raise ValueFault(int(bad), BEYOND)
        column.reserve(rows, rows * _LONGEST)
        target = (column.offsets, column.data, column.validity.bytes, column.rows)
        write(length, rows, digits, self._scale, *target)
        column.rows += rows

    def finish(self) -> pa.Array:
        """Return the column."""
        return self._column.finish()
