"""Single values of a page of a column without compression; pure.

Values are as Parquet stores them: numbers, or bytes. Nothing is decoded but the asked one, and what has to be passed on the way to it.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from cdc_lib.read.pages.header import PLAIN, PLAIN_DICTIONARY, RLE_DICTIONARY, PageHeader
from cdc_lib.read.pages.runs import Bytes, number_at, ones_before

BOOLEAN, INT32, INT64, FLOAT, DOUBLE, BYTE_ARRAY, FIXED = 0, 1, 2, 4, 5, 6, 7
TYPES = frozenset((BOOLEAN, INT32, INT64, FLOAT, DOUBLE, BYTE_ARRAY, FIXED))
"""Parquet's types whose values are read; the other one is an old time of 12 bytes."""

Value = bool | int | float | bytes | None
ValueAt = Callable[[int], Value]
"""Returns a value by its number in the page. Threads may call it at once."""

_NUMBERS = {
    INT32: struct.Struct("<i"),
    INT64: struct.Struct("<q"),
    FLOAT: struct.Struct("<f"),
    DOUBLE: struct.Struct("<d"),
}
_LENGTH = struct.Struct("<I")
_OBJECT_BYTES = 600
"""About what a page takes in memory besides its bytes."""


class UnknownEncoding(Exception):
    """The values of a page are encoded in a way that is not read here; Arrow knows all ways."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What the values of a column are.

    Args:
        physical: number of the type in Parquet.
        length: bytes of each value, if all have as many.
        may_be_null: whether pages say which values are null.
    """

    physical: int
    length: int
    may_be_null: bool

    def bytes_of(self, header: PageHeader) -> int:
        """Return how much memory a page or a dictionary takes."""
        return header.inflated + _OBJECT_BYTES + (4 * header.values if self.physical == BYTE_ARRAY else 0)


def page_values(
    kind: Kind, header: PageHeader, data: Bytes, dictionary: ValueAt | None, *, again: bool = True
) -> ValueAt:
    """Return what reads the values of a page.

    Args:
        kind: of the values.
        header: of the page.
        data: the page without header and compression.
        dictionary: the values that pages have the numbers of; None if there are none.
        again: whether values may be read in any order and by many threads; if not, in ascending order by one.

    Returns:
        A function that raises IndexError or struct.error if the page ends before the value, UnknownEncoding as below.

    Raises:
        UnknownEncoding: the values are in another encoding.
    """
    at = 4 + int.from_bytes(data[:4], "little") if kind.may_be_null else 0
    if header.encoding == PLAIN:
        value = plain_values(kind, data, at) if again or kind.physical != BYTE_ARRAY else _texts_once(data, at)
    elif header.encoding in (PLAIN_DICTIONARY, RLE_DICTIONARY):
        value = _values_of_dictionary(data, at, dictionary)
    else:
        raise UnknownEncoding
    if not kind.may_be_null or data[4:at] == _all_ones(header.values):
        return value

    def value_or_null(row: int) -> Value:
        is_present, before = ones_before(data, 4, row)
        return value(before) if is_present else None

    return value_or_null


def plain_values(kind: Kind, data: Bytes, at: int = 0) -> ValueAt:
    """Return what reads values that follow each other, as those of a dictionary do.

    Args:
        kind: of the values.
        data: has them.
        at: where the first one begins.
    """
    if kind.physical in _NUMBERS:
        one = _NUMBERS[kind.physical]
        size, unpack = one.size, one.unpack_from
        return lambda index: unpack(data, at + size * index)[0]
    if kind.physical == FIXED:
        return lambda index: _part(data, at + kind.length * index, kind.length)
    if kind.physical == BOOLEAN:
        return lambda index: bool(data[at + index // 8] >> index % 8 & 1)
    return _texts(data, at)


def _texts(data: Bytes, at: int) -> ValueAt:
    """Read bytes that are preceded by their length: where one begins is known from those before it."""
    starts = array("I", (at,))

    def value(index: int) -> Value:
        nonlocal starts
        known = starts
        if index >= len(known):
            known = array("I", known)  # another thread may extend them too
            begin, unpack, add = known[-1], _LENGTH.unpack_from, known.append
            for _ in range(index + 1 - len(known)):
                begin += 4 + unpack(data, begin)[0]
                add(begin)
            starts = known
        begin = known[index]
        return _part(data, begin + 4, _LENGTH.unpack_from(data, begin)[0])

    return value


def _texts_once(data: Bytes, at: int) -> ValueAt:
    """Read the same in ascending order, without remembering where each begins."""
    passed = 0

    def value(index: int) -> Value:
        nonlocal at, passed
        begin, unpack = at, _LENGTH.unpack_from
        for _ in range(index - passed):
            begin += 4 + unpack(data, begin)[0]
        at, passed = begin, index
        return _part(data, begin + 4, unpack(data, begin)[0])

    return value


def _values_of_dictionary(data: Bytes, at: int, dictionary: ValueAt | None) -> ValueAt:
    def value(index: int) -> Value:
        if dictionary is None:
            raise UnknownEncoding
        width = data[at]
        return dictionary(number_at(data, at + 1, width, index) if width else 0)

    return value


@lru_cache(maxsize=10_000)
def _all_ones(count: int) -> bytes:
    """Return the run that says of so many values that none is null."""
    header, found = count << 1, bytearray()
    while header > 127:
        found.append(header & 127 | 128)
        header >>= 7
    found += bytes((header, 1))
    return bytes(found)


def _part(data: Bytes, at: int, size: int) -> bytes:
    part: Any = data[at : at + size]
    if len(part) < size:
        raise IndexError("page without its end")
    return bytes(part)
