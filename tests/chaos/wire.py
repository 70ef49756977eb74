"""The network between the steps and their server: it breaks, or goes silent, in the middle of an answer."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Literal

from tests.harness.proxy import Proxy
from tests.harness.servers import SqlServer

Fault = Literal["cut", "half-open"]


class Wire(Proxy):
    """A TCP proxy on loopback that passes everything on, encrypted or not, until it is told to fail once.

    Args:
        server: where it leads.

    Attributes:
        passed: bytes of the server's answers.
        failed: whether it failed since it was told to.
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
        """Lead new connections to another server."""
        self.host, self.port = server.host, server.port

    def fail(self, fault: Fault, after: int) -> None:
        """Let one connection fail, once so many bytes of the server's answers have passed."""
        with self._lock:
            self._fault, self._left, self.failed = fault, after, False
            self._released = threading.Event()

    def mend(self) -> bool:
        """Pass everything on again; tells whether it failed since it was told to."""
        with self._lock:
            self._fault = None
            self._released.set()
            return self.failed

    def __exit__(self, *caught: object) -> None:
        self.mend()
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
        """Return how many bytes may pass; fewer than there are when it fails here, at once or after a silence."""
        with self._lock:
            self.passed += size
            if self._fault is None or self.failed:
                return size
            self._left -= size
            if self._left > 0:
                return size
            self.failed = True
            fault, released, left = self._fault, self._released, self._left
        if fault == "half-open":
            released.wait(60)
        return min(size - 1, size + left)
