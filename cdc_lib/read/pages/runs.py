"""Parquet's runs of small numbers: each run repeats one number, or has numbers of a few bits each; pure.

Levels, which say whether a value is null, and the numbers of values in a dictionary are stored so.
"""

from __future__ import annotations

Bytes = bytes | memoryview


def number_at(data: Bytes, at: int, width: int, index: int) -> int:
    """Return one of the numbers.

    Args:
        data: has the runs.
        at: where the first run begins.
        width: bits of a number.
        index: which number, from 0 on.

    Raises:
        IndexError: the data end before it.
    """
    whole = (width + 7) // 8
    while True:
        header, at = unsigned_at(data, at)
        count = header >> 1
        if not header & 1:
            if index < count:
                return int.from_bytes(_part(data, at, whole), "little")
            index -= count
            at += whole
        else:
            if index < 8 * count:
                bit = index * width
                first = at + bit // 8
                bits = int.from_bytes(_part(data, first, (bit % 8 + width + 7) // 8), "little")
                return bits >> bit % 8 & (1 << width) - 1
            index -= 8 * count
            at += count * width


def ones_before(data: Bytes, at: int, index: int) -> tuple[bool, int]:
    """Return whether a number of one bit is 1, and how many before it are.

    Args:
        data: has the runs.
        at: where the first run begins.
        index: which number, from 0 on.

    Raises:
        IndexError: the data end before it.
    """
    ones = 0
    while True:
        header, at = unsigned_at(data, at)
        count = header >> 1
        if not header & 1:
            is_one = data[at] == 1
            if index < count:
                return is_one, ones + index * is_one
            index -= count
            ones += count * is_one
            at += 1
        else:
            if index < 8 * count:
                bits = int.from_bytes(_part(data, at, index // 8 + 1), "little")
                return bool(bits >> index & 1), ones + (bits & (1 << index) - 1).bit_count()
            ones += int.from_bytes(_part(data, at, count), "little").bit_count()
            index -= 8 * count
            at += count


def unsigned_at(data: Bytes, at: int) -> tuple[int, int]:
    """Return a number of variable length, and where it ends."""
    byte = data[at]
    at += 1
    value = byte & 127
    shift = 7
    while byte > 127:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
    return value, at


def _part(data: Bytes, at: int, size: int) -> Bytes:
    part = data[at : at + size]
    if len(part) < size:
        raise IndexError("runs without their end")
    return part
