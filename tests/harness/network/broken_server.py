"""A server that lets anybody log in, and answers as no MySQL server does."""

from __future__ import annotations

import contextlib
import itertools
import socket
import struct
import threading
from collections.abc import Callable
from typing import Self

from pymysql.constants import CLIENT

from tests.harness.store.iam_server import CAPABILITIES, Packets, greeting

OK = b"\0\0\0\x02\0\0\0"
END = b"\xfe\0\0\2\0"
COLUMN = b"\x03def\0\0\0\x01c\0\x0c\x2d\0\xff\0\0\0\xfd\0\0\0\0\0"
"""A text column c."""

Answer = Callable[[Packets], None]


class BrokenServer:
    """Listens at 127.0.0.1, and sends at most so many bytes for an answer.

    Args:
        answer: to each statement that is no SET.
        log_in: what comes instead of the OK of the log-in.
        first: what comes instead of the greeting.
    """

    def __init__(self, answer: Answer | None = None, log_in: Answer | None = None, first: Answer | None = None) -> None:
        self.answer, self.log_in, self.first = answer, log_in, first
        self.logged_in = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(10)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                with contextlib.suppress(OSError, EOFError):
                    self._serve(Packets(client))
                client.close()

    def _serve(self, session: Packets) -> None:
        if self.first is not None:
            self.first(session)
            return
        session.send(greeting(CAPABILITIES & ~CLIENT.SSL, b"n" * 20))
        session.receive()
        self.logged_in += 1
        if self.log_in is not None:
            self.log_in(session)
            session.receive()
        else:
            session.send(OK)
        while True:
            statement = session.receive()[1:]
            if statement[:3] == b"SET" or self.answer is None:
                session.send(OK)
            else:
                self.answer(session)


def sends(*packets: bytes) -> Answer:
    """Return an answer of these packets."""

    def answer(session: Packets) -> None:
        for packet in packets:
            session.send(packet)

    return answer


def endless(packet: bytes, *before: bytes, most: int = 3 << 30) -> Answer:
    """Return an answer that repeats a packet."""

    def answer(session: Packets) -> None:
        sends(*before)(session)
        for number in itertools.count(len(before) + 1):
            if number * len(packet) > most:
                return
            session.socket.sendall(struct.pack("<I", len(packet))[:3] + bytes([number % 256]) + packet)

    return answer
