"""Thrift's compact protocol, as far as footers and headers of Parquet files need it; pure."""

from __future__ import annotations

from collections.abc import Iterator

from cdc_lib.read.pages.runs import Bytes

BOOLEANS = (1, 2)
INT32, INT64, BINARY, LIST, STRUCT = 5, 6, 8, 9, 12
_DOUBLE = 7
_STOP = b"\x00"


class Reader:
    """Reads values one after the other.

    Args:
        data: the bytes.
        at: where the next value begins.
    """

    def __init__(self, data: Bytes, at: int = 0) -> None:
        self.data = data
        self.at = at

    def unsigned(self) -> int:
        """Return the next number of variable length."""
        data, at = self.data, self.at
        value, shift = data[at] & 127, 7
        while data[at] > 127:
            at += 1
            value |= (data[at] & 127) << shift
            shift += 7
        self.at = at + 1
        return value

    def number(self) -> int:
        """Return the next signed number."""
        value = self.unsigned()
        return (value >> 1) ^ -(value & 1)

    def binary(self) -> bytes:
        """Return the next text or bytes."""
        size = self.unsigned()
        self.at += size
        return bytes(self.data[self.at - size : self.at])

    def fields(self) -> Iterator[tuple[int, int]]:
        """Yield id and type of each field of a struct; the caller reads or skips each value."""
        field_id = 0
        while header := self.data[self.at]:
            self.at += 1
            # A header without a distance is followed by the id itself.
            field_id = field_id + (header >> 4) if header >> 4 else self.number()
            yield field_id, header & 15
        self.at += 1

    def items(self) -> tuple[int, int]:
        """Return the number of items of a list, and their type."""
        header = self.data[self.at]
        self.at += 1
        count = header >> 4
        return (self.unsigned() if count == 15 else count), header & 15

    def skip(self, of: int) -> None:
        """Pass over a value.

        Raises:
            ValueError: it has a type that they do not have.
        """
        if of == BINARY:
            size = self.unsigned()
            self.at += size
        elif of in (INT32, INT64, 4):
            self.unsigned()
        elif of == STRUCT:
            for _, each in self.fields():
                self.skip(each)
        elif of == LIST:
            count, each = self.items()
            for _ in range(count):
                # Booleans of a list take a byte each; those of a struct are in the header of the field.
                self.skip(3 if each in BOOLEANS else each)
        elif of == 3:
            self.at += 1
        elif of == _DOUBLE:
            self.at += 8
        elif of not in BOOLEANS:
            raise ValueError(f"footer or header with a value of type {of}")


def unsigned(value: int) -> bytes:
    """Return a number of variable length."""
    if value < 128:
        return bytes((value,))
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    found.append(value)
    return bytes(found)


def number(value: int) -> bytes:
    """Return a signed number that is not negative."""
    return unsigned(value << 1)


def items(of: int, values: list[bytes]) -> bytes:
    """Return a list.

    Args:
        of: type of the values.
        values: encoded.
    """
    header = bytes((len(values) << 4 | of,)) if len(values) < 15 else bytes((0xF0 | of,)) + unsigned(len(values))
    return header + b"".join(values)


def struct(*fields: tuple[int, int, bytes], after: int = 0) -> bytes:
    """Return a struct, or the rest of one.

    Args:
        fields: id, type and encoded value of each, in ascending order of ids, less than 16 apart.
        after: id of the field before the first one.
    """
    found = []
    for field_id, of, value in fields:
        found += [bytes(((field_id - after) << 4 | of,)), value]
        after = field_id
    return b"".join([*found, _STOP])
