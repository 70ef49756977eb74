"""CPU seconds of a drain by stage: wraps the functions of each stage and reads the clock of the calling thread."""

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


def staged_functions() -> list[tuple[Any, str, str, str | None]]:
    """Return the measured functions: module or class, name, stage, and the enclosing stage."""
    from cdc_lib.binlog import reader
    from cdc_lib.binlog.framing import packets
    from cdc_lib.binlog.framing.receiver import Receiver
    from cdc_lib.binlog.framing.transaction_payload import Payload
    from cdc_lib.binlog.rows import locate
    from cdc_lib.binlog.rows.columns import TableColumns
    from cdc_lib.store.hashed import HashedFile
    from cdc_lib.store.parquet import BatchWriter

    return [
        (Receiver, "_run", RECEIVE, None),
        (packets, "scan", FRAME, None),
        (reader, "scan_uncompressed", FRAME, None),
        (Payload, "read_into", FRAME, None),
        (locate, "locate", LOCATE, None),
        (TableColumns, "append", COLUMNS, None),
        (TableColumns, "finish", COLUMNS, None),
        (BatchWriter, "_encode", ENCODE, None),
        (HashedFile, "write", WRITE, ENCODE),
    ]


class Stages:
    """Counts the CPU seconds of each stage, without those of stages inside it."""

    def __init__(self) -> None:
        """Wrap the functions of the drain in this process."""
        self.seconds: defaultdict[str, float] = defaultdict(float)
        for where, name, stage, around in staged_functions():
            self._wrap(where, name, stage, around)

    def clear(self) -> None:
        """Reset the counts."""
        self.seconds.clear()

    def _wrap(self, where: Any, name: str, stage: str, around: str | None) -> None:
        inner: Callable[..., Any] = getattr(where, name)

        def counted(*arguments: Any, **named: Any) -> Any:
            began = time.thread_time()
            try:
                return inner(*arguments, **named)
            finally:
                took = time.thread_time() - began
                self.seconds[stage] += took
                if around is not None:
                    self.seconds[around] -= took

        setattr(where, name, counted)
