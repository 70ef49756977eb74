"""utf8mb4, utf8mb3 and ascii: copied, and looked at, because a byte that is no UTF-8 must not end up in an Arrow string.

Well-formed UTF-8 is that of the Unicode standard, table 3-7: shortest form, no surrogates, up to U+10FFFF. A utf8mb3 column
is held to the same: a longer character there would be exact too.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from cdc_lib.decode.charsets.transcoder import Transcoder, put
from cdc_lib.decode.wire import copy

_REPLACEMENT = 0xFFFD


@njit(cache=True, nogil=True, inline="always")
def _character(b, p, end):
    """Bytes of the well-formed character at ``p``; 0 when there is none."""
    c = b[p]
    if c < 0x80:
        return 1
    if c < 0xC2 or c > 0xF4:
        return 0
    size = 2 if c < 0xE0 else 3 if c < 0xF0 else 4
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
def _first_bad(data, offsets, at, n, highest):
    """Index of the first written cell that is not well-formed, or -1; ``highest`` is 0x7F for ASCII, else 0xFF."""
    for i in range(n):
        p = np.int64(offsets[at + i])
        end = np.int64(offsets[at + i + 1])
        while p < end:
            size = _character(data, p, end)
            if size == 0 or data[p] > highest:
                return i
            p += size
    return -1


@njit(cache=True, nogil=True)
def utf8(b, pos, length, n, offsets, data, valid, at, replace, highest):
    """Copy cells; see :data:`cdc_lib.decode.charsets.transcoder.Kernel`."""
    start = np.int64(offsets[at])
    o = start
    for i in range(n):
        size = length[i]
        valid[at + i] = size >= 0
        if size > 0:
            copy(b, pos[i], data, o, size)
            o += size
        offsets[at + i + 1] = o
    # Most text is ASCII, which one look over all of it tells.
    seen = np.uint8(0)
    for k in range(start, o):
        seen |= data[k]
    if seen < 0x80:
        return -1
    bad = _first_bad(data, offsets, at, n, highest)
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
