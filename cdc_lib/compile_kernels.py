"""Compiles the kernels at install, so that the first window does not wait for it: ``python -m cdc_lib.compile_kernels``.

numba compiles a kernel at its first call with some argument types. What every window and snapshot needs, :func:`compile_once` compiles
before the first one, in one process of a machine. Here a small stream runs through the reader, and all common
types through their codecs, from row images and result sets. Kernels for rare input (partial row images, compressed
events, multi-byte character sets) are still compiled at their first use.
"""

from __future__ import annotations

import fcntl
import gc
import logging
import os
import struct
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numba
import numpy as np
import pyarrow as pa

from cdc_lib.binlog.framing import event_types
from cdc_lib.binlog.framing.boundary_scan import BoundaryScan
from cdc_lib.binlog.kernel_folder import VARIABLE
from cdc_lib.binlog.reader import WindowReader
from cdc_lib.binlog.result_set import locate_text
from cdc_lib.binlog.rows.captured_tables import CapturedTables
from cdc_lib.binlog.rows.row_groups import WindowSinks
from cdc_lib.binlog.stream_facts import StreamFacts
from cdc_lib.binlog.types.registry import USUAL, codec_for
from cdc_lib.model.gtid import GtidSet
from cdc_lib.model.position import Position
from cdc_lib.model.schema import TableSchema
from cdc_lib.model.value_policy import ValuePolicy
from cdc_lib.model.window import Window
from cdc_lib.verify.hash_kernel import crc32_of_each, hash_of_each

_FILE = "binlog.000001"


COMMAND = "python -m cdc_lib.compile_kernels"
_log = logging.getLogger(__name__)


def are_compiled() -> bool:
    """Say whether :func:`compile_once` has nothing to do: this version of numba compiled them for this processor."""
    return _mark().is_file()


def compile_once() -> None:
    """Compile what every window and snapshot needs, unless a process of this machine has; one that does it now is waited for."""
    if not are_compiled():
        _in_turn(_warm_reader, unless=are_compiled)


def compile_all() -> None:
    """Compile every common kernel."""
    _in_turn(warm, unless=lambda: False)


def _mark() -> Path:
    return Path(os.environ[VARIABLE], f"compiled-{numba.__version__}-{llvm.get_host_cpu_name()}")


def _in_turn(work: Callable[[], None], *, unless: Callable[[], bool]) -> None:
    mark = _mark()
    with mark.with_name("compiling").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        if unless():
            return
        _log.info("compiling kernels into %s, once; `%s` does it beforehand", mark.parent, COMMAND)
        collects = gc.isenabled()
        gc.disable()  # the compiler makes a million objects and no garbage that hurts: a sixth of the time
        try:
            work()
        finally:
            if collects:
                gc.enable()
        mark.touch()


def _warm_reader() -> None:
    """Read a window of one row, and locate the cells of a result."""
    stream = _Stream()
    window = Window("warm", 1, Position(_FILE, 4), Position(_FILE, stream.offset))
    facts = StreamFacts("mysql", checksum=False, charsets={})
    WindowReader(window, stream, facts, CapturedTables(lambda *_: True), WindowSinks(stream, stream)).run()
    cells = np.zeros((1, 1), np.int32)
    locate_text(np.zeros(64, np.uint8), 0, 0, 1, cells, cells)


def warm() -> None:
    """Call every common kernel once."""
    _warm_reader()
    stop = Position(_FILE, _Stream().offset)
    for start in (datetime(2026, 1, 1, tzinfo=UTC), GtidSet("mysql", {}), Position(_FILE, 4)):
        BoundaryScan("warm", "mysql", _FILE, stop, start, checksum=False).run(_Stream())
    data = np.zeros(64, np.uint8)
    for source_type in USUAL:
        for from_text in (False, True):
            cells: Any = np.zeros(1, np.int32)
            codec = codec_for(source_type, ValuePolicy(), from_text=from_text)
            codec.append(data, cells, cells, 0)
            codec.finish()
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
    compile_all()
