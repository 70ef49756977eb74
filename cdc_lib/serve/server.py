"""Runs an application until it is interrupted, with clients that cannot keep it from others."""

from __future__ import annotations

import asyncio
import time
from typing import cast

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

MOST_CONNECTIONS = 256
"""Connections at a time."""

PATIENCE = 10
"""Seconds between two looks at a connection: one that has no whole request at two of them is closed."""


class _HttpConnection(H11Protocol):
    """A connection whose client has to send its requests; h11, unlike other parsers, bounds their headers (64 KiB)."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as in the class above
        """Take it; where there are too many, the one that has waited longest for a request makes room."""
        super().connection_made(transport)
        self.began = time.monotonic()
        if len(self.connections) > MOST_CONNECTIONS:
            others = cast("set[_HttpConnection]", self.connections)
            min((one for one in others if not one.is_answered), key=lambda one: one.began).transport.abort()
        self._look_later()

    @property
    def is_answered(self) -> bool:
        """Whether there is a whole request, which the application answers."""
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is not None and not cycle.response_complete and not cycle.more_body

    def _look_later(self) -> None:
        self.loop.call_later(PATIENCE, self._look, self.cycle)

    def _look(self, before: object) -> None:
        if not self.is_answered and self.cycle is before:
            self.transport.abort()
        if not self.transport.is_closing():
            self._look_later()


def run(app: FastAPI, host: str, port: int) -> None:
    """Listen and answer until SIGINT or SIGTERM.

    Args:
        app: the application.
        host: address to listen at.
        port: TCP port.
    """
    uvicorn.run(
        app,
        host=host,
        port=port,
        http=_HttpConnection,
        ws="none",
        log_level="warning",
        server_header=False,
        timeout_graceful_shutdown=1,
    )
