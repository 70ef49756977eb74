"""Copies bytes between a session's socket and its channel of an SSH connection, with back pressure both ways.

The driver and the reader of the binlog need a real socket: one end of a pair is theirs, the other end is here. No port is
opened on this machine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from asyncssh import SSHTCPChannel, SSHTCPSession

_BUFFERED = 4 * 1024 * 1024
"""Bytes that may wait for the session; then the channel is not read."""


class LocalEnd(asyncio.Protocol):
    """The end of the pair that this loop reads and writes."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.channel: SSHTCPChannel[bytes] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Set how much may wait here."""
        assert isinstance(transport, asyncio.Transport)
        transport.set_write_buffer_limits(high=_BUFFERED)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        """Send what the session wrote."""
        if self.channel is not None:
            self.channel.write(data)

    def pause_writing(self) -> None:
        """Stop reading the channel: the session reads slower than the server sends."""
        if self.channel is not None:
            self.channel.pause_reading()

    def resume_writing(self) -> None:
        """Read the channel again."""
        if self.channel is not None:
            self.channel.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the protocol's name
        """Close the channel: the session has closed its socket."""
        if self.channel is not None:
            self.channel.close()


class RemoteEnd(SSHTCPSession[bytes]):
    """The channel to the server.

    Args:
        local: the other side.
        broke: called with the reason when the SSH connection broke.
        ended: called at the end in any case.
    """

    def __init__(self, local: LocalEnd, broke: Callable[[Exception], None], ended: Callable[[], None]) -> None:
        self._local = local
        self._broke = broke
        self._ended = ended

    def connection_made(self, chan: SSHTCPChannel[bytes]) -> None:
        """Join both sides."""
        self._local.channel = chan

    def data_received(self, data: bytes, datatype: Any) -> None:  # noqa: ARG002 - the session's signature
        """Pass on what the server sent."""
        if self._local.transport is not None:
            self._local.transport.write(data)

    def eof_received(self) -> bool:
        """Pass on the end of what the server sends: it ends a dump by closing the connection."""
        transport = self._local.transport
        if transport is not None and not transport.is_closing():
            transport.write_eof()
        return False

    def pause_writing(self) -> None:
        """Stop reading the session: the channel's window is full."""
        if self._local.transport is not None and not self._local.transport.is_closing():
            self._local.transport.pause_reading()

    def resume_writing(self) -> None:
        """Read the session again."""
        if self._local.transport is not None and not self._local.transport.is_closing():
            self._local.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the session's socket once it has read the bytes that arrived; the reason is noted first."""
        if exc is not None:
            self._broke(exc)
        self._ended()
        if self._local.transport is not None:
            self._local.transport.close()
