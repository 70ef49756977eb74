"""The compressed events of MariaDB (``log_bin_compress``): rows and statements, each compressed separately.

Before what is compressed is one byte, 0x80 | algorithm << 4 | width (algorithm 0 is zlib, width 1 to 4), then the
inflated length in ``width`` bytes, big-endian (MariaDB ``sql/log_event.cc``, binlog_buf_compress). In row events that is what
follows the column bitmaps, in statements the text.
"""

from __future__ import annotations

import zlib

import numpy as np
from numba import njit

from cdc_lib.binlog.bytes.integers import big
from cdc_lib.binlog.framing.packets import LONGEST_EVENT
from cdc_lib.binlog.framing.receiver import Bytes
from cdc_lib.binlog.rows.locate import step_into

_DENSEST = 1040
"""Bytes that zlib makes of one at the most (1032), and some for the ends."""


@njit(cache=True, nogil=True)
def inflated_size(b, p, end):
    """Return how long what is compressed at ``p`` becomes, and where its zlib data starts; -1 both when that cannot be."""
    wrong = (np.int64(-1), np.int64(-1))
    if p >= end:
        return wrong
    width = np.int64(b[p]) & 7
    if np.int64(b[p]) & 0xF8 != 0x80 or width < 1 or width > 4 or p + 1 + width > end:
        return wrong
    size = big(b, p + 1, width)
    start = p + 1 + width
    return (size, start) if size <= min((end - start) * _DENSEST, LONGEST_EVENT) else wrong


@njit(cache=True, nogil=True)
def end_of_bitmaps(b, p, end, kind):
    """Return where the compressed part of a row event starts; ``p`` is after the table id and flags. -1 when it leaves.

    It is after a bitmap of the columns, for updates after two.
    """
    count, p = step_into(b, p, end, kind)
    if count < 0:
        return np.int64(-1)
    p += ((count + 7) >> 3) * (2 if kind == 24 or kind == 31 else 1)
    return p if p <= end else np.int64(-1)


def inflate(data: Bytes, start: int, end: int, size: int) -> bytes:
    """Inflate ``data[start:end]``.

    Raises:
        ValueError: it is no zlib stream that ends there and has this size.
    """
    inflater = zlib.decompressobj()
    try:
        found = inflater.decompress(data[start:end].data, size + 1)
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if len(found) != size or not inflater.eof or inflater.unused_data:
        msg = "the compressed part is not of the length that it gives"
        raise ValueError(msg)
    return found
