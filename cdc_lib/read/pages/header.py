"""The header that precedes each page of a Parquet file; pure."""

from __future__ import annotations

from typing import NamedTuple

from cdc_lib.read.pages.compact import INT32, STRUCT, Reader
from cdc_lib.read.pages.runs import Bytes, unsigned_at

DATA, DICTIONARY = 0, 2
"""Kinds of pages; data pages of version 2 have another number."""
PLAIN, PLAIN_DICTIONARY, RLE_DICTIONARY = 0, 2, 8
"""Encodings of values."""


_NEXT, _VALUES, _VALUES_AFTER_CHECKSUM = 0x15, 0x2C, 0x1C
"""What precedes a number whose field has the next id, and the struct of a data page: its field has the id 5."""


class PageHeader(NamedTuple):
    """What the header of a page says.

    Args:
        kind: of the page.
        inflated: bytes of the page without compression.
        size: bytes of the page in the file, without the header.
        values: how many there are, with nulls.
        encoding: of the values.
        end: where the header ends.
    """

    kind: int
    inflated: int
    size: int
    values: int
    encoding: int
    end: int


def parse_header(data: Bytes) -> PageHeader:
    """Return the header with which bytes begin.

    Raises:
        IndexError: they end within it.
        ValueError: it is damaged.
    """
    known = _usual(data)
    return known if known is not None else _any(data)


def _usual(data: Bytes) -> PageHeader | None:
    """Return the header of a data page as writers write it, in a third of the time; None if it is another one."""
    numbers, at = [], 0
    for field in (_NEXT, _NEXT, _NEXT):
        if data[at] != field:
            return None
        value, at = unsigned_at(data, at + 1)
        numbers.append(value >> 1)
    if data[at] == _NEXT:  # a checksum
        _, at = unsigned_at(data, at + 1)
        if data[at] != _VALUES_AFTER_CHECKSUM:
            return None
    elif data[at] != _VALUES:
        return None
    at += 1
    for field in (_NEXT, _NEXT, _NEXT, _NEXT):
        if data[at] != field:
            return None
        value, at = unsigned_at(data, at + 1)
        numbers.append(value >> 1)
    if data[at] or data[at + 1]:  # more fields, such as statistics
        return None
    kind, inflated, size, values, encoding = numbers[:5]
    return PageHeader(kind, inflated, size, values, encoding, at + 2)


def _any(data: Bytes) -> PageHeader:
    reader = Reader(data)
    numbers = {1: -1, 2: -1, 3: -1}
    of_values = {1: 0, 2: -1}
    for field_id, of in reader.fields():
        if of == INT32 and field_id in numbers:
            numbers[field_id] = reader.number()
        elif of == STRUCT and field_id in (5, 7):  # of a data page, of a dictionary
            for value_id, of_value in reader.fields():
                if of_value == INT32 and value_id in of_values:
                    of_values[value_id] = reader.number()
                else:
                    reader.skip(of_value)
        else:
            reader.skip(of)
    if min(numbers.values()) < 0 or of_values[1] < 0:
        raise ValueError("page without its sizes")
    return PageHeader(numbers[1], numbers[2], numbers[3], of_values[1], of_values[2], reader.at)
