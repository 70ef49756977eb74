"""A TCP proxy that drops answers, cuts long ones, or answers with errors such as SlowDown."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from urllib.parse import urlsplit

from tests.harness.network.proxy import Proxy


class LossyProxy(Proxy):
    """Forwards everything to a server, except what a test tells it to lose.

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
        """Forward the next requests of a method, and break the connection in the middle of the answer."""
        with self._lock:
            self._method, self._left, self._after, self._hold = method.encode(), times, after_bytes, False

    def hold_answers(self, method: str, times: int) -> None:
        """Forward the next requests of a method, and send no answer while the client waits."""
        self.lose_answers(method, times)
        with self._lock:
            self._hold = True

    def refuse(self, method: str, times: int, status: int, code: str) -> None:
        """Answer the next requests of a method with an S3 error; the server does not see them."""
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
                    # Read the rest of the request, so that a reset does not drop the answer.
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
                if _is_final(data) and self._lose(bytes(seen)):
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


def _is_final(data: bytes) -> bool:
    """Whether what a server sent holds more than "100 Continue", which may arrive together with the answer."""
    head, _, rest = data.partition(b"\r\n\r\n")
    return bool(rest) or not head.startswith(b"HTTP/1.1 100")
