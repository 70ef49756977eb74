"""utf16, utf16le, ucs2 and utf32: code units of two or four bytes (RFC 2781; the Unicode standard, chapter 3.10)."""

from __future__ import annotations

import numpy as np
from numba import njit

from cdc_lib.binlog.charsets.transcoder import Transcoder, put

_NO_TEXT = -1


@njit(cache=True, nogil=True)
def utf16(b, pos, length, n, offsets, data, valid, at, replace, low, pairs):
    """Write cells of 16-bit units, the low byte of each at ``low`` (1: big-endian); ucs2 has no surrogate ``pairs``."""
    o = np.int64(offsets[at])
    for i in range(n):
        valid[at + i] = length[i] >= 0
        p = pos[i]
        end = p + max(length[i], 0)
        while p < end:
            point = np.int64(_NO_TEXT)
            size = min(np.int64(2), end - p)
            if size == 2:
                point = np.int64(b[p + 1 - low]) << 8 | b[p + low]
                if point >= 0xD800 and point < 0xE000:
                    high = point
                    point = np.int64(_NO_TEXT)
                    if pairs and high < 0xDC00 and p + 4 <= end:
                        second = np.int64(b[p + 3 - low]) << 8 | b[p + 2 + low]
                        if second >= 0xDC00 and second < 0xE000:
                            size = np.int64(4)
                            point = 0x10000 + ((high - 0xD800) << 10) + second - 0xDC00
            if point < 0:
                if not replace:
                    return i
                point = np.int64(0xFFFD)
            o = put(data, o, point)
            p += size
        offsets[at + i + 1] = o
    return -1


@njit(cache=True, nogil=True)
def utf32(b, pos, length, n, offsets, data, valid, at, replace):
    """Write cells of big-endian 32-bit units."""
    o = np.int64(offsets[at])
    for i in range(n):
        valid[at + i] = length[i] >= 0
        p = pos[i]
        end = p + max(length[i], 0)
        while p < end:
            point = np.int64(_NO_TEXT)
            size = min(np.int64(4), end - p)
            if size == 4:
                point = np.int64(b[p]) << 24 | np.int64(b[p + 1]) << 16 | np.int64(b[p + 2]) << 8 | b[p + 3]
                if point > 0x10FFFF or (point >= 0xD800 and point < 0xE000):
                    point = np.int64(_NO_TEXT)
            if point < 0:
                if not replace:
                    return i
                point = np.int64(0xFFFD)
            o = put(data, o, point)
            p += size
        offsets[at + i + 1] = o
    return -1


TRANSCODERS = {
    "utf16": Transcoder(utf16, (1, True)),
    "utf16le": Transcoder(utf16, (0, True)),
    "ucs2": Transcoder(utf16, (1, False)),
    "utf32": Transcoder(utf32),
}
