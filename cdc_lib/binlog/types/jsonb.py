"""MySQL's binary JSON as the text that the server prints.

Format (MySQL ``sql-common/json_binary.h``): one byte of type; objects and arrays hold a count and a size of two bytes
(small) or four (large), then key entries (offset, length 2), value entries (type 1, offset or inlined value), keys, values;
offsets count from after the type byte. Strings: a length of 7 bits a byte, low bits first. The server prints ``", "`` and
``": "`` between, doubles in their shortest form, integers as they are. MariaDB keeps JSON as text and does not come here.

A double whose shortest text has more than fifteen digits or an exponent leaves a gap of 40 bytes, which Python's float
formatting fills afterwards: correct rounding of those is not worth a second implementation.
"""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
from numba import njit

from cdc_lib.binlog.bytes.integers import little, u16
from cdc_lib.binlog.charsets.utf8 import first_bad
from cdc_lib.binlog.types.builders import MAX_TEXT_BYTES, TOO_MUCH_TEXT, TextBuilder, grown
from cdc_lib.binlog.types.codec import Bytes, Cells, ValueFault
from cdc_lib.binlog.types.jsonb_opaque import opaque

DONE, NO_SPACE, MALFORMED, TOO_MANY_GAPS = range(4)
GAP = 40
"""Room for the longest text of a double, 34 bytes: a sign, ``0.``, fourteen zeros and seventeen digits."""
_DEPTH = 128
"""Levels that a document may nest; the server allows 100."""
_GAPS = 65536
ROOM = 128 + _DEPTH
"""Bytes that must be free after a value of any length: a short value, a separator, and a bracket for each level."""
_LONGEST_FIXED = 15
"""Decimal places before or after the point from which the server prints an exponent (MAX_DECPT_FOR_F_FORMAT)."""
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)


@njit(cache=True, nogil=True)
def write_integer(v, out, o):
    """Write a signed number; returns the byte after it."""
    if v < 0:
        out[o] = 45
        return write_unsigned(np.uint64(0) - np.uint64(v), out, o + 1)
    return write_unsigned(np.uint64(v), out, o)


@njit(cache=True, nogil=True)
def write_unsigned(v, out, o):
    """Write an unsigned number; returns the byte after it."""
    digits = 1
    rest = v // np.uint64(10)
    while rest > 0:
        digits += 1
        rest //= np.uint64(10)
    for i in range(digits):
        out[o + digits - 1 - i] = np.uint8(48 + v % np.uint64(10))
        v //= np.uint64(10)
    return o + digits


@njit(cache=True, nogil=True)
def write_double(v, out, o):
    """Write a double of at most fifteen digits and no exponent; return -1 for any other double.

    ``m / 10**k`` with m below 10**15 and k up to 15 is rounded correctly, so the least k for which it gives the value back is
    the number of decimals of the shortest text.
    """
    a = abs(v)
    if not a < 1e15 or (a != 0.0 and a < 1e-4):
        return -1
    scale = 1.0
    for k in range(16):
        m = np.rint(a * scale)
        if m >= 1e15:
            return -1
        if m / scale == a:
            if np.signbit(v):
                out[o] = 45
                o += 1
            whole = np.uint64(m) // np.uint64(scale)
            part = np.uint64(m) % np.uint64(scale)
            o = write_unsigned(whole, out, o)
            out[o] = 46
            o += 1
            digits = max(k, 1)
            for i in range(digits):
                out[o + digits - 1 - i] = np.uint8(48 + part % np.uint64(10))
                part //= np.uint64(10)
            return o + digits
        scale *= 10.0
    return -1


