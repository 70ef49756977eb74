"""TRANSACTION_PAYLOAD: a whole MySQL transaction compressed in one event (``binlog_transaction_compression``).

Body (MySQL ``libs/mysql/binlog/event/control_events.h``, Transaction_payload_event): fields of a type, a length and a value, all
as packed integers: 1 size of the payload, 2 compression (0 zstd, 255 none), 3 size when inflated; 0 ends them; then the
payload, which takes the rest. Without compression field 3 is missing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
import zstandard
from numba import njit

from cdc_lib.binlog.bytes.integers import little, u24, u32
from cdc_lib.binlog.framing.damaged_file import hint_of_damage, upgrade_or_continue
from cdc_lib.binlog.framing.event_types import TRANSACTION_PAYLOAD
from cdc_lib.binlog.framing.receiver import Bytes
from cdc_lib.binlog.framing.scan_progress import ErrorContext
from cdc_lib.errors import DecodeError, UnknownEvent

_ZSTD, _NONE = 0, 255


class _CompressedInput(Protocol):
    def readinto(self, view: memoryview) -> int:
        """Fill some of the view; 0 at the end."""
        ...


class _Plain:
    """A payload that is not compressed."""

    def __init__(self, data: Bytes) -> None:
        self._data = data
        self._at = 0

    def readinto(self, view: memoryview) -> int:
        part = self._data[self._at : self._at + len(view)]
        view[: part.shape[0]] = part.data
        self._at += part.shape[0]
        return int(part.shape[0])


class Payload:
    """Inflates the payload of one event in portions.

    Args:
        data: bytes off the wire.
        at: start of the event's body.
        end: its end.
        inflater: used for one payload at a time.
        error_context: returns the context of an error.

    Raises:
        DecodeError: it does not follow the format.
    """

    def __init__(
        self,
        data: Bytes,
        at: int,
        end: int,
        inflater: zstandard.ZstdDecompressor,
        error_context: Callable[[], ErrorContext],
    ) -> None:
        """Read the payload's header fields."""
        self._error_context = error_context
        compression, start, size = _front(data, at, end)
        if start < 0:
            raise self._broken("")
        body = data[start:end]
        self._source: _CompressedInput
        if compression == _ZSTD:
            if not _is_whole(data, start, end):
                raise self._broken(": its frames do not end where it ends")
            self._source = inflater.stream_reader(body.data, read_across_frames=True)
        elif compression == _NONE and size in (-1, end - start):
            size = end - start
            self._source = _Plain(body)
        else:
            context = error_context()
            raise UnknownEvent(
                f"a transaction with an unknown compression (type {compression})",
                hint=upgrade_or_continue(context),
                **context,
                event_type=TRANSACTION_PAYLOAD,
            )
        if size <= 0:
            raise self._broken(": it does not contain its size")
        self.left = int(size)

    def read_into(self, buffer: Bytes) -> int:
        """Fill the buffer as far as bytes remain; return how many.

        Raises:
            DecodeError: the payload is broken, or is shorter or longer than declared.
        """
        view = buffer[: self.left].data
        filled = 0
        try:
            while filled < len(view) and (got := self._source.readinto(view[filled:])):
                filled += got
            over = filled == self.left and self._source.readinto(memoryview(bytearray(1)))
        except zstandard.ZstdError as error:
            raise self._broken(f": {error}") from error
        if filled < len(view) or over:
            raise self._broken(f": it holds {'more' if over else 'less'} than it says")
        self.left -= filled
        return filled

    def _broken(self, what: str) -> DecodeError:
        message = f"the payload of a compressed transaction does not follow the format{what}"
        context = self._error_context()
        return DecodeError(message, hint=hint_of_damage(context), **context, event_type=TRANSACTION_PAYLOAD)


@njit(cache=True, nogil=True)
def _packed(b, p, end):
    """Return a packed integer and the byte after it; the index is -1 when it leaves the event, or has more than 8 bytes."""
    if p >= end:
        return np.int64(0), np.int64(-1)
    first = np.int64(b[p])
    if first < 251:
        return first, p + 1
    width = 2 if first == 252 else 3 if first == 253 else 8
    if first == 251 or first == 255 or p + 1 + width > end:
        return np.int64(0), np.int64(-1)
    return little(b, p + 1, width), p + 1 + width


@njit(cache=True, nogil=True)
def _front(b, p, end):
    """Return compression, start of the payload (-1 if malformed) and inflated size (-1 if absent)."""
    wrong = (np.int64(-1), np.int64(-1), np.int64(-1))
    compression, size, inflated = np.int64(-1), np.int64(-1), np.int64(-1)
    while True:
        field, p = _packed(b, p, end)
        if p < 0:
            return wrong
        if field == 0:
            break
        length, p = _packed(b, p, end)
        if p < 0 or length < 0 or length > end - p:
            return wrong
        value, value_end = _packed(b, p, p + length)
        if field <= 3 and value_end != p + length:
            return wrong
        if field == 1:
            size = value
        elif field == 2:
            compression = value
        elif field == 3:
            inflated = value
        p += length
    if compression < 0 or size != end - p:
        return wrong
    return compression, p, inflated


@njit(cache=True, nogil=True)
def _is_whole(b, p, end):
    """Whether ``b[p:end]`` is zstd frames to the last byte: the inflater ignores bytes after the last frame.

    Frame (RFC 8878): magic 4; a descriptor, whose bits give the sizes of window, dictionary id and content size after it;
    blocks of 3 bytes (bit 0 last, bits 1-2 type, the rest size) and content; a checksum of 4 bytes if the descriptor says so.
    """
    while p < end:
        if p + 5 > end or u32(b, p) != 0xFD2FB528:
            return False
        descriptor = np.int64(b[p + 4])
        single = (descriptor >> 5) & 1
        content = descriptor >> 6
        p += 5 + (1 - single) + (0, 1, 2, 4)[descriptor & 3]
        p += single if content == 0 else 1 << content
        last = False
        while not last:
            if p + 3 > end:
                return False
            block = u24(b, p)
            last = block & 1 == 1
            p += 3 + (1 if (block >> 1) & 3 == 1 else block >> 3)
        p += 4 * ((descriptor >> 2) & 1)
    return p == end
