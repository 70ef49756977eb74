"""The server's bytes without a Python object per row: the driver logs in and sends the command, we keep the socket."""

from __future__ import annotations

import contextlib
import secrets
import select
import socket
import ssl
import struct
import time
import zlib
from types import TracebackType
from typing import Any, Self

import pymysql
from pymysql.connections import Connection
from pymysql.constants import COMMAND

from cdc_lib.config import Credentials, ServerConfig
from cdc_lib.errors import SourceUnavailable
from cdc_lib.model.position import Position
from cdc_lib.model.server_identity import ServerIdentity
from cdc_lib.mysql.connection import connect, translated
from cdc_lib.mysql.pymysql_private import close_at_once, receive_into, send_command, socket_of

_NON_BLOCKING = 1
"""Flag of COM_BINLOG_DUMP: the server ends the stream at the end of its binlog instead of waiting."""
_SEND_ANNOTATIONS = 2
"""MariaDB leaves ANNOTATE_ROWS out unless asked; with it the events of the stream follow each other as in the file."""
_MARIADB_CAPABILITY = 4
"""MARIA_SLAVE_CAPABILITY_GTID: the server sends its own event types as they are in the file."""
_WORTHWHILE = 256 * 1024
"""Bytes with which a read is handed on at once."""
_MOMENT = 0.001
"""Seconds to wait for more when it brought less."""


class ServerStream:
    """Raw bytes of the answer to one command; closes its connection at the end.

    Args:
        connection: on which the command was sent, and from whose answer nothing was read yet.
        server: for messages.
    """

    def __init__(self, connection: Connection[Any], server: ServerConfig) -> None:
        """Take the connection over."""
        self._connection = connection
        self._server = server

    def read_into(self, view: memoryview) -> int:
        """Receive at least one byte and return how many; 0 at the end.

        Servers send events one by one. Waiting a moment for more costs less than going through everything for each of them.

        Raises:
            SourceUnavailable: the connection broke, or nothing came for two minutes.
        """
        try:
            return self._receive(view)
        except (OSError, ValueError) as error:
            raise SourceUnavailable(
                f"the connection broke while rows were read: {error}",
                hint="The task can be tried again.",
                host=self._server.host,
                port=self._server.port,
            ) from error

    def _receive(self, view: memoryview) -> int:
        got = receive_into(self._connection, view)
        while 0 < got < min(_WORTHWHILE, len(view)) and (more := self._at_hand(view[got:])):
            got += more
        return got

    def _at_hand(self, view: memoryview) -> int:
        """Receive what is there after a moment, without waiting for what may never come; returns how much."""
        sock = socket_of(self._connection)
        if sock is None:
            return 0
        if isinstance(sock, ssl.SSLSocket):
            return _deciphered(sock, view)
        time.sleep(_MOMENT)
        poll = select.poll()
        poll.register(sock, select.POLLIN)
        return receive_into(self._connection, view) if poll.poll(0) else 0

    def __enter__(self) -> Self:
        """Close the connection at the end of the block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close without a farewell: the server may still be sending."""
        sock = socket_of(self._connection)
        if sock is not None:
            # Ends a read that another thread still waits in; closing the file would wait for that read instead.
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        close_at_once(self._connection)


def _deciphered(sock: ssl.SSLSocket, view: memoryview) -> int:
    """Receive what has arrived as whole records; what else has may be half of one, or one of TLS itself."""
    patience = sock.gettimeout()
    sock.settimeout(0)
    try:
        # The driver's buffer is empty: it was read first, and views are larger than it.
        return sock.recv_into(view)
    except ssl.SSLWantReadError:
        return 0
    finally:
        sock.settimeout(patience)


def binlog_dump(
    server: ServerConfig, credentials: Credentials, identity: ServerIdentity, start: Position, purpose: str = ""
) -> ServerStream:
    """Ask for the binlog from a position to its end.

    Args:
        server: to ask.
        credentials: for the log-in.
        identity: of the server.
        start: where the stream begins.
        purpose: empty for a window; what looks for places in the binlog says what it does. Two tasks may look for the same
            one at the same time.

    Raises:
        SourceUnavailable: the server cannot be reached.
        UnsupportedServer: it refuses the log-in.
    """
    connection = connect(server, credentials)
    try:
        with connection.cursor() as cursor:
            if identity.flavor == "mariadb":
                cursor.execute(f"SET @mariadb_slave_capability = {_MARIADB_CAPABILITY}")
            # An old name that both servers know: without it they send events without their checksums.
            cursor.execute("SET @master_binlog_checksum = @@GLOBAL.binlog_checksum")
            if identity.flavor == "mysql":
                cursor.execute("SET @source_binlog_checksum = @@GLOBAL.binlog_checksum")
        flags = _NON_BLOCKING | (_SEND_ANNOTATIONS if identity.flavor == "mariadb" else 0)
        replica = _any_replica_id() if purpose else server.server_id or replica_id(server, start)
        arguments = struct.pack("<IHI", start.offset, flags, replica) + start.file.encode()
        send_command(connection, COMMAND.COM_BINLOG_DUMP, arguments)
    except (pymysql.MySQLError, OSError) as error:
        close_at_once(connection)
        raise translated(error, server) from error
    return ServerStream(connection, server)


def _any_replica_id() -> int:
    """Return a replica number that nobody else has at the moment: whose dump is ended by another cannot continue."""
    return 1 << 30 | secrets.randbits(30)


def replica_id(server: ServerConfig, start: Position) -> int:
    """Return a replica number that differs between windows read at the same time.

    A server ends a dump when another replica of the same number asks for one, so windows drained in parallel need numbers
    of their own. Derived, not random: a retried window replaces its own dead connection.
    """
    text = f"{server.host}:{server.port}:{start}".encode()
    return 1 << 30 | (zlib.crc32(text) & 0x3FFFFFFF)


def query(server: ServerConfig, connection: Connection[Any], sql: str) -> ServerStream:
    """Send a SELECT; the stream begins with the number of columns, and texts come in their columns' own character sets.

    Raises:
        SourceUnavailable: the connection broke.
    """
    try:
        with connection.cursor() as cursor:
            # As in the binlog: converted by the server, what is no text would come as a question mark. Without the server's
            # own sql_mode, keys with zero or impossible dates may be compared with, and CHAR comes without its padding.
            cursor.execute("SET character_set_results = NULL, sql_mode = 'ALLOW_INVALID_DATES'")
        send_command(connection, COMMAND.COM_QUERY, sql)
    except (pymysql.MySQLError, OSError) as error:
        raise translated(error, server) from error
    return ServerStream(connection, server)
