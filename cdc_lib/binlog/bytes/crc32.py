"""CRC32 of an event.

The server appends the zlib CRC32 (polynomial 0xEDB88320, reflected) of the whole event before it, header included, as four
bytes, little-endian (MySQL internals manual, "Binlog event checksum"; WL#2540).

Long data is folded: 64 bytes a step become one 16-byte remainder with the same CRC, by carry-less products (Gopal and
others, "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction", Intel 2009). The rest, and everything on
a processor without that instruction, goes through tables, eight bytes a step.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from cdc_lib.binlog.bytes.intrinsics import HAS_CARRYLESS_PRODUCT, carryless, load64

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


def _power(bits: int) -> np.uint64:
    """Return x**bits modulo the polynomial, reflected, one bit up as the product needs it."""
    value = 0x80000000
    for _ in range(bits):
        value = (value >> 1) ^ (_POLYNOMIAL if value & 1 else 0)
    return np.uint64(value << 1)


TABLES = make_tables()
_OVER_4_LOW, _OVER_4_HIGH = _power(4 * 128 + 32), _power(4 * 128 - 32)
_OVER_1_LOW, _OVER_1_HIGH = _power(128 + 32), _power(128 - 32)
_START = np.uint32(0xFFFFFFFF)
_LOW = np.uint64(0xFF)


@njit(cache=True, nogil=True, inline="always")
def _eight(x, t):
    """CRC of the eight bytes of ``x``, into which the CRC before was mixed."""
    return (
        t[7, x & _LOW]
        ^ t[6, (x >> np.uint64(8)) & _LOW]
        ^ t[5, (x >> np.uint64(16)) & _LOW]
        ^ t[4, (x >> np.uint64(24)) & _LOW]
        ^ t[3, (x >> np.uint64(32)) & _LOW]
        ^ t[2, (x >> np.uint64(40)) & _LOW]
        ^ t[1, (x >> np.uint64(48)) & _LOW]
        ^ t[0, x >> np.uint64(56)]
    )


@njit(cache=True, nogil=True, inline="always")
def _by_tables(crc, b, p, stop, t):
    while p + 8 <= stop:
        crc = _eight(load64(b, p) ^ np.uint64(crc), t)
        p += 8
    while p < stop:
        crc = (crc >> np.uint32(8)) ^ t[0, (crc ^ np.uint32(b[p])) & np.uint32(0xFF)]
        p += 1
    return crc


@njit(cache=True, nogil=True, inline="always")
def _folded(low, high, by_low, by_high, next_low, next_high):
    """Carry a remainder over some distance and add what is there."""
    a, b = carryless(low, by_low)
    c, d = carryless(high, by_high)
    return a ^ c ^ next_low, b ^ d ^ next_high


@njit(cache=True, nogil=True)
def crc32_by_tables(b, start, stop, t):
    """CRC32 of ``b[start:stop]`` with the lookup tables ``t``."""
    return np.int64(_by_tables(_START, b, start, stop, t) ^ _START)


@njit(cache=True, nogil=True)
def crc32_by_folding(b, start, stop, t):
    """CRC32 of ``b[start:stop]`` with the lookup tables ``t``, for processors that multiply without carries."""
    p = start
    if stop - p < 32:
        return np.int64(_by_tables(_START, b, p, stop, t) ^ _START)
    l0, h0 = load64(b, p) ^ np.uint64(_START), load64(b, p + 8)
    p += 16
    if stop - p >= 112:
        # Four remainders at a time: one product does not wait for the other.
        l1, h1 = load64(b, p), load64(b, p + 8)
        l2, h2 = load64(b, p + 16), load64(b, p + 24)
        l3, h3 = load64(b, p + 32), load64(b, p + 40)
        p += 48
        while p + 64 <= stop:
            l0, h0 = _folded(l0, h0, _OVER_4_LOW, _OVER_4_HIGH, load64(b, p), load64(b, p + 8))
            l1, h1 = _folded(l1, h1, _OVER_4_LOW, _OVER_4_HIGH, load64(b, p + 16), load64(b, p + 24))
            l2, h2 = _folded(l2, h2, _OVER_4_LOW, _OVER_4_HIGH, load64(b, p + 32), load64(b, p + 40))
            l3, h3 = _folded(l3, h3, _OVER_4_LOW, _OVER_4_HIGH, load64(b, p + 48), load64(b, p + 56))
            p += 64
        l0, h0 = _folded(l0, h0, _OVER_1_LOW, _OVER_1_HIGH, l1, h1)
        l0, h0 = _folded(l0, h0, _OVER_1_LOW, _OVER_1_HIGH, l2, h2)
        l0, h0 = _folded(l0, h0, _OVER_1_LOW, _OVER_1_HIGH, l3, h3)
    while p + 16 <= stop:
        l0, h0 = _folded(l0, h0, _OVER_1_LOW, _OVER_1_HIGH, load64(b, p), load64(b, p + 8))
        p += 16
    crc = _eight(h0 ^ np.uint64(_eight(l0, t)), t)
    return np.int64(_by_tables(crc, b, p, stop, t) ^ _START)


crc32 = crc32_by_folding if HAS_CARRYLESS_PRODUCT else crc32_by_tables
