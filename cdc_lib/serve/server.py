"""Runs an application until it is interrupted, with clients that cannot keep it from others."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from contextlib import suppress
from pathlib import Path
from typing import cast

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from cdc_lib.errors import ConfigError

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
            # One that is closing has made room for another: many may come before the loop removes it.
            min(
                (one for one in others if not (one.is_answered or one.transport.is_closing())),
                key=lambda one: one.began,
            ).transport.abort()
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


def listener(host: str, port: int, path: Path | None) -> socket.socket:
    """Return a socket at an address that nobody else uses.

    Args:
        host: address of this machine.
        port: TCP port.
        path: of a socket that only this user can open, instead of both; one that nobody listens at is replaced.

    Raises:
        ConfigError: the address cannot be used.
    """
    made = socket.socket(socket.AF_UNIX if path else socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        if path is None:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.bind((host, port))
        else:
            _bind(made, path)
    except OSError as error:
        made.close()
        raise ConfigError(
            f"the server cannot listen at {path or f'{host}:{port}'}: {error.strerror or error}",
            hint="Choose another address, or end the program that listens there.",
        ) from error
    return made


def _bind(made: socket.socket, path: Path) -> None:
    if path.is_socket():
        try:
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
    before = os.umask(0o177)
    try:
        made.bind(str(path.absolute()))
    finally:
        os.umask(before)
    made.listen()  # at once: a second server would take the file for one that nobody listens at


def address(of: socket.socket) -> str:
    """Return what clients name to reach a socket."""
    name = of.getsockname()
    if of.family == socket.AF_UNIX:
        return f"unix://{name}"
    return f"http://[{name[0]}]:{name[1]}" if ":" in name[0] else f"http://{name[0]}:{name[1]}"


def run(app: FastAPI, at: socket.socket) -> None:
    """Answer until SIGINT or SIGTERM.

    Args:
        app: the application.
        at: where to listen.
    """
    config = uvicorn.Config(
        app,
        http=_HttpConnection,
        ws="none",
        log_level="warning",
        server_header=False,
        timeout_graceful_shutdown=1,
    )
    with suppress(KeyboardInterrupt):
        uvicorn.Server(config).run([at])
