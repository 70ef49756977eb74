"""The private parts of pymysql that this library needs: its socket, its buffer, and raw protocol commands.

Tested with PyMySQL 1.1.0 to 1.2.4. No other module uses a private attribute of pymysql, and a test checks that. For another
version of pymysql, review each function here, then update the version in this line.

The driver offers no public API for this: its cursors make a Python object of each row, and its :meth:`close` waits for the
rest of a response.
"""

from __future__ import annotations

import contextlib
import functools
import socket
import ssl
import struct
from collections.abc import Iterator
from typing import Any

from pymysql import _auth
from pymysql.connections import Connection
from pymysql.constants import CLIENT, CR
from pymysql.err import InternalError, MySQLError, OperationalError
from pymysql.protocol import FieldDescriptorPacket, MysqlPacket


def send_command(connection: Connection[Any], command: int, argument: str | bytes) -> None:
    """Send one protocol command and leave its response unread (``_execute_command``).

    Args:
        connection: without an unread response.
        command: its number, one of ``pymysql.constants.COMMAND``.
        argument: the command's payload; ``str`` is encoded in the connection's character set.

    Raises:
        pymysql.MySQLError: the connection is closed, or broke.
        OSError: as above.
    """
    private: Any = connection  # the driver's stubs omit private attributes; same below
    private._execute_command(command, argument)  # noqa: SLF001 - no public way


def read_packet(connection: Connection[Any]) -> MysqlPacket:
    """Return the next packet of a response (``_read_packet``).

    Raises:
        pymysql.MySQLError: it is an error of the server, or the connection broke.
    """
    private: Any = connection
    packet: MysqlPacket = private._read_packet()  # noqa: SLF001 - no public way
    return packet


def receive_into(connection: Connection[Any], view: memoryview) -> int:
    """Receive at least one byte through the driver's buffer and return how many; 0 at the end (``_rfile``).

    Raises:
        OSError: the connection broke or timed out.
        ValueError: another thread closed it.
    """
    private: Any = connection
    reader = private._rfile  # noqa: SLF001 - no public way
    return int(reader.readinto1(view)) if reader is not None else 0


def socket_of(connection: Connection[Any]) -> socket.socket | None:
    """Return the plain or TLS socket; None when the connection is closed (``_sock``)."""
    private: Any = connection
    sock: socket.socket | None = private._sock  # noqa: SLF001 - no public way
    return sock


def set_read_timeout(connection: Connection[Any], seconds: float) -> None:
    """Set the read timeout (``_read_timeout``): the driver accepts it only at log-in."""
    private: Any = connection
    private._read_timeout = seconds  # noqa: SLF001 - no public way


def close_at_once(connection: Connection[Any]) -> None:
    """Close without COM_QUIT (``_force_close``): the server may still be sending."""
    private: Any = connection
    private._force_close()  # noqa: SLF001 - close() would first wait for the response


def may_use_public_key(connection: Connection[Any]) -> bool:
    """Whether the session has the server's RSA key and no TLS, inside which the server takes no key."""
    private: Any = connection  # the stubs omit this attribute
    return bool(private.server_public_key) and not isinstance(socket_of(connection), ssl.SSLSocket)


def send_scramble(connection: Connection[Any], request: Any) -> Any:
    """Answer the request for ``caching_sha2_password`` by its scramble, and return the answer (``_roundtrip``)."""
    private: Any = connection
    private.salt = request.read_all().removesuffix(b"\0")
    driver: Any = _auth
    return driver._roundtrip(connection, driver.scramble_caching_sha2(private.password, private.salt))  # noqa: SLF001


def log_in_caching_sha2(connection: Connection[Any], answer: Any) -> Any:
    """Go on as the driver does when the server has answered the scramble."""
    return _auth.caching_sha2_password_auth(connection, answer)


def log_in_sha256(connection: Connection[Any], request: Any) -> Any:
    """Answer the request for ``sha256_password`` as the driver does."""
    driver: Any = _auth
    return driver.sha256_password_auth(connection, request)


_MOST_COLUMNS = 4096
"""Of a table, and so of a result of this library's own statements."""
_LONGEST_PACKET = 64 << 20
"""Bytes of a packet that the driver reads: definitions and settings of a server. Rows of tables do not go through the driver."""
_LONGEST_ANSWER = 256 << 20
"""Bytes of an answer that the driver collects: lists of tables and columns, and keys."""
_NO_ANSWER = (
    struct.error,
    ValueError,
    LookupError,
    RuntimeError,
    AssertionError,
    TypeError,
    AttributeError,
    OverflowError,
)
"""What the driver raises where bytes do not follow the protocol: it reads without checking, and a request for a local file that it refuses."""


