"""Binlogs of old servers, built from the documented format without code of the decoder.

Sources: MySQL internals manual, "Binary Log Event" pages, and MySQL's ``rows_event.h`` and ``control_events.h``. Every stream
holds the table ``db.a (id INT PRIMARY KEY, v VARCHAR(20))`` unless its docstring names another.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, field
from typing import Self

FILE = "mysql-bin.000001"
TIME = 1_300_000_000
POST_HEADERS_5_5 = bytes.fromhex("380d0008001200040404041200005400041a080000000808080200")
"""Of the 27 event types of 5.5, as its servers write them: the last are those of row events, INCIDENT and HEARTBEAT."""


@dataclass
class OldBinlog:
    """Packets of a stream from offset 4 of a file on.

    Args:
        checksum: events end in a CRC32; servers before 5.6 have none.
    """

    checksum: bool
    wire: bytearray = field(default_factory=bytearray)
    offset: int = 4

    def event(self, kind: int, body: bytes) -> Self:
        size = 19 + len(body) + 4 * self.checksum
        self.offset += size
        whole = struct.pack("<IBIIIH", TIME, kind, 1, size, self.offset, 0) + body
        if self.checksum:
            whole += struct.pack("<I", zlib.crc32(whole))
        self.wire += (1 + len(whole)).to_bytes(3, "little") + b"\0\0" + whole
        return self

    def format_description(self, version: str) -> Self:
        """Version of the binlog 2, of the server 50, start of it 4, header length 1, a post-header length for each event type.

        5.5 ends there, with the lengths of its last types; since 5.6.1 the checksum algorithm comes after them.
        """
        lengths = POST_HEADERS_5_5 if not self.checksum else POST_HEADERS_5_5 + bytes([0, 2, 2, 10, 10, 10, 25, 25])
        body = struct.pack("<H50sIB", 4, version.encode(), TIME, 19) + lengths
        if self.checksum:
            body += b"\1"
        return self.event(15, body)

    def begin(self) -> Self:
        return self.event(2, struct.pack("<IIBHH", 1, 0, 2, 0, 0) + b"db\0BEGIN")

    def anonymous_gtid(self) -> Self:
        """As 5.7 writes it: flags 1, uuid 16, number 8, then one byte 2 and the two numbers of the logical clock."""
        return self.event(34, b"\1" + bytes(16) + bytes(8) + b"\2" + struct.pack("<QQ", 0, 1))

    def table_map(self, optional: bytes = b"") -> Self:
        """Table id 6, flags 2, names, 2 columns (INT, VARCHAR of 20 bytes), no nullable one; 5.7 ends there."""
        body = (42).to_bytes(6, "little") + b"\1\0" + b"\2db\0" + b"\1a\0" + b"\2\x03\x0f" + b"\2\x14\0" + b"\2"
        return self.event(19, body + optional)

    def rows_v1(self, kind: int, *images: bytes) -> Self:
        """WRITE 23, UPDATE 24, DELETE 25 of 5.1 to 5.5: no block of extra data after the flags."""
        bitmaps = b"\3\3" if kind == 24 else b"\3"
        return self.event(kind, (42).to_bytes(6, "little") + b"\1\0" + b"\2" + bitmaps + b"".join(images))

    def rows_v2(self, kind: int, *images: bytes, extra: bytes = b"") -> Self:
        """WRITE 30, UPDATE 31, DELETE 32: two bytes of length, which count themselves, and extra data."""
        bitmaps = b"\3\3" if kind == 31 else b"\3"
        block = struct.pack("<H", 2 + len(extra)) + extra
        return self.event(kind, (42).to_bytes(6, "little") + b"\1\0" + block + b"\2" + bitmaps + b"".join(images))

    def xid(self) -> Self:
        return self.event(16, bytes(8))


def row(number: int, text: bytes | None) -> bytes:
    """A row image: NULL bits, INT, VARCHAR."""
    if text is None:
        return b"\2" + struct.pack("<i", number)
    return b"\0" + struct.pack("<iB", number, len(text)) + text


FULL_METADATA = b"\1\1\0" + b"\2\1\x2d" + b"\4\5\2id\1v" + b"\x08\1\0"
"""Signs, character set (45, utf8mb4), names and key, which the reader needs; no server writes them with v1 rows."""


def v1_rows_without_checksums(*, metadata: bytes = FULL_METADATA) -> OldBinlog:
    """Row events of version 1 as 5.5 writes them: an insert of two rows, an update of one and of its key, a delete."""
    binlog = OldBinlog(checksum=False).format_description("5.5.27-log")
    binlog.begin().table_map(metadata).rows_v1(23, row(1, b"x"), row(-2, None)).xid()
    binlog.begin().table_map(metadata).rows_v1(24, row(1, b"x"), row(1, b"y"), row(-2, None), row(3, b"z")).xid()
    return binlog.begin().table_map(metadata).rows_v1(25, row(3, b"z")).xid()


def anonymous_transactions_of_5_7(*, metadata: bytes = FULL_METADATA) -> OldBinlog:
    """ANONYMOUS_GTID without commit times, rows of version 2 with extra data, checksums."""
    binlog = OldBinlog(checksum=True).format_description("5.7.44-log")
    binlog.anonymous_gtid().begin().table_map(metadata).rows_v2(30, row(1, b"x"), extra=b"\0\3abc").xid()
    return binlog.anonymous_gtid().begin().table_map(metadata).rows_v2(32, row(1, b"x")).xid()
