"""Receiving on a thread of its own, so that the wire, the kernels and the Parquet encoder work at the same time."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from types import TracebackType
from typing import Self

import numpy as np
import numpy.typing as npt

from cdc_lib.ports import BinlogStream

Bytes = npt.NDArray[np.uint8]

HEADROOM = 1 << 20
"""Free bytes before what is received, into which the tail of the buffer before is copied."""


class Receiver:
    """Fills buffers from a stream until it ends or somebody stops it.

    Args:
        stream: where the bytes come from.
        size: bytes of one buffer; as many are received before it is handed on, or as the server has at hand.
        depth: buffers in all; bounds the memory.
        ends: whether the server closes the connection after what it sends. Where it does not, nobody knows which byte is
            the last one before it is read: what came is handed on before more is waited for.
    """

    def __init__(self, stream: BinlogStream, size: int = 8 << 20, depth: int = 3, *, ends: bool = True) -> None:
        """Start receiving."""
        self._ends = ends
        self._stream = stream
        self._size = size
        self._full: queue.Queue[tuple[Bytes, int] | BaseException | None] = queue.Queue()
        self._free: queue.Queue[Bytes | None] = queue.Queue()
        for _ in range(depth):
            self._free.put(np.empty(HEADROOM + size, np.uint8))
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="binlog-receiver", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            while (buffer := self._free.get()) is not None:
                filled = self._fill(buffer)
                if filled > HEADROOM:
                    self._full.put((buffer, filled))
                if filled < 0 or self._stopping:
                    break
                if filled == HEADROOM:
                    self._full.put(None)
                    break
        except BaseException as error:  # noqa: BLE001 - handed to the thread that reads, which raises it
            self._full.put(error)

    def _fill(self, buffer: Bytes) -> int:
        """Receive until the buffer is half full or the server pauses; returns its end."""
        view = buffer.data
        end = HEADROOM
        while not self._stopping:
            got = self._stream.read_into(view[end:])
            end += got
            # A short read says that the server has no more at hand: what is here is handed on.
            if not self._ends or got < 16 * 1024 or end - HEADROOM >= self._size // 2:
                break
        return end

    def buffers(self) -> Iterator[tuple[Bytes, int]]:
        """Yield (buffer, end) with the bytes from HEADROOM to the end; give each back with :meth:`release`.

        Raises:
            SourceUnavailable: as the stream does.
        """
        while (item := self._full.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item

    def release(self, buffer: Bytes) -> None:
        """Give a buffer back to be filled again."""
        self._free.put(buffer)

    def __enter__(self) -> Self:
        """Receive while the block runs."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop; the owner of the stream closes it, which ends a read that still waits."""
        self._stopping = True
        self._free.put(None)


def extended(rest: Bytes, more: Bytes, needed: int) -> Bytes:
    """Return both pieces after each other, in an allocation large enough for all that is needed."""
    size = rest.shape[0] + more.shape[0]
    base = rest.base if isinstance(rest.base, np.ndarray) else None
    if base is not None and base.shape[0] >= size:
        base[rest.shape[0] : size] = more
        return base[:size]
    whole = np.empty(max(size, needed + (8 << 20)), np.uint8)
    whole[: rest.shape[0]] = rest
    whole[rest.shape[0] : size] = more
    return whole[:size]
