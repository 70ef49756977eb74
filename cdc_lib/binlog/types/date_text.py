"""DATE, DATETIME and TIMESTAMP as the text that SELECT shows, zero and partial dates included.

Row images: see :mod:`cdc_lib.binlog.types.temporal`. TIMESTAMP is shown in UTC; its zero is ``0000-00-00 00:00:00``.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numba import njit

from cdc_lib.binlog.bytes.integers import big, u24, u32
from cdc_lib.binlog.types.builders import TextBuilder
from cdc_lib.binlog.types.codec import Bytes, Cells, ValueFault
from cdc_lib.binlog.types.temporal import fraction, old_parts
from cdc_lib.model.schema import SourceType

_DATE, _DATETIME, _TIMESTAMP, _OLD_DATETIME, _OLD_TIMESTAMP = range(5)
_FORMS = {
    ("date", ""): _DATE,
    ("datetime", ""): _DATETIME,
    ("timestamp", ""): _TIMESTAMP,
    ("datetime", "old"): _OLD_DATETIME,
    ("timestamp", "old"): _OLD_TIMESTAMP,
}
_LONGEST = len("9999-12-31 23:59:59.999999")


@njit(cache=True, nogil=True)
def civil(seconds):
    """Year, month, day, hour, minute and second of seconds since 1970 (at least 0); year 0 of 0 seconds, which is no time.

    Counts years from March; 146097 days make 400 years.
    """
    if seconds == 0:
        return seconds, seconds, seconds, seconds, seconds, seconds
    day, clock = seconds // 86400 + 719468, seconds % 86400
    of_era = day % 146097
    year = (of_era - of_era // 1460 + of_era // 36524 - of_era // 146096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    march = (5 * of_year + 2) // 153
    month = march + 3 if march < 10 else march - 9
    year += day // 146097 * 400 + (1 if month <= 2 else 0)
    return year, month, of_year - (153 * march + 2) // 5 + 1, clock // 3600, clock // 60 % 60, clock % 60


@njit(cache=True, nogil=True, inline="always")
def _two(data, o, number, separator):
    """Write two digits and a sign after them."""
    data[o] = 48 + number // 10
    data[o + 1] = 48 + number % 10
    data[o + 2] = separator
    return o + 3


@njit(cache=True, nogil=True)
def write(b, pos, length, n, offsets, data, valid, at, form, digits):
    """Write cells of one form as text; returns the row of a cell with an impossible part, else -1."""
    o = np.int64(offsets[at])
    for i in range(n):
        valid[at + i] = length[i] >= 0
        if length[i] >= 0:
            p = pos[i]
            hour = minute = second = micros = np.int64(0)
            if form == _DATE:
                v = u24(b, p)
                year, month, day = v >> 9, (v >> 5) & 15, v & 31
            elif form == _DATETIME:
                v = big(b, p, 5) - 0x8000000000
                year, month, day = (v >> 22) // 13, (v >> 22) % 13, (v >> 17) & 31
                hour, minute, second = (v >> 12) & 31, (v >> 6) & 63, v & 63
                micros = fraction(b, p + 5, digits)
            elif form == _OLD_DATETIME:
                year, month, day, hour, minute, second = old_parts(b, p)
            else:
                v = big(b, p, 4) if form == _TIMESTAMP else u32(b, p)
                year, month, day, hour, minute, second = civil(v)
                if form == _TIMESTAMP:
                    micros = fraction(b, p + 4, digits)
            impossible = year < 0 or year > 9999 or month > 12 or hour > 23 or minute > 59 or second > 59
            if impossible or micros > 999_999:
                return i
            _two(data, o, year // 100, 45)
            o = _two(data, o + 2, year % 100, 45)
            o = _two(data, o, month, 45)
            o = _two(data, o, day, 32)
            if form == _DATE:
                o -= 1
            else:
                o = _two(data, o, hour, 58)
                o = _two(data, o, minute, 58)
                o = _two(data, o, second, 46)
                if digits == 0:
                    o -= 1
                unit = np.int64(100_000)
                for _ in range(digits):
                    data[o] = 48 + micros // unit % 10
                    unit //= 10
                    o += 1
        offsets[at + i + 1] = o
    return -1


class DateTextCodec:
    """Codec of DATE, DATETIME and TIMESTAMP out of row images, as text.

    Args:
        source_type: of kind ``date``, ``datetime`` or ``timestamp``.
    """

    def __init__(self, source_type: SourceType) -> None:
        """Choose the form."""
        self.arrow_type = pa.string()
        self._column = TextBuilder(self.arrow_type)
        self._form = _FORMS[source_type.kind, source_type.form]
        self._digits = source_type.scale

    def append(self, data: Bytes, pos: Cells, length: Cells, rows: int) -> None:
        """Append cells."""
        column = self._column
        column.reserve(rows, rows * _LONGEST + 1)
        target = (column.offsets, column.data, column.validity.bytes, column.rows)
        bad = write(data, pos, length, rows, *target, self._form, self._digits)
        if bad >= 0:
            raise ValueFault(int(bad), "a date with an impossible part")
        column.rows += rows

    def finish(self) -> pa.Array:
        """Return the column."""
        return self._column.finish()
