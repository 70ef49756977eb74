"""TIME: the lake holds the text that SELECT shows, because it may be negative and longer than a day.

Row image (MySQL ``mysys/my_time.cc``): TIME(f) three bytes, big-endian, 2**23 added: hour 10 bits, minute 6, second 6; then
(f + 1) // 2 bytes of fraction, part of the same two's complement number. Before MySQL 5.6: three bytes, little-endian, a signed
number whose decimal digits are ``hhhmmss``. Text row: ``[-]hh:mm:ss[.ffffff]`` already.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numba import njit

from cdc_lib.binlog.bytes.integers import big, u24
from cdc_lib.binlog.types.builders import TextBuilder
from cdc_lib.binlog.types.codec import Bytes, Cells, ValueFault
from cdc_lib.model.schema import SourceType


@njit(cache=True, nogil=True, inline="always")
def _from_decimal(v):
    """The packed form of ``hhhmmss``; minutes or seconds beyond 59 come out as 63."""
    size = abs(v)
    minute, second = size // 100 % 100, size % 100
    packed = size // 10000 << 12 | min(minute, 63) << 6 | min(second, 63)
    return -packed if v < 0 else packed


@njit(cache=True, nogil=True)
def time_image(b, pos, length, n, offsets, data, valid, at, digits, old):
    """Write each TIME as ``[-]hh:mm:ss[.f]`` with all digits of its fraction; returns the row of an impossible one, else -1."""
    o = np.int64(offsets[at])
    size = (digits + 1) // 2
    limit = np.int64(100) ** size
    for i in range(n):
        valid[at + i] = length[i] >= 0
        if length[i] >= 0:
            # Whole and fraction are one two's complement number of 24 + 8 * size bits.
            if old:
                v = _from_decimal((u24(b, pos[i]) ^ 0x800000) - 0x800000)
            else:
                v = big(b, pos[i], 3 + size) - (np.int64(0x800000) << (8 * size))
            if v < 0:
                data[o] = 45
                o += 1
                v = -v
            whole = v >> (8 * size)
            fraction = v & ((np.int64(1) << (8 * size)) - 1)
            hour = (whole >> 12) & 1023
            if hour > 838 or (whole >> 6) & 63 > 59 or whole & 63 > 59 or fraction >= limit:
                return i
            if hour >= 100:
                data[o] = 48 + hour // 100
                o += 1
            for part in (hour % 100, (whole >> 6) & 63, whole & 63):
                data[o] = 48 + part // 10
                data[o + 1] = 48 + part % 10
                data[o + 2] = 58
                o += 3
            o -= 1
            if digits > 0:
                data[o] = 46
                o += 1
                stored = 2 * size
                for _ in range(stored - digits):
                    fraction //= 10
                for d in range(digits):
                    data[o + digits - 1 - d] = 48 + fraction % 10
                    fraction //= 10
                o += digits
        offsets[at + i + 1] = o
    return -1


_LONGEST_TIME = len("-838:59:59.000000") + 1


class TimeCodec:
    """Codec of TIME out of row images; the lake holds the text that SELECT shows.

    Args:
        source_type: of kind ``time``.
    """

    def __init__(self, source_type: SourceType) -> None:
        """Start empty."""
        self.arrow_type = pa.string()
        self._column = TextBuilder(self.arrow_type)
        self._digits = source_type.scale
        self._old = source_type.form == "old"

    def append(self, data: Bytes, pos: Cells, length: Cells, rows: int) -> None:
        """Append cells."""
        column = self._column
        column.reserve(rows, rows * _LONGEST_TIME)
        target = (column.offsets, column.data, column.validity.bytes, column.rows)
        bad = time_image(data, pos, length, rows, *target, self._digits, self._old)
        if bad >= 0:
            raise ValueFault(int(bad), "a time with an impossible part")
        column.rows += rows

    def finish(self) -> pa.Array:
        """Return the column."""
        return self._column.finish()
