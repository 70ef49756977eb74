"""DATE, DATETIME and TIMESTAMP.

Row image (MySQL ``mysys/my_time.cc``): DATE three bytes, little-endian: day 5 bits, month 4, year 15. DATETIME(f) five bytes,
big-endian, 2**39 added: year * 13 + month 17 bits, day 5, hour 5, minute 6, second 6. TIMESTAMP(f) four bytes, big-endian:
seconds since 1970 in UTC. Both are followed by (f + 1) // 2 bytes of fraction, big-endian, in hundredths, ten-thousandths or
millionths. Before MySQL 5.6 both are little-endian and without a fraction: DATETIME eight bytes, a number whose decimal
digits are ``YYYYMMDDhhmmss``, TIMESTAMP four. Text row: ``YYYY-MM-DD hh:mm:ss[.ffffff]``.

Dates with a zero month or day have no place in the lake's date types: they become NULL or stop the window, as configured, or
all dates are kept as text (``date_text.py``).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numba import njit

from cdc_lib.binlog.bytes.integers import big, u24, u32, u64
from cdc_lib.binlog.types.builders import FixedBuilder
from cdc_lib.binlog.types.codec import Bytes, Cells, ValueFault
from cdc_lib.model.schema import SourceType
from cdc_lib.model.value_policy import ValuePolicy

_ZERO = np.iinfo(np.int64).min
_WRONG = np.iinfo(np.int64).min + 1


def fraction_size(digits: int) -> int:
    """Return the bytes that a fraction of 0 to 6 digits takes."""
    return (digits + 1) // 2


@njit(cache=True, nogil=True)
def days(year, month, day):
    """Days since 1970-01-01 in the proleptic Gregorian calendar, or _ZERO when there is no such day.

    Counts years from March, so that a leap day is a year's last; 146097 days make 400 years.
    """
    if month < 1 or month > 12 or day < 1 or day > 31:
        return _ZERO
    if month == 2:
        leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
        if day > (29 if leap else 28):
            return _ZERO
    elif day > 30 and (month == 4 or month == 6 or month == 9 or month == 11):
        return _ZERO
    y = year - 1 if month <= 2 else year
    era = y // 400
    of_era = y - era * 400
    of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    return era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719468


@njit(cache=True, nogil=True, inline="always")
def fraction(b, p, digits):
    """Microseconds of a fraction of so many digits."""
    if digits == 0:
        return np.int64(0)
    if digits <= 2:
        return big(b, p, 1) * 10_000
    if digits <= 4:
        return big(b, p, 2) * 100
    return big(b, p, 3)


@njit(cache=True, nogil=True)
def date_image(b, p, size, digits):
    """DATE as days since 1970."""
    v = u24(b, p)
    if v >> 9 > 9999 or (v >> 5) & 15 > 12:
        return np.int64(_WRONG)
    return days(v >> 9, (v >> 5) & 15, v & 31)


@njit(cache=True, nogil=True)
def datetime_image(b, p, size, digits):
    """DATETIME as microseconds since 1970 without a time zone."""
    v = big(b, p, 5) - 0x8000000000
    year, hour, minute, second = (v >> 22) // 13, (v >> 12) & 31, (v >> 6) & 63, v & 63
    micros = fraction(b, p + 5, digits)
    if v < 0 or year > 9999 or hour > 23 or minute > 59 or second > 59 or micros > 999_999:
        return np.int64(_WRONG)
    day = days(year, (v >> 22) % 13, (v >> 17) & 31)
    if day == _ZERO:
        return np.int64(_ZERO)
    return (day * 86400 + hour * 3600 + minute * 60 + second) * 1_000_000 + micros


@njit(cache=True, nogil=True)
def timestamp_image(b, p, size, digits):
    """TIMESTAMP as microseconds since 1970 in UTC; zero is MySQL's zero date."""
    micros = fraction(b, p + 4, digits)
    if micros > 999_999:
        return np.int64(_WRONG)
    v = big(b, p, 4) * 1_000_000 + micros
    return np.int64(_ZERO) if v == 0 else v


@njit(cache=True, nogil=True)
def old_parts(b, p):
    """Year, month, day, hour, minute and second of a DATETIME before 5.6; the year is -1 where a part is impossible."""
    v = u64(b, p)
    day, clock = v // 1_000_000, v % 1_000_000
    year, month, day = day // 10000, day // 100 % 100, day % 100
    hour, minute, second = clock // 10000, clock // 100 % 100, clock % 100
    if v < 0 or year > 9999 or month > 12 or day > 31 or hour > 23 or minute > 59 or second > 59:
        year = np.int64(-1)
    return year, month, day, hour, minute, second


@njit(cache=True, nogil=True)
def old_datetime_image(b, p, size, digits):
    """DATETIME before 5.6 as microseconds since 1970 without a time zone."""
    year, month, day, hour, minute, second = old_parts(b, p)
    if year < 0:
        return np.int64(_WRONG)
    since = days(year, month, day)
    return since if since == _ZERO else (since * 86400 + hour * 3600 + minute * 60 + second) * 1_000_000


@njit(cache=True, nogil=True)
def old_timestamp_image(b, p, size, digits):
    """TIMESTAMP before 5.6 as microseconds since 1970 in UTC; zero is MySQL's zero date."""
    v = u32(b, p) * 1_000_000
    return np.int64(_ZERO) if v == 0 else v


