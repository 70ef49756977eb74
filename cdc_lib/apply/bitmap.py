"""Roaring bitmaps in the portable format, asked for single positions and ranges without expanding them.

The format: https://github.com/RoaringBitmap/RoaringFormatSpec. A 64-bit bitmap is a count and, for each upper half of the
numbers, that half and a 32-bit bitmap.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

_WITH_RUNS, _WITHOUT_RUNS = 12347, 12346
_OFFSETS_FROM = 4
"""Number of containers from which a bitmap with runs has a table of offsets."""
_ARRAY_MOST = 4096
"""Most values of a container that is a sorted array; one with more is 65,536 bits."""
_SPAN = 1 << 16
"""Numbers that a container covers."""


class _Container(Protocol):
    """The lower 16 bits of the values that share the upper bits."""

    def __len__(self) -> int: ...

    def has(self, low: int) -> bool: ...

    def fill(self, mask: NDArray[np.bool_]) -> None:
        """Set the values in a mask of 65,536 positions."""


@dataclass(frozen=True, slots=True)
class _Values:
    values: NDArray[np.uint16]

    def __len__(self) -> int:
        return len(self.values)

    def has(self, low: int) -> bool:
        at = int(self.values.searchsorted(low))
        return at < len(self.values) and int(self.values[at]) == low

    def fill(self, mask: NDArray[np.bool_]) -> None:
        mask[self.values] = True


@dataclass(frozen=True, slots=True)
class _Bits:
    data: NDArray[np.uint8]
    count: int

    def __len__(self) -> int:
        return self.count

    def has(self, low: int) -> bool:
        return bool(self.data[low >> 3] >> (low & 7) & 1)

    def fill(self, mask: NDArray[np.bool_]) -> None:
        mask |= np.unpackbits(self.data, bitorder="little").view(np.bool_)


@dataclass(frozen=True, slots=True)
class _Runs:
    starts: NDArray[np.uint16]
    lengths: NDArray[np.uint16]
    """Each one less than the number of values."""

    def __len__(self) -> int:
        return int(self.lengths.sum(dtype=np.int64)) + len(self.lengths)

    def has(self, low: int) -> bool:
        at = int(self.starts.searchsorted(low, "right")) - 1
        return at >= 0 and low - int(self.starts[at]) <= int(self.lengths[at])

    def fill(self, mask: NDArray[np.bool_]) -> None:
        for start, length in zip(self.starts.tolist(), self.lengths.tolist(), strict=True):
            mask[start : start + length + 1] = True


class Bitmap64:
    """A set of numbers.

    Args:
        containers: by the upper 48 bits of their numbers.
    """

    __slots__ = ("_containers",)

    def __init__(self, containers: dict[int, _Container]) -> None:
        self._containers = containers

    def __len__(self) -> int:
        """Return how many numbers are in the set."""
        return sum(map(len, self._containers.values()))

    def __contains__(self, number: int) -> bool:
        """Whether a number is in the set."""
        container = self._containers.get(number >> 16)
        return container is not None and container.has(number & (_SPAN - 1))

    def mask(self, start: int, count: int) -> NDArray[np.bool_]:
        """Return for each of ``count`` numbers from ``start`` on whether it is in the set."""
        first, last = start >> 16, (start + count - 1) >> 16
        found = np.zeros((last - first + 1) * _SPAN if count else 0, np.bool_)
        for number in range(first, last + 1) if count else ():
            if (container := self._containers.get(number)) is not None:
                container.fill(found[(number - first) * _SPAN : (number - first + 1) * _SPAN])
        return found[start - first * _SPAN :][:count]

    def numbers(self) -> NDArray[np.int64]:
        """Return all numbers in ascending order."""
        parts = [np.flatnonzero(self.mask(at << 16, _SPAN)) + (at << 16) for at in sorted(self._containers)]
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def parse_bitmap(data: bytes) -> Bitmap64:
    """Parse a 64-bit bitmap.

    Raises:
        ValueError: the bytes are not such a bitmap.
    """
    try:
        containers, end = _all_containers(data)
    except struct.error as error:
        raise ValueError(f"the bitmap ends early: {error}") from error
    if end != len(data):
        raise ValueError(f"the bitmap has {len(data)} bytes, and {end} are used")
    return Bitmap64(containers)


def _all_containers(data: bytes) -> tuple[dict[int, _Container], int]:
    (bitmaps,) = struct.unpack_from("<Q", data)
    at, containers = 8, dict[int, _Container]()
    for _ in range(bitmaps):
        (upper,) = struct.unpack_from("<I", data, at)
        at = _read_bitmap(data, at + 4, upper << 16, containers)
    return containers, at


def _read_bitmap(data: bytes, at: int, upper: int, containers: dict[int, _Container]) -> int:
    """Add the containers of a 32-bit bitmap; returns where it ends."""
    (cookie,) = struct.unpack_from("<I", data, at)
    at += 4
    runs = b""
    if cookie & 0xFFFF == _WITH_RUNS:
        count = (cookie >> 16) + 1
        runs, at = data[at : at + (count + 7) // 8], at + (count + 7) // 8
    elif cookie == _WITHOUT_RUNS:
        (count,) = struct.unpack_from("<I", data, at)
        at += 4
    else:
        raise ValueError(f"a bitmap begins with {cookie}")
    header = struct.unpack_from(f"<{2 * count}H", data, at)
    at += 4 * count
    if not runs or count >= _OFFSETS_FROM:
        at += 4 * count  # containers are read one after the other, without their offsets
    for number in range(count):
        is_run = bool(runs) and bool(runs[number // 8] >> number % 8 & 1)
        containers[upper | header[2 * number]], at = _read_container(data, at, header[2 * number + 1] + 1, is_run)
    return at


def _read_container(data: bytes, at: int, count: int, is_run: bool) -> tuple[_Container, int]:
    if is_run:
        (count,) = struct.unpack_from("<H", data, at)
        pairs = _numbers(data, at + 2, 2 * count, np.uint16)
        return _Runs(pairs[::2], pairs[1::2]), at + 2 + 4 * count
    if count <= _ARRAY_MOST:
        return _Values(_numbers(data, at, count, np.uint16)), at + 2 * count
    return _Bits(_numbers(data, at, _SPAN // 8, np.uint8), count), at + _SPAN // 8


def _numbers(data: bytes, at: int, count: int, kind: type[np.uint8 | np.uint16]) -> NDArray[Any]:
    if at + count * np.dtype(kind).itemsize > len(data):
        raise ValueError("the bitmap ends early")
    return np.frombuffer(data, np.dtype(kind).newbyteorder("<"), count, at)


def bitmap_bytes(numbers: NDArray[np.int64]) -> bytes:
    """Return a set of numbers as a 64-bit bitmap.

    Args:
        numbers: in ascending order, none twice.
    """
    uppers = np.unique(numbers >> 32)
    parts = [struct.pack("<Q", len(uppers))]
    for upper in uppers.tolist():
        low = numbers[(numbers >> 32) == upper] & 0xFFFFFFFF
        parts += [struct.pack("<I", upper), _bitmap32(low)]
    return b"".join(parts)


def _bitmap32(numbers: NDArray[np.int64]) -> bytes:
    keys, starts = np.unique(numbers >> 16, return_index=True)
    bodies = [_container((one & 0xFFFF).astype("<u2")) for one in np.split(numbers, starts[1:])]
    counts = np.diff(np.append(starts, len(numbers)))
    described = np.stack([keys, counts - 1], axis=1).astype("<u2").tobytes()
    begins = 8 + len(described) + 4 * len(keys)
    offsets = begins + np.cumsum([0, *(len(body) for body in bodies[:-1])])
    return b"".join([struct.pack("<II", _WITHOUT_RUNS, len(keys)), described, offsets.astype("<u4").tobytes(), *bodies])


def _container(values: NDArray[np.uint16]) -> bytes:
    if len(values) <= _ARRAY_MOST:
        return values.tobytes()
    bits = np.zeros(_SPAN, np.bool_)
    bits[values] = True
    return np.packbits(bits, bitorder="little").tobytes()
