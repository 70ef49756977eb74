"""Compressed events in the form that the second decoder reads; the servers' own are in tests/integration/verify."""

from __future__ import annotations

import struct
import zlib

import pytest
from zstandard import ZstdCompressor

from cdc_lib.mysql.uncompressed_session import events_of, uncompressed

CHECKSUM = b"\1\2\3\4"
ROWS = b"\0" + b"x" * 300


def event(kind: int, body: bytes, end: int) -> bytes:
    """An event with its header and checksum."""
    size = 19 + len(body) + len(CHECKSUM)
    return struct.pack("<IBIIIH", 7, kind, 1, size, end, 16) + body + CHECKSUM


def compressed(rows: bytes) -> bytes:
    return bytes([0x80 | 2]) + len(rows).to_bytes(2, "big") + zlib.compress(rows)


@pytest.mark.parametrize(
    ("kind", "plain", "extra", "bitmaps"),
    [
        (166, 23, b"", b"\xff"),
        (167, 24, b"", b"\xff\xff"),
        (168, 25, b"", b"\xff"),
        (169, 30, b"\2\0", b"\xff"),
        (170, 31, b"\5\0abc", b"\xff\xff"),
        (171, 32, b"\2\0", b"\xff"),
    ],
)
def test_a_row_event_of_mariadb_begins_where_its_compressed_event_does(kind, plain, extra, bitmaps):
    """Both versions of row events, with the data that the second one may have more; without a place it has none."""
    head = b"\x12\0\0\0\0\0\1\0" + extra + b"\3" + bitmaps
    found = uncompressed(event(kind, head + compressed(ROWS), 5000))
    start = 5000 - len(event(kind, head + compressed(ROWS), 5000))
    whole = event(plain, head + ROWS, 0)
    assert found == event(plain, head + ROWS, start + len(whole))
    assert uncompressed(event(kind, head + compressed(ROWS), 0)) == whole


@pytest.mark.parametrize("count", [1, 3, 70_000])
def test_the_events_of_a_transaction_begin_where_it_does(count):
    """Each with a checksum, which it has none of its own of; the fields before them may be of any width."""
    inner = [event(23, b"a" * n, 99)[: -len(CHECKSUM)] for n in range(1, 4)][:count] * max(1, count // 3)
    inner = [struct.pack("<IBIIIH", 7, 23, 1, len(one), 99, 16) + one[19:] for one in inner]
    payload = ZstdCompressor().compress(b"".join(inner))

    def packed(number: int) -> bytes:
        return bytes([number]) if number < 251 else b"\xfd" + number.to_bytes(3, "little")

    def field(number: int, value: int) -> bytes:
        return bytes([number]) + bytes([len(packed(value))]) + packed(value)

    fields = field(1, len(payload)) + field(2, 0) + field(3, sum(map(len, inner))) + b"\0"
    outer = event(40, fields + payload, 2**32 - 3)
    start = 2**32 - 3 - len(outer)
    found = list(events_of(outer))
    assert [one[19:] for one in found] == [one[19:] + CHECKSUM for one in inner]
    for one in found:
        _, kind, _, size, end, _ = struct.unpack("<IBIIIH", one[:19])
        assert (kind, size, end) == (23, len(one), (start + len(one)) % 2**32)
