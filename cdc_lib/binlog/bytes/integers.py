"""Little- and big-endian integers from a byte buffer, for the kernels.

None of these checks a bound: the kernel that calls one has compared the end of what it reads with the end of the event.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from cdc_lib.binlog.bytes.intrinsics import load64, load64_big, move8, move16


@njit(cache=True, nogil=True, inline="always")
def u16(b, p):
    """Two bytes, little-endian."""
    return np.int64(b[p]) | (np.int64(b[p + 1]) << 8)


@njit(cache=True, nogil=True, inline="always")
def u24(b, p):
    """Three bytes, little-endian."""
    return np.int64(b[p]) | (np.int64(b[p + 1]) << 8) | (np.int64(b[p + 2]) << 16)


@njit(cache=True, nogil=True, inline="always")
def u32(b, p):
    """Four bytes, little-endian."""
    return np.int64(b[p]) | (np.int64(b[p + 1]) << 8) | (np.int64(b[p + 2]) << 16) | (np.int64(b[p + 3]) << 24)


@njit(cache=True, nogil=True, inline="always")
def u48(b, p):
    """Six bytes, little-endian."""
    return u32(b, p) | (u16(b, p + 4) << 32)


@njit(cache=True, nogil=True, inline="always")
def u56(b, p):
    """Seven bytes, little-endian."""
    return u32(b, p) | (u24(b, p + 4) << 32)


@njit(cache=True, nogil=True, inline="always")
def u64(b, p):
    """Eight bytes, little-endian; values from 2**63 on come out negative, bit for bit the same."""
    return u32(b, p) | (u32(b, p + 4) << 32)


@njit(cache=True, nogil=True, inline="always")
def big(b, p, width):
    """``width`` bytes (at most 8), big-endian."""
    if width > 0 and p + 8 <= b.shape[0]:
        return np.int64(load64_big(b, p) >> np.uint64(64 - 8 * width))
    value = np.int64(0)
    for i in range(width):
        value = (value << 8) | np.int64(b[p + i])
    return value


@njit(cache=True, nogil=True, inline="always")
def little(b, p, width):
    """``width`` bytes (at most 8), little-endian."""
    if width > 0 and p + 8 <= b.shape[0]:
        spare = np.uint64(64 - 8 * width)
        return np.int64((load64(b, p) << spare) >> spare)
    value = np.int64(0)
    for i in range(width):
        value |= np.int64(b[p + i]) << (8 * i)
    return value


@njit(cache=True, nogil=True, inline="always")
def copy(source, start, target, at, count):
    """Copy bytes from one buffer to another.

    Cells are short: the last step goes over bytes that are copied already, so that there is no tail to go byte by byte.
    """
    if count >= 16:
        for i in range(0, count - 16, 16):
            move16(source, start + i, target, at + i)
        move16(source, start + count - 16, target, at + count - 16)
    elif count >= 8:
        move8(source, start, target, at)
        move8(source, start + count - 8, target, at + count - 8)
    else:
        for i in range(count):
            target[at + i] = source[start + i]
