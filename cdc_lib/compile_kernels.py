"""Compiles the kernels at install, so that the first window does not wait for it: ``python -m cdc_lib.compile_kernels``.

numba compiles a kernel at its first call with some argument types. Here a small stream runs through the reader, and all common
types through their codecs, from row images and result sets. Kernels for rare input (partial row images, compressed
events, multi-byte character sets) are still compiled at their first use.
"""

from __future__ import annotations

import struct
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from cdc_lib.binlog.bytes.crc32 import TABLES, crc32
from cdc_lib.binlog.framing import event_types
from cdc_lib.binlog.framing.boundary_scan import BoundaryScan
from cdc_lib.binlog.reader import WindowReader
from cdc_lib.binlog.result_set import locate_text
from cdc_lib.binlog.rows.captured_tables import CapturedTables
from cdc_lib.binlog.rows.row_groups import WindowSinks
from cdc_lib.binlog.stream_facts import StreamFacts
from cdc_lib.binlog.types.registry import codec_for
from cdc_lib.model.gtid import GtidSet
from cdc_lib.model.position import Position
from cdc_lib.model.schema import SourceType, TableSchema
from cdc_lib.model.value_policy import ValuePolicy
from cdc_lib.model.window import Window
from cdc_lib.verify.changed.hash_kernel import crc32_of_each, hash_of_each

TYPES = (
    SourceType("int", width=4),
    SourceType("int", width=8),
    SourceType("int", width=2, unsigned=True),
    SourceType("int", width=4, unsigned=True),
    SourceType("int", width=8, unsigned=True),
    SourceType("bit", width=1),
    SourceType("bit", width=64),
    SourceType("year"),
    SourceType("float"),
    SourceType("double"),
    SourceType("decimal", precision=10, scale=2),
    SourceType("decimal", precision=65, scale=30),
    SourceType("date"),
    SourceType("datetime", scale=6),
    SourceType("timestamp"),
    SourceType("time"),
    SourceType("enum", charset="utf8mb4", members=("a",)),
    SourceType("set", charset="utf8mb4", members=("a",)),
    SourceType("json"),
    SourceType("string", width=100, charset="utf8mb4"),
    SourceType("string", width=100, charset="latin1"),
    SourceType("bytes", width=100, charset="binary"),
)
"""Common column types."""

_FILE = "binlog.000001"


def warm() -> None:
    """Call every common kernel once."""
    stream = _Stream()
    window = Window("warm", 1, Position(_FILE, 4), Position(_FILE, stream.offset))
    facts = StreamFacts("mysql", checksum=False, charsets={})
    WindowReader(window, stream, facts, CapturedTables(lambda *_: True), WindowSinks(stream, stream)).run()
    for start in (datetime(2026, 1, 1, tzinfo=UTC), GtidSet("mysql", {}), window.start):
        again = _Stream()
        scan = BoundaryScan("warm", "mysql", _FILE, window.stop, start, checksum=False)
        scan.run(again)
    data = np.zeros(64, np.uint8)
    for source_type in TYPES:
        for from_text, width in ((False, np.int32), (True, np.int64)):
            cells: Any = np.zeros(1, width)
            codec = codec_for(source_type, ValuePolicy(), from_text=from_text)
            codec.append(data, cells, cells, 0)
            codec.finish()
    cells = np.zeros((1, 1), np.int64)
    locate_text(data, 0, 0, 1, cells, cells)
    crc32(np.frombuffer(bytes(64), np.uint8), 0, 64, TABLES)  # with read-only bytes, as for a file's first event
    for kernel in (crc32_of_each, hash_of_each):
        kernel(pa.array(["a row's text"]))


class _Stream:
    """A transaction that inserts one row, and its sink."""

    def __init__(self) -> None:
        self.offset = 4
        self._wire = b""
        table = (7).to_bytes(6, "little") + b"\1\0"
        query = struct.pack("<IIBHH", 1, 0, 1, 0, 0) + b"d\0BEGIN"
        names = b"\2id"
        columns = b"\1d\0\1t\0" + b"\1\3\0" + b"\0" + b"\1\1\0" + bytes([4, len(names)]) + names + b"\x08\1\0"
        self._event(event_types.GTID, b"\0" + bytes(16) + struct.pack("<Q", 1) + b"\2" + bytes(16) + bytes(7))
        self._event(event_types.QUERY, query)
        self._event(event_types.TABLE_MAP, table + columns)
        self._event(event_types.WRITE_ROWS, table + b"\2\0" + b"\1\1" + b"\0" + struct.pack("<I", 1))
        self._event(event_types.XID, bytes(8))

    def _event(self, kind: int, body: bytes) -> None:
        size = 19 + len(body)
        self.offset += size
        header = struct.pack("<IBIIIH", 1, kind, 1, size, self.offset, 0)
        self._wire += struct.pack("<I", size + 1)[:3] + b"\0\0" + header + body

    def read_into(self, view: memoryview) -> int:
        """Return all bytes at once."""
        size = len(self._wire)
        view[:size] = self._wire
        self._wire = b""
        return size

    def write(self, key: str, schema: TableSchema, rows: pa.Table, renames: int = 0) -> None:
        """Check that the row was decoded."""
        if rows.num_rows != 1:
            raise AssertionError((key, schema, rows, renames))


if __name__ == "__main__":
    warm()
