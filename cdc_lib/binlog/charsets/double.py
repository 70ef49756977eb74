"""East Asian character sets of one, two and, where 0x8F begins them, three bytes.

A single byte is a character, no text, or the first of a pair; a pair is a number into a table of 65,536 code points, and so are
the two bytes after 0x8F. Python's codec of the nearest name gives most of the tables; where MySQL maps otherwise, MySQL wins,
as the servers answer ``CONVERT(bytes USING utf8mb4)``, which the tests ask for every sequence.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from numba import njit

from cdc_lib.binlog.charsets.transcoder import Transcoder, put

NO_TEXT, PAIR, TRIPLE = -1, -2, -3
Points = npt.NDArray[np.int32]

_CODECS = {
    "big5": "big5",
    "cp932": "cp932",
    "euckr": "cp949",
    "gb2312": "gb2312",
    "gbk": "gbk",
    "sjis": "shift_jis",
}
NAMES = frozenset(_CODECS)

_DIFFERENCES: dict[str, dict[int, int]] = {
    "big5": {
        **dict.fromkeys((0xA15A, 0xA1C3, 0xA1C5, 0xA1FE, 0xA240, 0xA2CC, 0xA2CE), 0xFFFD),
        0xF9D6: 0x7881, 0xF9D7: 0x92B9, 0xF9D8: 0x88CF, 0xF9D9: 0x58BB, 0xF9DA: 0x6052, 0xF9DB: 0x7CA7, 0xF9DC: 0x5AFA,
    },
    "cp932": dict.fromkeys((0x80, 0xA0, 0xFD, 0xFE, 0xFF), NO_TEXT),
    "sjis": {0x815F: 0x5C},
}  # fmt: skip


def point(codec: str, sequence: bytes) -> int:
    """Return the one code point of a sequence in a Python codec, else NO_TEXT."""
    try:
        text = sequence.decode(codec)
    except UnicodeDecodeError:
        return NO_TEXT
    return ord(text) if len(text) == 1 else NO_TEXT


def points(codec: str, lead: int = 0) -> Points:
    """Return the code point of every two bytes in a Python codec, those from 0x8000 on; after ``lead`` if one is given."""
    found = np.full(65536, NO_TEXT, np.int32)
    head = bytes([lead]) if lead else b""
    for first in range(0x80, 0x100):
        for second in range(0x21, 0xFF):
            found[first << 8 | second] = point(codec, head + bytes((first, second)))
    return found


def singles(codec: str, pairs: Points) -> Points:
    """Return the code point of every byte, or PAIR where it begins one."""
    found = np.full(256, NO_TEXT, np.int32)
    for byte in range(256):
        found[byte] = point(codec, bytes([byte]))
        if found[byte] == NO_TEXT and (pairs[byte << 8 : (byte + 1) << 8] != NO_TEXT).any():
            found[byte] = PAIR
    return found


def differing(ones: Points, pairs: Points, differences: Mapping[int, int]) -> None:
    """Enter what MySQL maps otherwise."""
    for number, own in differences.items():
        table = ones if number < 256 else pairs
        table[number] = own


def transcoder(charset: str) -> Transcoder:
    """Return the transcoder of one of :data:`NAMES`."""
    codec = _CODECS[charset]
    pairs = points(codec)
    ones = singles(codec, pairs)
    differing(ones, pairs, _DIFFERENCES.get(charset, {}))
    return of_tables(ones, pairs, np.full(1, NO_TEXT, np.int32))


def of_tables(ones: Points, pairs: Points, triples: Points) -> Transcoder:
    """Return the transcoder of a set; ``triples`` is looked at where ``ones`` says TRIPLE."""
    trails = np.zeros(256, np.bool_)
    trails[np.flatnonzero(pairs != NO_TEXT) & 0xFF] = True
    return Transcoder(convert, (ones, pairs, triples, trails))


_SECOND_LEADS = {"cp932": (0xED, 0xEE)}
"""First bytes of pairs that servers do not write where another pair is the same character: NEC's selection of IBM's."""

_SECOND_SIGNS = {"sjis": [0x5C]}
"""Bytes that servers do not write, as a pair is the same character: a backslash from a session in UTF-8 is 0x815F."""


def distinct(made: Transcoder, charset: str) -> Transcoder:
    """Return a transcoder in which no two sequences are one character: only that which servers write is text, or the first."""
    ones, pairs, triples, trails = (table.copy() for table in made.tables)
    second = _SECOND_LEADS.get(charset, ())
    ordered = sorted(range(len(pairs)), key=lambda code: (code >> 8 in second, code))
    ones[_SECOND_SIGNS.get(charset, [])] = NO_TEXT
    seen = {code for code in range(0x80) if ones[code] >= 0}
    for table, codes in ((ones, range(0x80, 0x100)), (pairs, ordered), (triples, range(len(triples)))):
        for code in codes:
            if (point := int(table[code])) in seen:
                table[code] = NO_TEXT
            elif point >= 0:
                seen.add(point)
    return Transcoder(convert, (ones, pairs, triples, trails))


@njit(cache=True, nogil=True)
def convert(b, pos, length, n, offsets, data, valid, at, replace, ones, pairs, triples, trails):
    """Write cells through the tables; a well-formed sequence without a character is replaced as one."""
    o = np.int64(offsets[at])
    for i in range(n):
        valid[at + i] = length[i] >= 0
        p = pos[i]
        end = p + max(length[i], 0)
        while p < end:
            c = np.int64(b[p])
            if c < 0x80 and ones[c] >= 0:
                data[o] = c
                o += 1
                p += 1
                continue
            point = np.int64(ones[c])
            size = 1
            if point == PAIR and p + 2 <= end and trails[b[p + 1]]:
                size = 2
                point = np.int64(pairs[c << 8 | b[p + 1]])
            elif point == TRIPLE and p + 3 <= end and trails[b[p + 1]] and trails[b[p + 2]]:
                size = 3
                point = np.int64(triples[np.int64(b[p + 1]) << 8 | b[p + 2]])
            if point < 0:
                if not replace:
                    return i
                point = np.int64(0xFFFD)
            o = put(data, o, point)
            p += size
        offsets[at + i + 1] = o
    return -1
