"""Copies cells unchanged, one after another."""

from __future__ import annotations

import numpy as np
from numba import njit

from cdc_lib.binlog.bytes.integers import copy


@njit(cache=True, nogil=True)
def total(length, n, width):
    """Bytes of all cells, each at least ``width`` long."""
    size = np.int64(0)
    for i in range(n):
        if length[i] >= 0:
            size += max(length[i], width)
    return size


@njit(cache=True, nogil=True, inline="always")
def copy_ranges(b, pos, length, n, offsets, data, valid, at, width):
    """Copy cells one after another, each filled up with zero bytes to ``width``."""
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
