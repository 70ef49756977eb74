"""A server that speaks the log-in of MySQL to get a password: it has a certificate that nobody signed, and an RSA key of its own."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from pymysql.constants import CLIENT

from tests.harness.servers.certificate import write_certificate
from tests.harness.store.iam_server import CAPABILITIES, Packets, greeting

NONCE = b"n" * 20
KEY = b"<the key of the thief>"


def switch(method: str) -> bytes:
    """Return a request to log in by a method."""
    return b"\xfe" + method.encode() + b"\0" + NONCE + b"\0"


class Thief:
    """Listens at 127.0.0.1.

    Args:
        folder: for its certificate.
        method: that it names first.
        requests: sent one after the other; what comes back is kept.
        tls: whether it offers TLS.
    """

    def __init__(self, folder: Path, method: str, requests: Sequence[bytes], *, tls: bool) -> None:
        self.method, self.requests, self.tls = method.encode(), requests, tls
        self.received: list[bytes] = []
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        write_certificate(folder / "thief.pem", folder / "thief-key.pem")
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(folder / "thief.pem", folder / "thief-key.pem")
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(10)

    def has(self, password: str) -> bool:
        """Whether what came gives the password away."""
        return any(password.encode() in text for one in self.received for text in (one, self._decrypted(one)))

    def _decrypted(self, packet: bytes) -> bytes:
        way = padding.OAEP(mgf=padding.MGF1(algorithm=hashes.SHA1()), algorithm=hashes.SHA1(), label=None)  # noqa: S303 - MySQL's
        try:
            hidden = self._key.decrypt(packet, way)
        except ValueError:
            return b""
        return bytes(one ^ NONCE[index % 20] for index, one in enumerate(hidden))

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                session = Packets(client)
                with contextlib.suppress(OSError, EOFError):
                    self._ask(session)
                session.socket.close()

    def _ask(self, session: Packets) -> None:
        session.send(greeting(CAPABILITIES if self.tls else CAPABILITIES & ~CLIENT.SSL, NONCE, self.method))
        first = session.receive()
        if len(first) == 32:  # it asks for TLS
            session.socket = self._context.wrap_socket(session.socket, server_side=True)
            first = session.receive()
        self.received.append(first)
        for request in self.requests:
            pem = self._key.public_key().public_bytes(
                serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
            )
            session.send(b"\x01" + pem if request == KEY else request)
            self.received.append(session.receive())
