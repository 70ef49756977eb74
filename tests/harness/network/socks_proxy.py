"""A SOCKS5 proxy (RFC 1928, with log-in by RFC 1929) that knows names of a private network."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Self

_OK, _NOT_ALLOWED, _REFUSED = 0, 2, 5


class SocksProxy:
    """Listens while its block runs.

    Args:
        names: hosts of the private network, by the names that only it knows; nothing else is allowed.
        login: user and password that it asks for; None for a proxy that is open to all.
    """

    def __init__(self, names: Mapping[str, str], login: tuple[str, str] | None = None) -> None:
        self.names, self.login = names, login
        self.asked: list[str] = []
        self._open: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop listening and break all connections."""
        for one in (self._listener, *self._open):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):  # the listener is closed at the end
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        self._open.append(client)
        with client, suppress(OSError, EOFError):
            self._greet(client)
            _, _, _, kind = _exactly(client, 4)
            host = (
                _exactly(client, _exactly(client, 1)[0]).decode()
                if kind == 3
                else socket.inet_ntoa(_exactly(client, 4))
            )
            [port] = struct.unpack(">H", _exactly(client, 2))
            self.asked.append(host)
            answer, server = self._connect(host, port)
            client.sendall(b"\5" + bytes([answer]) + b"\0\1" + bytes(6))
            if server is None:
                return
            with server:
                threading.Thread(target=_copy, args=(client, server), daemon=True).start()
                _copy(server, client)

    def _greet(self, client: socket.socket) -> None:
        _, count = _exactly(client, 2)
        offered = _exactly(client, count)
        wanted = 2 if self.login else 0
        client.sendall(bytes([5, wanted if wanted in offered else 0xFF]))
        if self.login:
            user = _exactly(client, _exactly(client, 2)[1]).decode()
            password = _exactly(client, _exactly(client, 1)[0]).decode()
            client.sendall(bytes([1, (user, password) != self.login]))
            if (user, password) != self.login:
                raise EOFError

    def _connect(self, host: str, port: int) -> tuple[int, socket.socket | None]:
        if host not in self.names:
            return _NOT_ALLOWED, None
        try:
            return _OK, socket.create_connection((self.names[host], port))
        except OSError:
            return _REFUSED, None


def _exactly(client: socket.socket, count: int) -> bytes:
    data = client.recv(count, socket.MSG_WAITALL)
    if len(data) < count:
        raise EOFError
    return data


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
