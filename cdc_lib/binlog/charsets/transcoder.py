"""The interface of every character set: a kernel that writes cells as UTF-8, and its tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numba import njit

Kernel = Any
"""A compiled numba function; numba has no type for it that mypy could check.

``kernel(b, pos, length, n, offsets, data, valid, at, replace, *tables)`` writes cell ``i``, ``b[pos[i]:pos[i] + length[i]]``
(NULL where the length is -1), and returns the row of the first cell that is no text of the character set, else -1. With
``replace`` it writes U+FFFD in such places and returns -1.
"""


@dataclass(frozen=True, slots=True)
class Transcoder:
    """One character set.

    Args:
        kernel: see :data:`Kernel`.
        tables: its last arguments.
        growth: most bytes of UTF-8 that one byte becomes; 3 at most, because no set has a character of one byte beyond U+FFFF.
    """

    kernel: Kernel
    tables: tuple[Any, ...] = ()
    growth: int = 3


@njit(cache=True, nogil=True, inline="always")
def put(data, o, point):
    """Write a code point as UTF-8 and return where the next goes."""
    if point < 0x80:
        data[o] = point
        return o + 1
    if point < 0x800:
        data[o] = 0xC0 | point >> 6
        data[o + 1] = 0x80 | point & 0x3F
        return o + 2
    if point < 0x10000:
        data[o] = 0xE0 | point >> 12
        data[o + 1] = 0x80 | point >> 6 & 0x3F
        data[o + 2] = 0x80 | point & 0x3F
        return o + 3
    data[o] = 0xF0 | point >> 18
    data[o + 1] = 0x80 | point >> 12 & 0x3F
    data[o + 2] = 0x80 | point >> 6 & 0x3F
    data[o + 3] = 0x80 | point & 0x3F
    return o + 4
