"""Receives on a separate thread, so that the network, the kernels and the Parquet encoder work in parallel."""

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
"""Free bytes before the received ones, for the tail of the previous buffer."""


class Receiver:
    """Fills buffers from a stream until the stream ends or the receiver is closed.

    Args:
        stream: source of the bytes.
        size: bytes of one buffer; it is passed on when it is half full or the server has no more at the moment.
        depth: number of buffers; bounds the memory.
        ends: whether the server closes the connection at the end. If not, the last byte is not known before it is decoded:
            received bytes are passed on before waiting for more.
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
        except BaseException as error:  # noqa: BLE001 - passed to the reading thread, which raises it
            self._full.put(error)

    def _fill(self, buffer: Bytes) -> int:
        """Receive until the buffer is half full or the server pauses; returns its end."""
        view = buffer.data
        end = HEADROOM
        while not self._stopping:
            got = self._stream.read_into(view[end:])
            end += got
            # After a short read the server has no more at the moment: pass on what is here.
            if not self._ends or got < 16 * 1024 or end - HEADROOM >= self._size // 2:
                break
        return end

    def buffers(self) -> Iterator[tuple[Bytes, int]]:
        """Yield (buffer, end) with the bytes from HEADROOM to the end; return each with :meth:`release`.

        Raises:
            SourceUnavailable: as the stream does.
        """
        while (item := self._full.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item

    def release(self, buffer: Bytes) -> None:
        """Return a buffer for reuse."""
        self._free.put(buffer)

    def __enter__(self) -> Self:
        """Receive while the block runs."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop; the owner of the stream closes it, which ends a waiting read."""
        self._stopping = True
        self._free.put(None)


def extended(rest: Bytes, more: Bytes, needed: int) -> Bytes:
    """Return both parts joined, in an allocation of at least the needed size."""
    size = rest.shape[0] + more.shape[0]
    base = rest.base if isinstance(rest.base, np.ndarray) else None
    if base is not None and base.shape[0] >= size:
        base[rest.shape[0] : size] = more
        return base[:size]
    whole = np.empty(max(size, needed + (8 << 20)), np.uint8)
    whole[: rest.shape[0]] = rest
    whole[rest.shape[0] : size] = more
    return whole[:size]
