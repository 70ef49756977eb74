"""The hash of each text of a column, as ``CRC32(CRC32(text))`` is at the source; compiled, and without Python's lock.

The CRC32 is that of events. An error of it would show in every row, because the server computes the other side.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numba import njit
from numpy.typing import NDArray

from cdc_lib.binlog.bytes.crc32 import TABLES, crc32

_DIGITS = 10
"""Most decimal digits of a CRC32."""

Hashes = NDArray[np.int64]
"""One number of 32 bits for each row."""


@njit(cache=True, nogil=True)
def _once(data, ends, tables, found):
    for row in range(len(found)):
        found[row] = crc32(data, np.int64(ends[row]), np.int64(ends[row + 1]), tables)


@njit(cache=True, nogil=True)
def _twice(data, ends, tables, found):
    digits = np.zeros(_DIGITS, np.uint8)
    for row in range(len(found)):
        left = crc32(data, np.int64(ends[row]), np.int64(ends[row + 1]), tables)
        at = _DIGITS
        while True:
            at -= 1
            digits[at] = 48 + left % 10
            left //= 10
            if left == 0:
                break
        found[row] = crc32(digits, at, np.int64(_DIGITS), tables)


def crc32_of_each(texts: pa.Array) -> Hashes:
    """Return the CRC32 of each text; none is null."""
    found: Hashes = _of(_once, texts)
    return found


def hash_of_each(texts: pa.Array) -> Hashes:
    """Return the hash of each text: the CRC32 of the decimal digits of its CRC32; none is null."""
    found: Hashes = _of(_twice, texts)
    return found


def _of(kernel, texts):
    found = np.zeros(len(texts), np.int64)
    if len(texts):
        _, offsets, data = texts.buffers()
        ends = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
        kernel(np.frombuffer(data or b"", np.uint8), ends, TABLES, found)
    return found
