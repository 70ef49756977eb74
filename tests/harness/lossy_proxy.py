"""A TCP proxy that loses what a network loses (answers on their way, the ends of long ones), or says that it is too busy."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from urllib.parse import urlsplit

from tests.harness.proxy import Proxy


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
        self._hold = False
        self._refused = b""
        self._refusals = 0
        self._refusal = (0, "")
        self.lost = 0
        self.refused = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.own_port}"

    def lose_answers(self, method: str, times: int, after_bytes: int = 0) -> None:
        """Let the next requests of a method reach the server, and break the connection in the middle of its answer."""
        with self._lock:
            self._method, self._left, self._after, self._hold = method.encode(), times, after_bytes, False

    def hold_answers(self, method: str, times: int) -> None:
        """Let the next requests of a method reach the server, and give no answer as long as the client waits."""
        self.lose_answers(method, times)
        with self._lock:
            self._hold = True

    def refuse(self, method: str, times: int, status: int, code: str) -> None:
        """Answer the next requests of a method by an error of S3's, without asking the server."""
        with self._lock:
            self._refused, self._refusals, self._refusal = method.encode(), times, (status, code)

    def _serve(self, client: socket.socket, server: socket.socket) -> None:
        seen = bytearray()
        back = threading.Thread(target=self._answer, args=(client, server, seen), daemon=True)
        back.start()
        while data := client.recv(1 << 16):
            if data.split(b" ", 1)[0] in {b"GET", b"PUT", b"POST", b"HEAD", b"DELETE"}:
                seen[:] = data[:8]
                if refusal := self._refuse(data):
                    client.sendall(refusal)
                    server.shutdown(socket.SHUT_RDWR)
                    # What is still on its way is read, so that the answer is not lost in a reset.
                    client.shutdown(socket.SHUT_WR)
                    while client.recv(1 << 16):
                        pass
                    return
            server.sendall(data)
        server.shutdown(socket.SHUT_WR)
        back.join(10)

    def _answer(self, client: socket.socket, server: socket.socket, seen: bytearray) -> None:
        with suppress(OSError):
            while data := server.recv(1 << 16):
                if not data.startswith(b"HTTP/1.1 100") and self._lose(bytes(seen)):
                    if self._hold:
                        while server.recv(1 << 16):  # until the client gives up, which ends the server's side too
                            pass
                        return
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

    def _refuse(self, data: bytes) -> bytes:
        with self._lock:
            if not self._refusals or not data.startswith(self._refused + b" "):
                return b""
            self._refusals -= 1
            self.refused += 1
            status, code = self._refusal
        body = f"<Error><Code>{code}</Code><Message>injected</Message></Error>".encode()
        head = f"HTTP/1.1 {status} {code}\r\nContent-Type: application/xml\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        return head.encode() + body
