"""PARTIAL_UPDATE_ROWS events in a generated stream."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable

from tests.harness.binlog.json_changes import changes
from tests.harness.binlog.json_values import Document, document, encode, text
from tests.harness.binlog.recorded import Event, Recorded, first_rotate
from tests.harness.binlog.streams import SID

_TABLE = b"\7\0\0\0\0\0\1\0\2db\0\1a\0\2\x03\xf5\1\4\2" + b"\4\5\2id\1j\x08\1\0"
"""db.a: id INT as key, j JSON."""


def partial_updates(
    chosen: random.Random, more: Callable[[random.Random], bytes] = lambda _: b""
) -> tuple[Recorded, list[tuple[int, str]]]:
    """Return a transaction of PARTIAL_UPDATE_ROWS events, and the key and document of each row after it.

    Args:
        chosen: for the documents.
        more: bytes that are appended to the diffs of a row.
    """
    like = Event(struct.pack("<IBIIIH", 1_700_000_000, 0, 1, 19, 1, 0))
    gtid = b"\0" + SID + struct.pack("<Q", 1) + b"\2" + bytes(16)
    laid = [like.holding(gtid, 33), like.holding(struct.pack("<IIBHH", 1, 0, 0, 0, 0) + b"\0BEGIN", 2)]
    expected = []
    for event in range(chosen.randint(1, 3)):
        images = b""
        for row in range(chosen.randint(1, 3)):
            key = 10 * event + row
            image, after = _update(chosen, key, more(chosen))
            images += image
            expected.append((key, text(after)))
        laid += [like.holding(_TABLE, 19), like.holding((7).to_bytes(6, "little") + b"\1\0\2\0\2\3\3" + images, 39)]
    laid.append(like.holding(bytes(8), 16))
    return Recorded("mysql", (first_rotate(), *laid), checksum=False).laid_out(), expected


def _update(chosen: random.Random, key: int, more: bytes) -> tuple[bytes, Document]:
    """Return the two images of a row, and its new document; one document in three is stored in full."""
    before = document(chosen)
    differs = chosen.random() < 0.67
    data, after = changes(chosen, before)
    number = struct.pack("<i", key)
    images = b"\0" + number + _long(encode(before, chosen))
    options = b"\1" + bytes([differs])
    return images + options + b"\0" + number + _long(data + more if differs else encode(after, chosen)), after


def _long(cell: bytes) -> bytes:
    return struct.pack("<I", len(cell)) + cell
