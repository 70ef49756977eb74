"""CHAR, VARCHAR, TEXT and their binary siblings.

Row image: the bytes as they are stored in the column's character set. The lake holds UTF-8: utf8mb4, utf8mb3 and ascii are
copied, single-byte character sets go through a table of 256 entries. A BINARY(n) comes without its trailing zero bytes and
is filled up again, because SELECT shows all n. Text row: already UTF-8, by the connection's character set.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from numba import njit

from cdc_lib.decode.builders import TextBuilder
from cdc_lib.decode.types.codec import Bytes, Cells
from cdc_lib.decode.wire import copy
from cdc_lib.model.schema import SourceType

COPIED = frozenset({"utf8mb4", "utf8mb3", "utf8", "ascii", "binary"})
"""Character sets whose bytes are UTF-8 already."""

_CP1252_HOLES = {0x81: 0x81, 0x8D: 0x8D, 0x8F: 0x8F, 0x90: 0x90, 0x9D: 0x9D}
"""MySQL's latin1 is cp1252 with the five undefined bytes as the control characters of the same number."""

_PYTHON_CODECS = {
    "latin1": "cp1252",
    "latin2": "iso8859_2",
    "latin5": "iso8859_9",
    "latin7": "iso8859_13",
    "cp1250": "cp1250",
    "cp1251": "cp1251",
    "cp1256": "cp1256",
    "cp1257": "cp1257",
    "koi8r": "koi8_r",
    "koi8u": "koi8_u",
    "cp866": "cp866",
    "cp850": "cp850",
    "cp852": "cp852",
}
READABLE = COPIED | _PYTHON_CODECS.keys()
"""Character sets that are read."""


def table_of(charset: str) -> npt.NDArray[np.uint8]:
    """Return for each byte of a single-byte character set its length in UTF-8 and up to three bytes, shape (256, 4)."""
    table = np.zeros((256, 4), np.uint8)
    codec = _PYTHON_CODECS[charset]
    for byte in range(256):
        text = bytes([byte]).decode(codec, "ignore") or chr(_CP1252_HOLES.get(byte, 0xFFFD))
        encoded = text.encode()
        table[byte, 0] = len(encoded)
        table[byte, 1 : 1 + len(encoded)] = list(encoded)
    return table


@njit(cache=True, nogil=True)
def total(length, n, width):
    """Bytes of all cells, each at least ``width`` long."""
    size = np.int64(0)
    for i in range(n):
        if length[i] >= 0:
            size += max(length[i], width)
    return size


@njit(cache=True, nogil=True)
def gather(b, pos, length, n, offsets, data, valid, at, width):
    """Copy cells one behind another, each filled up with zero bytes to ``width``."""
    o = np.int64(offsets[at])
    for i in range(n):
        size = length[i]
        valid[at + i] = size >= 0
        if size > 0:
            copy(b, pos[i], data, o, size)
            o += size
        if size >= 0:
            for _ in range(size, width):
                data[o] = 0
                o += 1
        offsets[at + i + 1] = o


@njit(cache=True, nogil=True)
def translate(b, pos, length, n, offsets, data, valid, at, table):
    """Copy cells through a table of single-byte characters."""
    o = np.int64(offsets[at])
    for i in range(n):
        size = length[i]
        valid[at + i] = size >= 0
        for j in range(size):
            c = b[pos[i] + j]
            if c < 128:
                data[o] = c
                o += 1
                continue
            for k in range(table[c, 0]):
                data[o] = table[c, 1 + k]
                o += 1
        offsets[at + i + 1] = o


class TextCodec:
    """Codec of text and bytes.

    Args:
        source_type: of kind ``string``, ``bytes``, or one that a text result set gives as text.
        from_text: the cells are those of a text result set, not of a row image.
        fill: BINARY(n) only: n.
    """

    def __init__(self, source_type: SourceType, *, from_text: bool, fill: int = 0) -> None:
        """Choose between copying and translating."""
        self.arrow_type = pa.binary() if source_type.kind == "bytes" else pa.string()
        self._column = TextBuilder(self.arrow_type)
        self._fill = fill
        copied = from_text or source_type.kind != "string" or source_type.charset in COPIED
        self._table = None if copied else table_of(source_type.charset)

    def append(self, data: Bytes, pos: Cells, length: Cells, rows: int) -> None:
        """Append cells."""
        column = self._column
        size = int(total(length, rows, self._fill))
        if self._table is None:
            column.reserve(rows, size)
            target = (column.offsets, column.data, column.validity.bytes, column.rows)
            gather(data, pos, length, rows, *target, self._fill)
        else:
            column.reserve(rows, 3 * size)
            target = (column.offsets, column.data, column.validity.bytes, column.rows)
            translate(data, pos, length, rows, *target, self._table)
        column.rows += rows

    def finish(self) -> pa.Array:
        """Return the column."""
        return self._column.finish()
