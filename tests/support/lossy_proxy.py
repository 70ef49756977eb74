"""A TCP proxy that loses what a network loses: answers on their way, and the ends of long ones."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from urllib.parse import urlsplit

from tests.support.proxy import Proxy


class LossyProxy(Proxy):
    """Stands before a server and passes everything on, unless it is told to lose something.

    Args:
        target: URL of the server.
    """

    def __init__(self, target: str) -> None:
        parts = urlsplit(target)
        super().__init__(parts.hostname or "", parts.port or 80)
        self._lock = threading.Lock()
        self._method = b""
        self._left = 0
        self._after = 0
        self.lost = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.own_port}"

    def lose_answers(self, method: str, times: int, after_bytes: int = 0) -> None:
        """Let the next requests of a method reach the server, and break the connection in the middle of its answer."""
        with self._lock:
            self._method, self._left, self._after = method.encode(), times, after_bytes

    def _serve(self, client: socket.socket, server: socket.socket) -> None:
        seen = bytearray()
        back = threading.Thread(target=self._answer, args=(client, server, seen), daemon=True)
        back.start()
        while data := client.recv(1 << 16):
            seen[:] = data[:8] if data.split(b" ", 1)[0] in {b"GET", b"PUT", b"POST", b"HEAD", b"DELETE"} else seen
            server.sendall(data)
        server.shutdown(socket.SHUT_WR)
        back.join(10)

    def _answer(self, client: socket.socket, server: socket.socket, seen: bytearray) -> None:
        with suppress(OSError):
            while data := server.recv(1 << 16):
                if not data.startswith(b"HTTP/1.1 100") and self._lose(bytes(seen)):
                    client.sendall(data[: self._after])
                    client.shutdown(socket.SHUT_RDWR)
                    server.shutdown(socket.SHUT_RDWR)
                    return
                client.sendall(data)

    def _lose(self, seen: bytes) -> bool:
        with self._lock:
            if not self._left or not seen.startswith(self._method + b" "):
                return False
            self._left -= 1
            self.lost += 1
            return True
