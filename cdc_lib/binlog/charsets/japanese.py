"""ujis and eucjpms: two packings of JIS X 0208 and JIS X 0212 with a private area of 2 * 940 characters.

A pair from 0xA1A1 on is row and cell of JIS X 0208, three bytes from 0x8FA1A1 on those of JIS X 0212, 0x8E and a byte a half-width
katakana. Rows from 0xF5 on count through U+E000 to U+E757, the pairs first. eucjpms differs from ujis as Windows does from
JIS: its pairs are the characters of cp932 (JIS X 0208 annex 1 packs the same rows in another way), and the rows 0x8FF3 and 0x8FF4
hold those of IBM's characters that have no place in either table.
"""

from __future__ import annotations

import numpy as np

from cdc_lib.binlog.charsets import double
from cdc_lib.binlog.charsets.double import TRIPLE, Points
from cdc_lib.binlog.charsets.transcoder import Transcoder

NAMES = frozenset(("ujis", "eucjpms"))
_PRIVATE = 0xE000
_FIRST_PRIVATE_ROW = 0xF5
_IBM_FIRST = 0xF3F3
_NUMERO = 0x2116


def transcoder(charset: str) -> Transcoder:
    """Return the transcoder of one of :data:`NAMES`."""
    pairs = double.points("euc_jp")
    triples = double.points("euc_jp", 0x8F)
    if charset == "ujis":
        pairs[0xA1C0] = 0x5C
    else:
        _as_cp932(pairs)
        triples[0xA2B7], triples[0xA2C3] = 0xFF5E, 0xFFE4
        _put_ibm(pairs, triples)
    next_ = _put_private(pairs, _PRIVATE)
    _put_private(triples, next_)
    ones = double.singles("euc_jp", pairs)
    ones[0x8F] = TRIPLE
    return double.of_tables(ones, pairs, triples)


def _as_cp932(pairs: Points) -> None:
    for row in range(0xA1, _FIRST_PRIVATE_ROW):
        for cell in range(0xA1, 0xFF):
            pairs[row << 8 | cell] = double.point("cp932", _shifted(row - 0xA1, cell - 0xA1))


def _shifted(row: int, cell: int) -> bytes:
    """Return row and cell (from 0) in the packing of Shift JIS: two rows share a first byte, 0x7F and 0xA0 to 0xDF are left out."""
    first = row // 2 + (0x81 if row < 62 else 0xC1)
    second = cell + (0x40 if row % 2 == 0 else 0x9F)
    return bytes((first, second + 1 if row % 2 == 0 and second >= 0x7F else second))


def _put_ibm(pairs: Points, triples: Points) -> None:
    """Enter IBM's characters as cp932 orders them, without those that have a place already; U+2116 has two."""
    known = {*pairs[: 0xAD << 8].tolist(), *triples.tolist()} - {_NUMERO}
    at = _IBM_FIRST
    for first in (0xFA, 0xFB, 0xFC):
        for second in range(0x40, 0xFD):
            point = double.point("cp932", bytes((first, second)))
            if point in known:
                continue
            triples[at] = point
            at = at + 1 if at & 0xFF < 0xFE else (at & 0xFF00) + 0x1A1


def _put_private(table: Points, point: int) -> int:
    """Fill the private rows from a code point on; returns the next one."""
    for row in range(_FIRST_PRIVATE_ROW, 0xFF):
        cells = slice(row << 8 | 0xA1, (row << 8 | 0xFE) + 1)
        table[cells] = np.arange(point, point + 94)
        point += 94
    return point
