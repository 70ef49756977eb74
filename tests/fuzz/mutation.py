"""Makes a broken case out of samples, from a seed and a number alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numba import njit

_EXTREMES = np.array(
    [0, 1, 0x7F, 0x80, 0xFA, 0xFB, 0xFC, 0xFD, 0xFE, 0xFF, 0x100, 0x7FFF, 0x8000, 0xFFFF, 0xFFFFFF, 0x7FFFFFFF, 0x80000000,
     0xFFFFFFFF, 0x7FFFFFFFFFFFFFFF, -0x8000000000000000, -1],
    np.int64,
)  # fmt: skip
_MOST_CHANGES = 6


@dataclass(frozen=True, slots=True)
class Samples:
    """Byte strings one after another.

    Args:
        data: all of them.
        starts: where each begins, and where the last ends.
        room: bytes that a case made of them may take.
    """

    data: np.ndarray
    starts: np.ndarray
    room: int

    @classmethod
    def of(cls, pieces: Sequence[bytes], extra: int = 64) -> Samples:
        """Lay pieces out."""
        starts = np.cumsum([0, *map(len, pieces)]).astype(np.int64)
        data = np.frombuffer(b"".join(pieces) or b"\0", np.uint8)
        return cls(data, starts, max(map(len, pieces)) + extra)


@njit(cache=True, nogil=True)
def begin(rng, seed, case):
    """Set the state of the random numbers of one case."""
    rng[0] = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(case) * np.uint64(0xD1B54A32D192ED03)
    number(rng)


@njit(cache=True, nogil=True)
def number(rng):
    """Return the next random number of 63 bits (splitmix64, by Sebastiano Vigna)."""
    rng[0] += np.uint64(0x9E3779B97F4A7C15)
    z = rng[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.int64((z ^ (z >> np.uint64(31))) >> np.uint64(1))


@njit(cache=True, nogil=True)
def below(rng, limit):
    """Return a random number from 0 to ``limit`` - 1; 0 for a limit below 1."""
    return number(rng) % limit if limit > 0 else np.int64(0)


@njit(cache=True, nogil=True)
def fill(rng, work, size):
    """Write random bytes, of which many are the same; returns their number."""
    for i in range(size):
        work[i] = np.uint8(number(rng) & 0xFF)
    return size


@njit(cache=True, nogil=True)
def _piece(rng, data, starts, work, at, size, room):
    """Put a piece of another sample in the place of what is there; returns the new size."""
    other = below(rng, starts.shape[0] - 1)
    begin_ = starts[other] + below(rng, starts[other + 1] - starts[other])
    count = min(below(rng, 32), starts[other + 1] - begin_, room - at)
    for i in range(count):
        work[at + i] = data[begin_ + i]
    return max(size, at + count)


@njit(cache=True, nogil=True)
def _moved(rng, work, at, size, room):
    """Remove a few bytes, or repeat them; returns the new size."""
    count = below(rng, 9)
    if below(rng, 2) == 0:
        for i in range(at, size - count):
            work[i] = work[i + count]
        return max(size - count, at)
    count = min(count, room - size, size - at)
    for i in range(size - 1, at - 1, -1):
        work[i + count] = work[i]
    return size + count


@njit(cache=True, nogil=True)
def change(rng, data, starts, work, size, room):
    """Change bytes in ``work[:size]`` once; returns the new size."""
    kind = below(rng, 10)
    at = below(rng, size)
    if kind == 0 and size > 0:
        work[at] ^= np.uint8(1 << below(rng, 8))
    elif kind == 1 and size > 0:
        work[at] = np.uint8(number(rng) & 0xFF)
    elif kind == 2 and size > 0:  # a length or a count that is wrong by a little
        work[at] = np.uint8((np.int64(work[at]) + below(rng, 9) - 4) & 0xFF)
    elif kind <= 6:
        width = np.int64(1) << below(rng, 4)
        value = _EXTREMES[below(rng, _EXTREMES.shape[0])]
        for i in range(min(width, size - at)):
            work[at + i] = np.uint8((value >> (8 * i)) & 0xFF)
    elif kind == 7:
        return at
    elif kind == 8:
        return _moved(rng, work, at, size, room)
    else:
        return _piece(rng, data, starts, work, at, size, room)
    return size


@njit(cache=True, nogil=True)
def broken(rng, data, starts, chosen, work):
    """Copy a sample into ``work`` and change it 0 to 6 times; returns its size."""
    size = starts[chosen + 1] - starts[chosen]
    for i in range(size):
        work[i] = data[starts[chosen] + i]
    for _ in range(below(rng, _MOST_CHANGES + 1)):
        size = change(rng, data, starts, work, size, work.shape[0])
    return size
