"""Raw bytes from the server: pymysql logs in and sends the command, then this module reads its socket directly."""

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
from cdc_lib.mysql.tunnel.way import failure_on_the_way

_NON_BLOCKING = 1
"""Flag of COM_BINLOG_DUMP: the server ends the stream at the end of its binlog instead of waiting."""
_SEND_ANNOTATIONS = 2
"""MariaDB sends ANNOTATE_ROWS events only on request; with them the stream has every event of the file."""
_MARIADB_CAPABILITY = 4
"""MARIA_SLAVE_CAPABILITY_GTID: the server sends MariaDB's event types unchanged."""
_WORTHWHILE = 256 * 1024
"""Bytes from which on a read returns at once."""
_MOMENT = 0.001
"""Seconds that a smaller read waits for more."""


class ServerStream:
    """Raw bytes of the response to one command; closes its connection at the end.

    Args:
        connection: on which the command was sent; its response is still unread.
        server: for messages.
    """

    def __init__(self, connection: Connection[Any], server: ServerConfig) -> None:
        """Take ownership of the connection."""
        self._connection = connection
        self._server = server

    def read_into(self, view: memoryview) -> int:
        """Receive at least one byte and return how many; 0 at the end.

        Servers send events one by one. A short wait for more costs less than a full pass of the decoder for each event.

        Raises:
            SourceUnavailable: the connection broke, or was silent for two minutes.
            TunnelUnavailable: the connection to the SSH server on the way broke.
        """
        try:
            got = self._receive(view)
        except (OSError, ValueError) as error:
            raise failure_on_the_way(self._connection) or SourceUnavailable(
                f"the connection broke while rows were read: {error}",
                hint="The task can be tried again.",
                host=self._server.host,
                port=self._server.port,
            ) from error
        if not got and (broken := failure_on_the_way(self._connection)) is not None:
            raise broken
        return got

    def _receive(self, view: memoryview) -> int:
        got = receive_into(self._connection, view)
        while 0 < got < min(_WORTHWHILE, len(view)) and (more := self._available(view[got:])):
            got += more
        return got

    def _available(self, view: memoryview) -> int:
        """Receive what arrives within :data:`_MOMENT`, without blocking; return how many bytes."""
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
        """Close without COM_QUIT: the server may still be sending."""
        sock = socket_of(self._connection)
        if sock is not None:
            # Ends a read in which another thread still waits; closing the file would wait for that read.
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        close_at_once(self._connection)


def _deciphered(sock: ssl.SSLSocket, view: memoryview) -> int:
    """Receive the TLS records that have arrived complete; other bytes may be half a record or TLS control data."""
    timeout = sock.gettimeout()
    sock.settimeout(0)
    try:
        # The driver's buffer is empty: it was read first, and is smaller than any view.
        return sock.recv_into(view)
    except ssl.SSLWantReadError:
        return 0
    finally:
        sock.settimeout(timeout)


def binlog_dump(
    server: ServerConfig, credentials: Credentials, identity: ServerIdentity, start: Position, of: str = ""
) -> ServerStream:
    """Ask for the binlog from a position to its end.

    Args:
        server: to connect to.
        credentials: for the log-in.
        identity: of the server.
        start: where the stream begins.
        of: which source's window is read: a later dump of the same window ends this one. Empty for a search: several may begin
            at one position at once.

    Raises:
        SourceUnavailable: the server cannot be reached.
        UnsupportedServer: it refuses the log-in.
    """
    connection = connect(server, credentials)
    try:
        with connection.cursor() as cursor:
            if identity.flavor == "mariadb":
                cursor.execute(f"SET @mariadb_slave_capability = {_MARIADB_CAPABILITY}")
            # Both servers know this old name; without it they send events without checksums.
            cursor.execute("SET @master_binlog_checksum = @@GLOBAL.binlog_checksum")
            if identity.flavor == "mysql":
                cursor.execute("SET @source_binlog_checksum = @@GLOBAL.binlog_checksum")
        flags = _NON_BLOCKING | (_SEND_ANNOTATIONS if identity.flavor == "mariadb" else 0)
        replica = server.server_id or replica_id(of, start) if of else random_replica_id()
        arguments = struct.pack("<IHI", start.offset, flags, replica) + start.file.encode()
        send_command(connection, COMMAND.COM_BINLOG_DUMP, arguments)
    except (pymysql.MySQLError, OSError) as error:
        close_at_once(connection)
        raise translated(error, connection) from error
    return ServerStream(connection, server)


def random_replica_id() -> int:
    """Return a random replica number: a server ends the dump of a replica when another one uses its number."""
    return 1 << 30 | secrets.randbits(30)


def replica_id(source: str, start: Position) -> int:
    """Return a replica number that differs between windows that are read in parallel, also by several sources.

    A server ends a dump when another replica of the same number requests one. Derived, not random: a retried window
    replaces its own dead connection.
    """
    text = f"{source}:{start}".encode()
    return 1 << 30 | (zlib.crc32(text) & 0x3FFFFFFF)


def query(server: ServerConfig, connection: Connection[Any], sql: str) -> ServerStream:
    """Send a SELECT; the stream begins with the column count, and text is in its column's character set.

    Raises:
        SourceUnavailable: the connection broke.
    """
    try:
        with connection.cursor() as cursor:
            # Unconverted, as in the binlog: the server would turn invalid text into question marks. This sql_mode allows
            # keys with zero or invalid dates in comparisons, and returns CHAR without padding.
            cursor.execute("SET character_set_results = NULL, sql_mode = 'ALLOW_INVALID_DATES'")
        send_command(connection, COMMAND.COM_QUERY, sql)
    except (pymysql.MySQLError, OSError) as error:
        raise translated(error, connection) from error
    return ServerStream(connection, server)