@njit(cache=True, nogil=True)
def _number(b, p, count):
    """Digits as a number, -1 if a character is not a digit."""
    v = np.int64(0)
    for i in range(count):
        d = np.int64(b[p + i]) - 48
        if d < 0 or d > 9:
            return np.int64(-1)
        v = v * 10 + d
    return v


@njit(cache=True, nogil=True)
def date_text(b, p, size, digits):
    """``YYYY-MM-DD`` as days since 1970."""
    if size < 10:
        return np.int64(_WRONG)
    year, month, day = _number(b, p, 4), _number(b, p + 5, 2), _number(b, p + 8, 2)
    if year < 0 or month < 0 or day < 0:
        return np.int64(_WRONG)
    return days(year, month, day)


@njit(cache=True, nogil=True)
def datetime_text(b, p, size, digits):
    """``YYYY-MM-DD hh:mm:ss[.ffffff]`` as microseconds since 1970."""
    if size < 19:
        return np.int64(_WRONG)
    day = date_text(b, p, size, digits)
    hour, minute, second = _number(b, p + 11, 2), _number(b, p + 14, 2), _number(b, p + 17, 2)
    if day == _WRONG or hour < 0 or minute < 0 or second < 0:
        return np.int64(_WRONG)
    if day == _ZERO:
        return np.int64(_ZERO)
    micros = np.int64(0)
    if size > 20:
        micros = _number(b, p + 20, size - 20)
        if micros < 0 or size > 26:
            return np.int64(_WRONG)
        for _ in range(26 - size):
            micros *= 10
    return (day * 86400 + hour * 3600 + minute * 60 + second) * 1_000_000 + micros


_FORMS = {
    ("date", False): 0,
    ("datetime", False): 1,
    ("timestamp", False): 2,
    ("date", True): 3,
    ("datetime", True): 4,
    ("timestamp", True): 4,
}
_OLD_FORMS = {"datetime": 5, "timestamp": 6}


@njit(cache=True, nogil=True)
def convert(b, pos, length, n, values, valid, at, form, digits, zero_is_null):
    """Convert cells of one form; returns the row of a cell that is no date, else -1."""
    for i in range(n):
        value = np.int64(_ZERO)
        if length[i] >= 0:
            if form == 0:
                value = np.int64(date_image(b, pos[i], length[i], digits))
            elif form == 1:
                value = np.int64(datetime_image(b, pos[i], length[i], digits))
            elif form == 2:
                value = np.int64(timestamp_image(b, pos[i], length[i], digits))
            elif form == 3:
                value = np.int64(date_text(b, pos[i], length[i], digits))
            elif form == 5:
                value = np.int64(old_datetime_image(b, pos[i], length[i], digits))
            elif form == 6:
                value = np.int64(old_timestamp_image(b, pos[i], length[i], digits))
            else:
                value = np.int64(datetime_text(b, pos[i], length[i], digits))
            if value == _WRONG or (value == _ZERO and not zero_is_null):
                return i
        valid[at + i] = value != _ZERO
        values[at + i] = value if value != _ZERO else 0
    return -1


class DateTimeCodec:
    """Codec of DATE, DATETIME and TIMESTAMP.

    Args:
        source_type: of kind ``date``, ``datetime`` or ``timestamp``.
        from_text: the cells are those of a text result set (of a session in UTC), not of a row image.
        values: whether a date with a zero part becomes NULL, which it never does in a key; else it is a fault.
    """

    def __init__(self, source_type: SourceType, *, from_text: bool, values: ValuePolicy) -> None:
        """Choose the kernel and the unit of the column."""
        self._form = _FORMS[source_type.kind, from_text]
        if source_type.form == "old" and not from_text:
            self._form = _OLD_FORMS[source_type.kind]
        self._digits = source_type.scale
        self._values = values
        if source_type.kind == "date":
            self.arrow_type = pa.date32()
            self._column = FixedBuilder(self.arrow_type, np.int32)
        else:
            self.arrow_type = pa.timestamp("us", tz="UTC" if source_type.kind == "timestamp" else None)
            self._column = FixedBuilder(self.arrow_type, np.int64)

    def append(self, data: Bytes, pos: Cells, length: Cells, rows: int) -> None:
        """Append cells."""
        column = self._column
        column.reserve(rows)
        target = (column.values, column.validity.bytes, column.rows)
        fault = convert(data, pos, length, rows, *target, self._form, self._digits, self._values.nulls_dates)
        if fault >= 0:
            raise ValueFault(int(fault), *_fault(self._values), in_date_key=_is_cured(self._values))
        column.rows += rows

    def finish(self) -> pa.Array:
        """Return the column."""
        return self._column.finish()


def _is_cured(values: ValuePolicy) -> bool:
    """Whether the table can be read again with the dates of its key as text."""
    return values.in_key and values.zero_dates == "null"


def _fault(values: ValuePolicy) -> tuple[str, str]:
    """Return what is wrong with a date that has no day, and what to do."""
    if _is_cured(values):
        what = "a date with a zero or impossible part in the key, of which the lake holds dates"
        return what, "The table is read again automatically, with the dates of its key as text."
    return (
        "a date with a zero or impossible part",
        "Set zero_dates: 'null' or string, or exclude the table in the source file.",
    )