class TlsConnection(Connection):
    """A connection that is encrypted if the server offers it, or always, to a server that may be anything.

    What the driver does by default depends on its version: 1.1 asks for no TLS, and logs in without it at a server that offers
    none, also with a context (``_get_server_information``). 1.2 asks for it, and loads all of the system's certificate authorities,
    which it does not use and which takes longer than the log-in (``_create_ssl_ctx``).

    Args:
        tls: the context with which a server without TLS is refused; None to encrypt without a look at the certificate, if the
            server offers it.
        plain: no TLS even if the server offers it.
        **options: of the driver.
    """

    def __init__(self, tls: ssl.SSLContext | None, *, plain: bool = False, **options: Any) -> None:
        self._is_required = tls is not None
        self._is_plain = plain
        self._packet_bytes = self._answer_bytes = self._definitions = 0
        super().__init__(ssl=tls or _unchecked(), **options)

    def methods_of_log_in(self) -> dict[str, Any]:
        """Return handlers by name of the method, once the socket is connected; the driver has the other methods."""
        return {}

    def refused_answer(self, why: str) -> Exception:
        """Return the error of an answer that does not follow the protocol."""
        return InternalError(why)

    def connect(self, sock: Any = None) -> None:
        """Connect and log in; the server may be anything."""
        self._answer_bytes, self._definitions = 0, 0
        with self._answering():
            super().connect(sock)

    @contextlib.contextmanager
    def _answering(self) -> Iterator[None]:
        """Refuse what is no answer: the driver reads it as it comes, and fails where it happens to.

        A fault that the driver itself finds has no number; SQL errors and broken connections have one.
        """
        was_open = socket_of(self) is not None  # a log-in that fails closes the session
        try:
            yield
        except MySQLError as error:
            if not error.args or not isinstance(error.args[0], str):
                raise
            close_at_once(self)
            raise self.refused_answer(error.args[0].removesuffix(" %r")) from error
        except _NO_ANSWER as error:
            if was_open and socket_of(self) is None:
                raise  # another thread closed the session
            close_at_once(self)
            asks = isinstance(error, RuntimeError)
            why = "it asks for a file of this machine" if asks else f"an answer is cut or out of order ({error})"
            raise self.refused_answer(why) from error

    def _read_query_result(self, unbuffered: bool = False) -> Any:
        self._answer_bytes, self._definitions = 0, 0
        base: Any = super()
        with self._answering():
            return base._read_query_result(unbuffered)  # noqa: SLF001 - no public way

    def _read_packet(self, packet_type: Any = MysqlPacket) -> Any:
        self._definitions += packet_type is FieldDescriptorPacket
        if self._definitions > _MOST_COLUMNS:
            raise InternalError("an answer has more columns than a table may have")
        base: Any = super()
        self._packet_bytes = 0
        return base._read_packet(packet_type)  # noqa: SLF001 - no public way

    def _read_bytes(self, num_bytes: int) -> bytes:
        self._packet_bytes += num_bytes
        self._answer_bytes += num_bytes
        if self._packet_bytes > _LONGEST_PACKET or self._answer_bytes > _LONGEST_ANSWER:
            raise InternalError("an answer has no end")
        base: Any = super()
        return bytes(base._read_bytes(num_bytes))  # noqa: SLF001 - no public way

    def _create_ssl_ctx(self, options: ssl.SSLContext) -> ssl.SSLContext:
        return options

    def _get_server_information(self) -> None:
        base: Any = super()  # the driver's stubs omit private attributes; same below
        base._get_server_information()  # noqa: SLF001 - no public way
        private: Any = self
        private._auth_plugin_map = methods = self.methods_of_log_in()  # noqa: SLF001 - the option comes before the socket
        if private._auth_plugin_name in methods:  # noqa: SLF001 - 1.1 calls a handler only if the server asks for the method
            private._auth_plugin_name = ""  # noqa: SLF001 - so it has to ask
        if private.server_capabilities & CLIENT.SSL and not self._is_plain:
            return
        if self._is_required:
            raise OperationalError(CR.CR_SSL_CONNECTION_ERROR, "SSL is required but the server doesn't support it")
        private.ssl = False
        private.client_flag &= ~CLIENT.SSL


@functools.cache
def _unchecked() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