@njit(cache=True, nogil=True)
def write_string(b, p, size, out, o, hexes):
    """Write a quoted string with JSON's escapes; returns the byte after it."""
    out[o] = 34
    o += 1
    for i in range(size):
        c = b[p + i]
        if c >= 32 and c != 34 and c != 92:
            out[o] = c
            o += 1
            continue
        out[o] = 92
        short = np.uint8(0)
        if c == 34 or c == 92:
            short = c
        elif c == 8:
            short = np.uint8(98)
        elif c == 9:
            short = np.uint8(116)
        elif c == 10:
            short = np.uint8(110)
        elif c == 12:
            short = np.uint8(102)
        elif c == 13:
            short = np.uint8(114)
        if short != 0:
            out[o + 1] = short
            o += 2
        else:
            out[o + 1] = 117
            out[o + 2] = 48
            out[o + 3] = 48
            out[o + 4] = hexes[c >> 4]
            out[o + 5] = hexes[c & 15]
            o += 6
    out[o] = 34
    return o + 1


@njit(cache=True, nogil=True)
def _length(b, p, end):
    """Length of a string and the byte after it; -1 when it leaves the value."""
    v = np.int64(0)
    for i in range(5):
        if p >= end:
            return np.int64(-1), p
        c = np.int64(b[p])
        p += 1
        v |= (c & 127) << (7 * i)
        if c < 128:
            return v, p
    return np.int64(-1), p


@njit(cache=True, nogil=True)
def _literal(code, out, o):
    """Write null, true or false; returns -1 for another code."""
    if code == 0:
        out[o], out[o + 1], out[o + 2], out[o + 3] = 110, 117, 108, 108
        return o + 4
    if code == 1:
        out[o], out[o + 1], out[o + 2], out[o + 3] = 116, 114, 117, 101
        return o + 4
    if code == 2:
        out[o], out[o + 1], out[o + 2], out[o + 3], out[o + 4] = 102, 97, 108, 115, 101
        return o + 5
    return -1


@njit(cache=True, nogil=True)
def _scalar(kind, b, p, end, out, o, gap_at, gap_value, gaps, hexes):
    """Write a scalar whose value starts at ``p``; returns status, byte after it, number of gaps."""
    if kind == 4:
        o = _literal(b[p], out, o) if p < end else -1
        return (MALFORMED if o < 0 else DONE), o, gaps
    if kind == 12:
        size, p = _length(b, p, end)
        if size < 0 or size > end - p:
            return MALFORMED, o, gaps
        if o + 6 * size + ROOM > out.shape[0]:
            return NO_SPACE, o, gaps
        return DONE, write_string(b, p, size, out, o, hexes), gaps
    if kind == 15:
        if p >= end:
            return MALFORMED, o, gaps
        size, q = _length(b, p + 1, end)
        if size < 0 or size > end - q:
            return MALFORMED, o, gaps
        if o + 6 * size + ROOM > out.shape[0]:
            return NO_SPACE, o, gaps
        o = opaque(np.int64(b[p]), b, q, size, out, o)
        return (MALFORMED if o < 0 else DONE), o, gaps
    width = 2 if kind <= 6 else (4 if kind <= 8 else 8)
    if kind < 5 or kind > 11 or width > end - p:
        return MALFORMED, o, gaps
    raw = little(b, p, width)
    if kind == 5:
        return DONE, write_integer((raw << 48) >> 48, out, o), gaps
    if kind == 7:
        return DONE, write_integer((raw << 32) >> 32, out, o), gaps
    if kind == 9:
        return DONE, write_integer(raw, out, o), gaps
    if kind == 11:
        value = np.frombuffer(b[p : p + 8], np.float64)[0]
        next_o = write_double(value, out, o)
        if next_o >= 0:
            return DONE, next_o, gaps
        if gaps == gap_at.shape[0]:
            return TOO_MANY_GAPS, o, gaps
        gap_at[gaps] = o
        gap_value[gaps] = value
        for i in range(GAP):
            out[o + i] = 0
        return DONE, o + GAP, gaps + 1
    return DONE, write_unsigned(np.uint64(raw), out, o), gaps


