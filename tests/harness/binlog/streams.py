"""Binlog streams made by hand, and the reader over them."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import zstandard

from cdc_lib.binlog.framing.scan_progress import WindowSummary
from cdc_lib.binlog.reader import WindowReader
from cdc_lib.binlog.rows.captured_tables import CapturedTables
from cdc_lib.binlog.rows.rolled_back import RolledBackRows
from cdc_lib.binlog.rows.row_groups import ReadOptions, WindowSinks
from cdc_lib.binlog.stream_facts import StreamFacts
from cdc_lib.model.position import Position
from cdc_lib.model.schema import TableSchema
from cdc_lib.model.server_identity import Flavor
from cdc_lib.model.window import Window

SID = bytes(range(16))
FILE = "binlog.000001"


class Binlog:
    """Builds the bytes that a server would send, from offset 4 of a file on.

    Args:
        checksum: whether events end in a CRC32.
        bare: events follow each other without packets, as in a compressed transaction.
    """

    def __init__(self, *, checksum: bool = True, bare: bool = False) -> None:
        self.wire = bytearray()
        self.offset = 4
        self.checksum = checksum and not bare
        self.bare = bare
        self.starts: list[int] = []

    def event(self, kind: int, body: bytes, *, flags: int = 0, crc: int | None = None, length: int = 0) -> Binlog:
        size = 19 + len(body) + 4 * self.checksum
        header = struct.pack("<IBIIIH", 1_700_000_000, kind, 1, length or size, self.offset + size, flags)
        whole = header + body
        if self.checksum:
            whole += struct.pack("<I", zlib.crc32(whole) if crc is None else crc)
        self.starts.append(self.offset)
        self.offset += size
        if self.bare:
            self.wire += whole
            return self
        return self.packet(b"\0" + whole)

    def packet(self, payload: bytes) -> Binlog:
        while True:
            chunk, payload = payload[:0xFFFFFF], payload[0xFFFFFF:]
            self.wire += struct.pack("<I", len(chunk))[:3] + b"\0" + chunk
            if len(chunk) < 0xFFFFFF:
                return self

    def gtid(self, number: int) -> Binlog:
        body = b"\0" + SID + struct.pack("<Q", number) + b"\2" + bytes(16)
        return self.event(33, body + (1_700_000_000_000_000 + number).to_bytes(7, "little"))

    def tagged(self, number: int, tag: bytes) -> Binlog:
        fields = [integer(0), integer(0), integer(1), *map(integer, SID), integer(2), integer(2 * number)]
        fields += [integer(3), integer(len(tag)), tag, integer(6), integer(1_700_000_000_000_000 + number)]
        return self.event(42, message(b"".join(fields)))

    def query(self, text: bytes) -> Binlog:
        return self.event(2, struct.pack("<IIBHH", 1, 0, 2, 0, 0) + b"db\0" + text)

    def payload(self, inner: bytes, *, compress: bool = True, size: int | None = None) -> Binlog:
        """Add a compressed transaction; ``size`` replaces its uncompressed length."""
        packed = zstandard.compress(inner) if compress else inner
        inflated = packed_integer(len(inner) if size is None else size)
        front = b"\2\1\0" + b"\3" + bytes([len(inflated)]) + inflated if compress else b"\2\3\xfc\xff\0"
        size_field = packed_integer(len(packed))
        return self.event(40, front + b"\1" + bytes([len(size_field)]) + size_field + b"\0" + packed)

    def table_map(self, table_id: int = 7) -> Binlog:
        names = b"\2id\1v"
        body = table_id.to_bytes(6, "little") + b"\1\0" + b"\2db\0" + b"\1a\0" + b"\2" + b"\x03\xfc" + b"\1\2" + b"\2"
        body += b"\1\1\0" + b"\2\1\x3f" + bytes([4, len(names)]) + names + b"\x08\1\0"
        return self.event(19, body)

    def insert(self, *rows: tuple[int, bytes], table_id: int = 7) -> Binlog:
        images = b"".join(b"\0" + struct.pack("<IH", key, len(value)) + value for key, value in rows)
        return self.event(30, table_id.to_bytes(6, "little") + b"\1\0" + b"\2\0" + b"\2" + b"\3" + images)

    def mariadb_gtid(self, number: int, flags: int = 8, more: bytes = b"") -> Binlog:
        return self.event(162, struct.pack("<QIB", number, 0, flags) + more.ljust(6, b"\0"))

    def deflated_insert(self, *rows: tuple[int, bytes], size: int | None = None, more: bytes = b"") -> Binlog:
        """Add the compressed rows of MariaDB; ``size`` replaces their uncompressed length, ``more`` is appended."""
        images = b"".join(b"\0" + struct.pack("<IH", key, len(value)) + value for key, value in rows)
        front = (7).to_bytes(6, "little") + b"\1\0" + b"\2" + b"\3"
        return self.event(166, front + deflated(images, size) + more)

    def deflated_query(self, text: bytes, *, size: int | None = None) -> Binlog:
        return self.event(165, struct.pack("<IIBHH", 1, 0, 2, 0, 0) + b"db\0" + deflated(text, size))

    def load_data(self, text: bytes) -> Binlog:
        return self.event(18, struct.pack("<IIBHHIIIB", 1, 0, 2, 0, 0, 1, 9, 20, 0) + b"db\0" + text)

    def xid(self) -> Binlog:
        return self.event(16, bytes(8))

    def transaction(self, number: int, *rows: tuple[int, bytes]) -> Binlog:
        return self.gtid(number).query(b"BEGIN").table_map().insert(*rows).xid()


class Wire:
    """A stream that returns its bytes in portions and then ends."""

    def __init__(self, data: bytes, portion: int = 1 << 20) -> None:
        self._data = data
        self._at = 0
        self._portion = portion

    def read_into(self, view: memoryview) -> int:
        chunk = self._data[self._at : self._at + min(self._portion, len(view))]
        view[: len(chunk)] = chunk
        self._at += len(chunk)
        return len(chunk)


class Rows:
    """A sink that collects its rows."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.groups: list[int] = []

    def write(self, _key: str, _schema: TableSchema, rows: pa.Table, _renames: int = 0) -> None:
        self.rows.extend(rows.to_pylist())
        self.groups.append(rows.num_rows)


