"""The network between the steps and their server: it can break or stall in the middle of an answer."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Literal

from tests.harness.network.proxy import Proxy
from tests.harness.servers import SqlServer

Fault = Literal["cut", "half-open"]


class Wire(Proxy):
    """A TCP proxy that forwards everything, encrypted or not, and fails once on request.

    Args:
        server: where it connects to.

    Attributes:
        passed: bytes of the server's answers.
        failed: whether the requested fault has occurred.
    """

    def __init__(self, server: SqlServer) -> None:
        super().__init__(server.host, server.port)
        self._lock = threading.Lock()
        self._fault: Fault | None = None
        self._left = 0
        self._released = threading.Event()
        self.failed = False
        self.passed = 0

    def lead_to(self, server: SqlServer) -> None:
        """Connect new clients to another server."""
        self.host, self.port = server.host, server.port

    def fail(self, fault: Fault, after: int) -> None:
        """Let one connection fail after some bytes of the server's answers."""
        with self._lock:
            self._fault, self._left, self.failed = fault, after, False
            self._released = threading.Event()

    def restore(self) -> bool:
        """Forward everything again; returns whether the requested fault has occurred."""
        with self._lock:
            self._fault = None
            self._released.set()
            return self.failed

    def __exit__(self, *caught: object) -> None:
        self.restore()
        super().__exit__(*caught)

    def _serve(self, client: socket.socket, server: socket.socket) -> None:
        back = threading.Thread(target=self._answer, args=(client, server), daemon=True)
        back.start()
        while data := client.recv(1 << 16):
            server.sendall(data)
        server.shutdown(socket.SHUT_RDWR)
        back.join(10)

    def _answer(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(1 << 16):
                kept = self._passing(len(data))
                client.sendall(data[:kept])
                if kept < len(data):
                    break
            client.shutdown(socket.SHUT_RDWR)

    def _passing(self, size: int) -> int:
        """Return how many bytes may pass; fewer than ``size`` if the connection fails here."""
        with self._lock:
            self.passed += size
            if self._fault is None or self.failed:
                return size
            self._left -= size
            if self._left > 0:
                return size
            self.failed = True
            fault, released, excess = self._fault, self._released, self._left
        if fault == "half-open":
            released.wait(60)
        return min(size - 1, size + excess)