@njit(cache=True, nogil=True)
def document(b, start, size, out, o, gap_at, gap_value, gaps, stack, hexes):
    """Write one document, as far as ``out`` has room. Returns status, byte after it, number of gaps.

    Rows of ``stack``: start of the container, its end, its count, next element, offset size, object or not.
    """
    if size == 0:
        return (DONE, _literal(0, out, o), gaps) if o + ROOM <= out.shape[0] else (NO_SPACE, o, gaps)
    kind = np.int64(b[start])
    p = start + 1
    end = start + size
    depth = -1
    while True:
        if o + ROOM > out.shape[0]:
            return NO_SPACE, o, gaps
        if kind <= 3:
            wide = 4 if kind & 1 else 2
            if end - p < 2 * wide:
                return MALFORMED, o, gaps
            count = little(b, p, wide)
            total = little(b, p + wide, wide)
            is_object = 1 if kind <= 1 else 0
            entries = count * ((wide + 2 if is_object else 0) + 1 + wide)
            if total > end - p or 2 * wide + entries > total or depth + 1 == stack.shape[0]:
                return MALFORMED, o, gaps
            depth += 1
            s = stack[depth]
            s[0], s[1], s[2], s[3], s[4], s[5] = p, p + total, count, 0, wide, is_object
            out[o] = 123 if is_object else 91
            o += 1
        else:
            status, o, gaps = _scalar(kind, b, p, end, out, o, gap_at, gap_value, gaps, hexes)
            if status != DONE:
                return status, o, gaps
        while depth >= 0 and stack[depth, 3] == stack[depth, 2]:
            out[o] = 125 if stack[depth, 5] else 93
            o += 1
            depth -= 1
        if depth < 0:
            return DONE, o, gaps
        base, end, count, i, wide, is_object = stack[depth]
        stack[depth, 3] = i + 1
        if i > 0:
            out[o] = 44
            out[o + 1] = 32
            o += 2
        entry = base + 2 * wide + i * (1 + wide)
        if is_object:
            key = base + 2 * wide + i * (wide + 2)
            entry += count * (wide + 2)
            at = base + little(b, key, wide)
            n = u16(b, key + wide)
            if at + n > end:
                return MALFORMED, o, gaps
            if o + 6 * n + ROOM > out.shape[0]:
                return NO_SPACE, o, gaps
            o = write_string(b, at, n, out, o, hexes)
            out[o] = 58
            out[o + 1] = 32
            o += 2
        kind = np.int64(b[entry])
        # Literals, 16-bit numbers, and 32-bit numbers in large containers are in the entry itself.
        if 4 <= kind <= 6 or (wide == 4 and 7 <= kind <= 8):
            p = entry + 1
        else:
            p = base + little(b, entry + 1, wide)
            if p >= end:
                return MALFORMED, o, gaps


@njit(cache=True, nogil=True)
def documents(b, pos, length, n, first, offsets, data, valid, at, gap_at, gap_value, stack, hexes, most):
    """Write documents from row ``first`` on; returns status, the row where it ended, number of gaps.

    NO_SPACE: ``data`` must grow; when it has ``most`` bytes already, the documents are too large.
    """
    gaps = np.int64(0)
    o = np.int64(offsets[at + first])
    for i in range(first, n):
        size = length[i]
        valid[at + i] = size >= 0
        if size >= 0:
            # A byte of input makes at most six of output, a number of two bytes at most six, a double GAP.
            enough = o + 12 * size + ROOM <= data.shape[0]
            if not enough and data.shape[0] < most:
                return NO_SPACE, i, gaps
            before = gaps
            status, next_o, gaps = document(b, pos[i], size, data, o, gap_at, gap_value, gaps, stack, hexes)
            # A sound document fits where there is enough; one whose entries point back at their container never does.
            if status == NO_SPACE and enough:
                return MALFORMED, i, before
            if status in (TOO_MANY_GAPS, NO_SPACE):
                return status, i, before
            if status != DONE:
                return status, i, gaps
            o = next_o
        offsets[at + i + 1] = o
    return DONE, n, gaps


