"""A stand-in for the log-in of Amazon RDS with IAM, before a real MySQL server.

No MySQL server checks such tokens. This one speaks the log-in as RDS does: TLS, then the plugin ``mysql_clear_password``, then a check of
the token's signature with Amazon's own code (botocore). After that it passes all bytes on to a session of a real server.
"""

from __future__ import annotations

import contextlib
import secrets
import socket
import ssl
import struct
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

import pymysql
from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from pymysql.constants import CLIENT

from tests.harness.servers.sql import SqlServer

CAPABILITIES = CLIENT.CAPABILITIES | CLIENT.SSL | CLIENT.PLUGIN_AUTH_LENENC_CLIENT_DATA
_EXPIRES = 900


class IamServer:
    """Listens at 127.0.0.1.

    Args:
        backend: the real server, whose ``cdc_user`` each accepted session has.
        keys: access key and secret key that sign the tokens.
        region: of the tokens.
        certificate: of this server.
        key: of the certificate.
        tls: False for a server that asks for the token without TLS.
    """

    def __init__(
        self, backend: SqlServer, keys: tuple[str, str], region: str, certificate: Path, key: Path, *, tls: bool = True
    ) -> None:
        self.backend, self.keys, self.region, self.tls = backend, keys, region, tls
        self.tokens: list[str] = []
        self.answers: list[str] = []
        self.broken: list[str] = []
        self.not_before = datetime.min.replace(tzinfo=UTC)
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate, key)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, name="iam", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(10)

    def fault_of(self, token: str, user: str) -> str:
        """Return why a token is not valid; empty if it is."""
        address = urlsplit(f"https://{token}")
        given = {name: values[0] for name, values in parse_qs(address.query).items()}
        if (address.hostname, address.port) != ("localhost", self.port):
            return f"the token is for {address.netloc}"
        if (given.get("Action"), given.get("DBUser")) != ("connect", user):
            return f"the token is for {given.get('DBUser')}"
        signed_at = datetime.strptime(given["X-Amz-Date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        if given["X-Amz-Expires"] != str(_EXPIRES) or (datetime.now(UTC) - signed_at).total_seconds() > _EXPIRES:
            return "the token has expired"
        if signed_at < self.not_before:
            return "the token is an old one"
        signature = given.pop("X-Amz-Signature")
        return "" if secrets.compare_digest(signature, self._signature(address.netloc, given)) else "wrong signature"

    def _signature(self, netloc: str, given: dict[str, str]) -> str:
        request = AWSRequest("GET", f"https://{netloc}/", params=given)
        request.context["timestamp"] = given["X-Amz-Date"]
        signer = SigV4QueryAuth(Credentials(*self.keys), "rds-db", self.region, expires=_EXPIRES)
        text = signer.string_to_sign(request, signer.canonical_request(request))
        return str(signer.signature(text, request))

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), name="iam-session", daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        session = Packets(client)
        try:
            self._log_in(session)
        except (OSError, EOFError) as error:  # also a client that does not trust the certificate
            self.broken.append(str(error))
        finally:
            session.socket.close()

    def _log_in(self, session: Packets) -> None:
        capabilities = CAPABILITIES if self.tls else CAPABILITIES & ~CLIENT.SSL
        challenge = bytes(secrets.choice(range(1, 128)) for _ in range(20))
        session.send(greeting(capabilities, challenge))
        if self.tls:
            session.receive()  # the request for TLS
            session.socket = self._context.wrap_socket(session.socket, server_side=True)
        response = session.receive()
        user = response[32 : response.index(b"\0", 32)].decode()
        session.send(b"\xfemysql_clear_password\0\0")
        token = session.receive().rstrip(b"\0").decode()
        self.tokens.append(token)
        fault = self.fault_of(token, user)
        self.answers.append(fault)
        if fault:
            session.send(b"\xff" + struct.pack("<H", 1045) + b"#28000" + f"Access denied for user '{user}'".encode())
            return
        server = self.backend.connect(self.backend.cdc_user, self.backend.cdc_password, ssl_disabled=True)
        session.send(b"\0\0\0\x02\0\0\0")
        _relay(session.socket, server)


class Packets:
    """Packets of MySQL's protocol, each answered by the next number."""

    def __init__(self, client: socket.socket) -> None:
        self.socket, self._number = client, 0

    def send(self, payload: bytes) -> None:
        """Send a packet."""
        self.socket.sendall(struct.pack("<I", len(payload))[:3] + bytes([self._number]) + payload)
        self._number += 1

    def receive(self) -> bytes:
        """Return the payload of the next packet."""
        header = self._exactly(4)
        self._number = header[3] + 1
        return self._exactly(int.from_bytes(header[:3], "little"))

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            more = self.socket.recv(count - len(data))
            if not more:
                raise EOFError
            data += more
        return data


def greeting(capabilities: int, challenge: bytes, plugin: bytes = b"mysql_native_password") -> bytes:
    """Return a server's first packet, with twenty bytes to scramble by and the method of log-in that it prefers."""
    return b"".join(
        (
            b"\x0a8.0.40-rds\0", struct.pack("<I", 1), challenge[:8], b"\0", struct.pack("<H", capabilities & 0xFFFF),
            b"\x2d", struct.pack("<H", 2), struct.pack("<H", capabilities >> 16), bytes([21]), bytes(10),
            challenge[8:], b"\0" + plugin + b"\0",
        )
    )  # fmt: skip


def _relay(client: socket.socket, server: pymysql.connections.Connection[Any]) -> None:
    """Pass bytes on until one side closes."""
    other = server._sock

    def back() -> None:
        with contextlib.suppress(OSError):
            while data := other.recv(1 << 16):
                client.sendall(data)
        with contextlib.suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)

    thread = threading.Thread(target=back, name="iam-answers", daemon=True)
    thread.start()
    with contextlib.suppress(OSError):
        while data := client.recv(1 << 16):
            other.sendall(data)
    with contextlib.suppress(OSError):
        other.shutdown(socket.SHUT_RDWR)
    thread.join(10)
    server._force_close()
