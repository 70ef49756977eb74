"""Base of the TCP proxies of tests: listens on a port and serves each connection in its own thread."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Self


class Proxy:
    """A proxy that runs while its block runs; the subclass's ``_serve`` forwards the bytes.

    Args:
        host: of the server.
        port: of the server.
    """

    def __init__(self, host: str, port: int) -> None:
        self.host = host
        self.port = port
        self._listener = socket.create_server(("127.0.0.1", 0))

    @property
    def own_port(self) -> int:
        return int(self._listener.getsockname()[1])

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):  # the listener is closed at the end
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._connect, args=(client,), daemon=True).start()

    def _connect(self, client: socket.socket) -> None:
        with client, socket.create_connection((self.host, self.port)) as server, suppress(OSError):
            self._serve(client, server)

    def _serve(self, client: socket.socket, server: socket.socket) -> None:
        """Forward bytes in both directions until one side closes the connection."""
        raise NotImplementedError