def print_double(value: float) -> str:
    """Return a double as the server prints it in JSON: shortest digits, an exponent outside 1e-5 to 1e15 or so."""
    text = repr(value)
    mantissa, _, exponent = text.partition("e")
    if not exponent:
        whole = mantissa.removesuffix(".0").removeprefix("-")
        if "." in whole or len(whole) <= _LONGEST_FIXED:
            return text
        digits = whole.rstrip("0")
        point = "." if len(digits) > 1 else ""
        return f"{'-' if value < 0 else ''}{digits[0]}{point}{digits[1:]}e{len(whole) - 1}"
    mantissa = mantissa.removesuffix(".0")
    digits = mantissa.replace(".", "").removeprefix("-")
    power = int(exponent)
    sign = "-" if value < 0 else ""
    if -_LONGEST_FIXED <= power < 0:
        return f"{sign}0.{'0' * (-power - 1)}{digits}"
    return f"{mantissa}e{power}"


class JsonCodec:
    """Codec of JSON out of MySQL's row images.

    Args:
        most: bytes of text that one row group may hold.
    """

    def __init__(self, most: int = MAX_TEXT_BYTES) -> None:
        """Make the scratch space."""
        self._most = most
        self.arrow_type = pa.string()
        self._column = TextBuilder(self.arrow_type)
        self._stack = np.empty((_DEPTH, 6), np.int64)
        self._gap_at = np.empty(_GAPS, np.int64)
        self._gap_value = np.empty(_GAPS, np.float64)

    def append(self, data: Bytes, pos: Cells, length: Cells, rows: int) -> None:
        """Append cells."""
        column = self._column
        column.reserve(rows, 0)
        first = 0
        while first < rows:
            out = column.data[: self._most]
            target = (column.offsets, out, column.validity.bytes, column.rows)
            scratch = (self._gap_at, self._gap_value, self._stack, _HEX, self._most)
            status, row, gaps = documents(data, pos, length, rows, first, *target, *scratch)
            if gaps:
                self._fill_gaps(first, int(row), int(gaps))
            if status == TOO_MANY_GAPS and row == first:
                self._gap_at = np.empty(2 * self._gap_at.shape[0], np.int64)
                self._gap_value = np.empty(self._gap_at.shape[0], np.float64)
            first = int(row)
            if status == NO_SPACE:
                if out.shape[0] == self._most and not gaps:  # gaps that were closed have made room
                    raise ValueFault(first, TOO_MUCH_TEXT)
                needed = int(column.offsets[column.rows + first]) + 12 * int(length[first]) + ROOM
                column.data = grown(column.data, min(needed, self._most))
            elif status == MALFORMED:
                raise ValueFault(first, "the JSON document's offsets or types are wrong")
        bad = first_bad(column.data, column.offsets, column.rows, rows, 0xFF)
        if bad >= 0:
            raise ValueFault(int(bad), "the JSON document holds a string that is not UTF-8")
        column.rows += rows

    def _fill_gaps(self, first: int, stop: int, gaps: int) -> None:
        """Put the text of doubles into their gaps and close up what is left of them."""
        column = self._column
        at = column.rows
        offsets = column.offsets
        raw = column.data
        shift = 0
        source = target = int(offsets[at + first])
        gap = 0
        for row in range(first, stop):
            end = int(offsets[at + row + 1])
            while gap < gaps and self._gap_at[gap] < end:
                hole = int(self._gap_at[gap])
                value = float(self._gap_value[gap])
                if not math.isfinite(value):
                    raise ValueFault(row, "the JSON document holds a double that is no number")
                text = print_double(value).encode()
                raw[target : target + hole - source] = raw[source:hole].copy()
                target += hole - source
                raw[target : target + len(text)] = np.frombuffer(text, np.uint8)
                target += len(text)
                source = hole + GAP
                shift += GAP - len(text)
                gap += 1
            if shift:
                raw[target : target + end - source] = raw[source:end].copy()
            target += end - source
            source = end
            offsets[at + row + 1] = target

    def finish(self) -> pa.Array:
        """Return the column."""
        return self._column.finish()
