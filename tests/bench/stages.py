"""Where the CPU seconds of a drain go: the functions of each stage wrapped, and the clock of the thread that calls them read."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

RECEIVE, FRAME, LOCATE, COLUMNS, ENCODE, WRITE, REST = (
    "receive", "frame", "locate", "columns", "encode", "write", "rest",
)  # fmt: skip
STAGES = {
    RECEIVE: "from the socket into the buffer",
    FRAME: "packets, checksums, events; inflating a compressed transaction",
    LOCATE: "where each cell of a row image lies",
    COLUMNS: "cells into Arrow columns: decoding, character sets, copying",
    ENCODE: "Parquet: dictionaries, zstd",
    WRITE: "sha256 and the file",
    REST: "connections, the server's facts, the manifest, Python in between",
}


class Stages:
    """Counts the CPU seconds of each stage; a stage inside another is taken off it."""

    def __init__(self) -> None:
        """Wrap the functions of the drain in this process."""
        from cdc_lib.decode import frame, reader, rows
        from cdc_lib.decode.columns import TableColumns
        from cdc_lib.decode.payload import Payload
        from cdc_lib.decode.receive import Receiver
        from cdc_lib.store import parquet

        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._wrap(Receiver, "_run", RECEIVE)
        self._wrap(frame, "scan", FRAME)
        self._wrap(reader, "scan_bare", FRAME)
        self._wrap(Payload, "read_into", FRAME)
        self._wrap(rows, "locate", LOCATE)
        self._wrap(TableColumns, "append", COLUMNS)
        self._wrap(TableColumns, "finish", COLUMNS)
        self._wrap(parquet.BatchWriter, "_encode", ENCODE)
        self._wrap(parquet._Hashed, "write", WRITE, inside=ENCODE)

    def clear(self) -> None:
        """Forget what was counted."""
        self.seconds.clear()

    def _wrap(self, where: Any, name: str, stage: str, inside: str | None = None) -> None:
        inner: Callable[..., Any] = getattr(where, name)

        def counted(*arguments: Any, **named: Any) -> Any:
            began = time.thread_time()
            try:
                return inner(*arguments, **named)
            finally:
                took = time.thread_time() - began
                self.seconds[stage] += took
                if inside is not None:
                    self.seconds[inside] -= took

        setattr(where, name, counted)
