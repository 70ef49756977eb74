"""A TCP proxy between a drain and its server: slow, in small portions, cut off or stalled after some bytes."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress

from tests.harness.network.proxy import Proxy

_COM_BINLOG_DUMP = 0x12
_CLIENT_SSL = 0x0800


def _without_tls(greeting: bytes) -> bytes:
    """Remove TLS from the capabilities in the server's greeting: encrypted bytes could not be changed one by one.

    Header 4, protocol 1, version up to a zero byte, thread 4, first part of the challenge 8, a zero byte, capabilities 2
    (MySQL internals, Protocol::HandshakeV10).
    """
    at = greeting.index(b"\0", 5) + 14
    capabilities = int.from_bytes(greeting[at : at + 2], "little") & ~_CLIENT_SSL
    return greeting[:at] + capabilities.to_bytes(2, "little") + greeting[at + 2 :]


class TcpProxy(Proxy):
    """Forwards everything; only the answer to COM_BINLOG_DUMP is slowed down, cut off or stalled.

    Args:
        host: of the server.
        port: of the server.
        portion: most bytes that are sent at once.
        pause: seconds between two portions.
        cut_after: close the connection after this many bytes of the answer.
        stall_after: send nothing after this many bytes of it, and keep the connection open as long as the server does.
        stays: keep a stalled connection open even when the server has sent the whole dump and closed its side.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        portion: int = 1 << 16,
        pause: float = 0.0,
        cut_after: int | None = None,
        stall_after: int | None = None,
        stays: bool = False,
    ) -> None:
        super().__init__(host, port)
        self.portion = portion
        self.pause = pause
        self.cut_after = cut_after
        self.stall_after = stall_after
        self.stays = stays
        self.stalled = threading.Event()
        self.sent = 0

    def _serve(self, client: socket.socket, server: socket.socket) -> None:
        dumping = threading.Event()
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        back = threading.Thread(target=self._answer, args=(client, server, dumping), daemon=True)
        back.start()
        while data := client.recv(1 << 16):
            if len(data) > 4 and data[3] == 0 and data[4] == _COM_BINLOG_DUMP:
                dumping.set()
            server.sendall(data)
        server.shutdown(socket.SHUT_RDWR)
        back.join(10)

    def _answer(self, client: socket.socket, server: socket.socket, dumping: threading.Event) -> None:
        sent = 0
        with suppress(OSError):
            client.sendall(_without_tls(server.recv(1 << 16)))
            while data := server.recv(1 << 16):
                if not dumping.is_set():
                    client.sendall(data)
                    continue
                for at in range(0, len(data), self.portion):
                    chunk = data[at : at + self.portion]
                    if self.cut_after is not None and sent + len(chunk) >= self.cut_after:
                        client.sendall(chunk[: self.cut_after - sent])
                        client.shutdown(socket.SHUT_RDWR)
                        return
                    if self.stall_after is not None and sent + len(chunk) >= self.stall_after:
                        client.sendall(chunk[: self.stall_after - sent])
                        self.stalled.set()
                        while server.recv(1 << 16):
                            pass
                        if self.stays:
                            return
                        client.shutdown(socket.SHUT_RDWR)
                        return
                    client.sendall(chunk)
                    sent += len(chunk)
                    self.sent = sent
                    if self.pause:
                        time.sleep(self.pause)
        with suppress(OSError):
            client.shutdown(socket.SHUT_WR)
