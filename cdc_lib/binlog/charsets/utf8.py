"""utf8mb4, utf8mb3 and ascii: validated and copied, because invalid UTF-8 must not get into an Arrow string.

Well-formed UTF-8 is that of the Unicode standard, table 3-7: shortest form, no surrogates, up to U+10FFFF. A utf8mb3 column
is held to the same: a longer character there would be exact too.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from cdc_lib.binlog.bytes.copy import copy_ranges
from cdc_lib.binlog.bytes.integers import copy
from cdc_lib.binlog.bytes.intrinsics import load64
from cdc_lib.binlog.charsets.transcoder import Transcoder, put

_REPLACEMENT = 0xFFFD
_HIGH_BITS = np.uint64(0x8080808080808080)


@njit(cache=True, nogil=True, inline="always")
def _character(b, p, end):
    """Bytes of the well-formed character at ``p``; 0 when there is none."""
    c = b[p]
    if c < 0x80:
        return 1
    if c < 0xC2 or c > 0xF4:
        return 0
    if c < 0xE0:
        return 2 if end - p > 1 and b[p + 1] & 0xC0 == 0x80 else 0
    size = 3 if c < 0xF0 else 4
    if size > end - p:
        return 0
    low, high = 0x80, 0xBF
    if c == 0xE0:
        low = 0xA0
    elif c == 0xED:
        high = 0x9F
    elif c == 0xF0:
        low = 0x90
    elif c == 0xF4:
        high = 0x8F
    if b[p + 1] < low or b[p + 1] > high:
        return 0
    for i in range(2, size):
        if b[p + i] & 0xC0 != 0x80:
            return 0
    return size


@njit(cache=True, nogil=True)
def _plain(data, start, end):
    """Whether all bytes are ASCII, eight at a time."""
    seen = np.uint64(0)
    words = (end - start) // 8
    for k in range(words):
        seen |= load64(data, start + 8 * k)
    for p in range(start + 8 * words, end):
        seen |= np.uint64(data[p])
    return seen & _HIGH_BITS == 0


@njit(cache=True, nogil=True)
def _well_formed(data, start, end):
    """Whether the bytes, which begin a character, are well-formed; without a branch, so that it runs many bytes at a time.

    A byte follows a character exactly where one, two or three places before it a character of so many more bytes begins.
    """
    begin = min(start + 3, end)
    p = start
    while p < begin:
        size = _character(data, p, end)
        if size == 0:
            return False
        p += size
    for back in range(1, min(4, end - start + 1)):
        if data[end - back] >= (0xC0, 0xE0, 0xF0)[back - 1]:
            return False
    zero, one, two, three = (
        data[begin:end],
        data[begin - 1 : end - 1],
        data[begin - 2 : end - 2],
        data[begin - 3 : end - 3],
    )
    bad = False
    for k in range(end - begin):
        c, before = zero[k], one[k]
        bad |= ((c & 0xC0) == 0x80) != ((before >= 0xC0) | (two[k] >= 0xE0) | (three[k] >= 0xF0))
        bad |= (c == 0xC0) | (c == 0xC1) | (c > 0xF4)
        bad |= ((before == 0xE0) & (c < 0xA0)) | ((before == 0xED) & (c > 0x9F))
        bad |= ((before == 0xF0) & (c < 0x90)) | ((before == 0xF4) & (c > 0x8F))
    return not bad


@njit(cache=True, nogil=True)
def first_bad(data, offsets, at, n, highest):
    """Index of the first written cell that is not well-formed, or -1; ``highest`` is 0x7F for ASCII, else 0xFF."""
    start, stop = np.int64(offsets[at]), np.int64(offsets[at + n])
    # Most text is ASCII, which one pass over all of it shows.
    if _plain(data, start, stop):
        return -1
    if highest == 0xFF and _well_formed(data, start, stop):
        inside = -1
        for i in range(n - 1, -1, -1):
            p = np.int64(offsets[at + i])
            if p < stop and data[p] & 0xC0 == 0x80:
                inside = i
        if inside < 0:
            return -1
    for i in range(n):
        p = np.int64(offsets[at + i])
        end = np.int64(offsets[at + i + 1])
        while p < end:
            if end - p >= 8 and load64(data, p) & _HIGH_BITS == 0:
                p += 8
                continue
            size = _character(data, p, end)
            if size == 0 or data[p] > highest:
                return i
            p += size
    return -1


@njit(cache=True, nogil=True)
def utf8(b, pos, length, n, offsets, data, valid, at, replace, highest):
    """Copy cells; see :data:`cdc_lib.binlog.charsets.transcoder.Kernel`."""
    copy_ranges(b, pos, length, n, offsets, data, valid, at, 0)
    bad = first_bad(data, offsets, at, n, highest)
    if bad < 0 or not replace:
        return bad
    o = np.int64(offsets[at + bad])
    for i in range(bad, n):
        p = pos[i]
        end = p + max(length[i], 0)
        while p < end:
            size = _character(b, p, end)
            if size == 0 or b[p] > highest:
                o = put(data, o, _REPLACEMENT)
                p += 1
                continue
            copy(b, p, data, o, size)
            o += size
            p += size
        offsets[at + i + 1] = o
    return -1


UTF8 = Transcoder(utf8, (0xFF,), growth=1)
ASCII = Transcoder(utf8, (0x7F,), growth=1)