def read(
    binlog: Binlog,
    *,
    stop: int | None = None,
    portion: int = 1 << 20,
    data: bytes | None = None,
    flavor: Flavor = "mysql",
    captured: Callable[[str, str], bool] = lambda *_: True,
    options: ReadOptions | None = None,
    group: list[int] | None = None,
    rolled_back: RolledBackRows | None = None,
) -> tuple[list[dict[str, Any]], WindowSummary]:
    """Read a whole stream; returns rows and summary. The size of each row group is appended to ``group``."""
    window = Window("shop", 1, Position(FILE, 4), Position(FILE, stop or binlog.offset))
    sink = Rows()
    wire = Wire(bytes(binlog.wire) if data is None else data, portion)
    facts = StreamFacts(flavor, binlog.checksum, {63: "binary", 255: "utf8mb4"})
    summary = WindowReader(
        window, wire, facts, CapturedTables(captured), WindowSinks(sink, sink), options, rolled_back
    ).run()
    if group is not None:
        group.extend(sink.groups)
    return sink.rows, summary


def body(*rows: tuple[int, bytes], end: bool = True) -> Binlog:
    """Return the events of a transaction after its GTID, as they are in a payload."""
    binlog = Binlog(bare=True).query(b"BEGIN").table_map().insert(*rows)
    return binlog.xid() if end else binlog


def integer(value: int) -> bytes:
    """Return an unsigned integer of MySQL's serialization library."""
    more = max(0, -(-value.bit_length() // 7) - 1)
    if more >= 8:
        return b"\xff" + value.to_bytes(8, "little")
    return (value << (more + 1) | ((1 << more) - 1)).to_bytes(more + 1, "little")


def message(fields: bytes, must_know: int = 0) -> bytes:
    """Return a message of MySQL's serialization library with its header, whose size includes itself."""
    for size in range(len(fields), len(fields) + 16):
        whole = integer(1) + integer(size) + integer(must_know) + fields
        if len(whole) == size:
            return whole
    raise AssertionError


def packed_integer(value: int) -> bytes:
    """Return a length-encoded integer of the protocol."""
    if value < 251:
        return bytes([value])
    width = 2 if value < 1 << 16 else 3 if value < 1 << 24 else 8
    return bytes([{2: 252, 3: 253, 8: 254}[width]]) + value.to_bytes(width, "little")


def deflated(data: bytes, size: int | None = None) -> bytes:
    """Return bytes as MariaDB compresses them, with four bytes of length."""
    return b"\x84" + (len(data) if size is None else size).to_bytes(4, "big") + zlib.compress(data)
