"""gb18030: pairs as in gbk, and four bytes for all the rest of Unicode.

Four bytes are 0x81-0xFE, 0x30-0x39, 0x81-0xFE, 0x30-0x39, counted as one mixed-radix number: up to 39,419 the characters below
U+10000 that no pair holds, from 189,000 on U+10000 and what follows (GB 18030-2005). MySQL keeps two characters as GB 18030-2000 has
them, where Python follows 2005.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from cdc_lib.binlog.charsets import double
from cdc_lib.binlog.charsets.double import NO_TEXT, Points
from cdc_lib.binlog.charsets.transcoder import Transcoder, put

_BASIC = 39420
_SUPPLEMENTARY = 189000


def _fours() -> Points:
    """Return the code points of the first four-byte numbers."""
    found = np.full(_BASIC, NO_TEXT, np.int32)
    for number in range(_BASIC):
        rest, fourth = divmod(number, 10)
        rest, third = divmod(rest, 126)
        first, second = divmod(rest, 10)
        found[number] = double.point("gb18030", bytes((0x81 + first, 0x30 + second, 0x81 + third, 0x30 + fourth)))
    return found


def transcoder() -> Transcoder:
    """Return the transcoder."""
    pairs = double.points("gb18030")
    fours = _fours()
    fours[((0 * 10 + 5) * 126 + 0x73) * 10 + 7], pairs[0xA8BC] = 0xE7C7, 0x1E3F
    return Transcoder(convert, (pairs, fours))


@njit(cache=True, nogil=True)
def convert(b, pos, length, n, offsets, data, valid, at, replace, pairs, fours):
    """Write cells through the tables; a well-formed sequence without a character is replaced as one."""
    o = np.int64(offsets[at])
    for i in range(n):
        valid[at + i] = length[i] >= 0
        p = pos[i]
        end = p + max(length[i], 0)
        while p < end:
            c = np.int64(b[p])
            if c < 0x80:
                data[o] = c
                o += 1
                p += 1
                continue
            point = np.int64(NO_TEXT)
            size = 1
            if c > 0x80 and c < 0xFF and p + 2 <= end:
                second = np.int64(b[p + 1])
                if second >= 0x40 and second != 0x7F and second != 0xFF:
                    size = 2
                    point = np.int64(pairs[c << 8 | second])
                elif second >= 0x30 and second <= 0x39 and p + 4 <= end:
                    third = np.int64(b[p + 2]) - 0x81
                    fourth = np.int64(b[p + 3]) - 0x30
                    if third >= 0 and third < 126 and fourth >= 0 and fourth < 10:
                        size = 4
                        number = ((c - 0x81) * 10 + second - 0x30) * 1260 + third * 10 + fourth
                        if number < fours.shape[0]:
                            point = np.int64(fours[number])
                        elif number >= _SUPPLEMENTARY and number < _SUPPLEMENTARY + 0x100000:
                            point = 0x10000 + number - _SUPPLEMENTARY
            if point < 0:
                if not replace:
                    return i
                point = np.int64(0xFFFD)
            o = put(data, o, point)
            p += size
        offsets[at + i + 1] = o
    return -1
