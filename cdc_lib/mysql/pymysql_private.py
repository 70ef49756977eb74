"""The private parts of pymysql that this library needs: its socket, its buffer, and raw protocol commands.

Tested with PyMySQL 1.2.4. No other module uses a private attribute of pymysql, and a test checks that. For another version of
pymysql, review each function here, then update the version in this line.

The driver offers no public API for this: its cursors make a Python object of each row, and its :meth:`close` waits for the
rest of a response.
"""

from __future__ import annotations

import socket
from typing import Any

from pymysql.connections import Connection


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
