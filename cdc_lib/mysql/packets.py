"""The packets of MySQL's protocol in a stream of bytes."""

from __future__ import annotations

from collections.abc import Iterator

from cdc_lib.ports import BinlogStream

_LONGEST = 0xFFFFFF
"""Length of a packet that the next one continues."""
_BUFFER = 1 << 20


def payloads(stream: BinlogStream) -> Iterator[bytes]:
    """Yield what each packet holds; parts of a long one are joined. A packet that the end of the stream has cut is left out.

    Args:
        stream: the server's bytes.

    Raises:
        SourceError: the connection broke.
        CorruptBatch: the stream is an archive, and damaged.
    """
    incoming = _Incoming(stream)
    payload = bytearray()
    while len(header := incoming.take(4)) == 4:
        length = int.from_bytes(header[:3], "little")
        part = incoming.take(length)
        if len(part) < length:
            return
        payload += part
        if length < _LONGEST:
            yield bytes(payload)
            payload.clear()


class _Incoming:
    def __init__(self, stream: BinlogStream) -> None:
        self._stream = stream
        self._buffer = memoryview(bytearray(_BUFFER))
        self._at = self._end = 0

    def take(self, count: int) -> bytes:
        """Return the next bytes; fewer at the end of the stream."""
        taken = bytearray()
        while len(taken) < count:
            if self._at == self._end:
                self._at, self._end = 0, self._stream.read_into(self._buffer)
                if not self._end:
                    break
            more = min(count - len(taken), self._end - self._at)
            taken += self._buffer[self._at : self._at + more]
            self._at += more
        return bytes(taken)
