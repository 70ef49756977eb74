"""A proxy before an S3 server that holds chosen requests until a test lets them go: whoever sent them is at a known point of its work."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

from tests.harness.network.proxy import Proxy

_METHODS = {b"GET", b"PUT", b"POST", b"HEAD", b"DELETE"}


class HoldingProxy(Proxy):
    """Forwards everything; while it holds, requests with certain words wait, and so does each that is sent in their place.

    Args:
        target: URL of the server.
    """

    def __init__(self, target: str) -> None:
        parts = urlsplit(target)
        super().__init__(parts.hostname or "", parts.port or 80)
        self._words: tuple[bytes, ...] = ()
        self._held, self._go = threading.Event(), threading.Event()

    @property
    def url(self) -> str:
        """Its own address."""
        return f"http://127.0.0.1:{self.own_port}"

    @contextmanager
    def holding(self, *words: str) -> Iterator[None]:
        """Hold all requests whose first line has all of these words, such as ``PUT`` and ``/data/``, to the end of the block."""
        self._held.clear()
        self._go.clear()
        self._words = tuple(word.encode() for word in words)
        try:
            yield
        finally:
            self._words = ()
            self._go.set()

    def wait_until_held(self, seconds: float = 180) -> None:
        """Wait until a request is held."""
        assert self._held.wait(seconds), f"no request with {self._words} in {seconds:.0f} s"

    def _serve(self, client: socket.socket, server: socket.socket) -> None:
        back = threading.Thread(target=self._answer, args=(client, server), daemon=True)
        back.start()
        while data := client.recv(1 << 16):
            if data.split(b" ", 1)[0] in _METHODS and self._is_held(data.split(b"\r\n", 1)[0]):
                self._held.set()
                self._go.wait()
            server.sendall(data)
        server.shutdown(socket.SHUT_WR)
        back.join(10)

    def _is_held(self, line: bytes) -> bool:
        words = self._words
        return bool(words) and all(word in line for word in words)

    def _answer(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(1 << 16):
                client.sendall(data)
            client.shutdown(socket.SHUT_WR)
