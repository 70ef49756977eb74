"""CRC32 of an event, eight bytes a step.

The server appends the zlib CRC32 (polynomial 0xEDB88320, reflected) of the whole event before it, header included, as four
bytes, little-endian (MySQL internals manual, "Binlog event checksum"; WL#2540).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

_POLYNOMIAL = 0xEDB88320


def make_tables() -> npt.NDArray[np.uint32]:
    """Return the eight lookup tables, shape (8, 256)."""
    tables = np.zeros((8, 256), np.uint32)
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = (value >> 1) ^ (_POLYNOMIAL if value & 1 else 0)
        tables[0, byte] = value
    for table in range(1, 8):
        previous = tables[table - 1]
        tables[table] = (previous >> 8) ^ tables[0][previous & 0xFF]
    return tables


TABLES = make_tables()


@njit(cache=True, nogil=True)
def crc32(b, start, stop, t):
    """CRC32 of ``b[start:stop]`` with the lookup tables ``t``."""
    crc = np.uint32(0xFFFFFFFF)
    p = start
    while p + 8 <= stop:
        low = (
            np.uint32(b[p])
            | (np.uint32(b[p + 1]) << np.uint32(8))
            | (np.uint32(b[p + 2]) << np.uint32(16))
            | (np.uint32(b[p + 3]) << np.uint32(24))
        )
        x = crc ^ low
        crc = (
            t[7, x & np.uint32(0xFF)]
            ^ t[6, (x >> np.uint32(8)) & np.uint32(0xFF)]
            ^ t[5, (x >> np.uint32(16)) & np.uint32(0xFF)]
            ^ t[4, x >> np.uint32(24)]
            ^ t[3, b[p + 4]]
            ^ t[2, b[p + 5]]
            ^ t[1, b[p + 6]]
            ^ t[0, b[p + 7]]
        )
        p += 8
    while p < stop:
        crc = (crc >> np.uint32(8)) ^ t[0, (crc ^ np.uint32(b[p])) & np.uint32(0xFF)]
        p += 1
    return np.int64(crc ^ np.uint32(0xFFFFFFFF))
