"""What pymysql keeps to itself and this library needs: its socket, its buffer, and commands that it has no method for.

Tested with PyMySQL 1.2.4. No other module uses a private attribute of pymysql, and a test holds that. For another version of
pymysql, look at each function here, and then write the version in the line above.

The driver has no public way to any of it: its cursors make a Python object of each row, and its :meth:`close` waits for the
rest of an answer.
"""

from __future__ import annotations

import socket
from typing import Any

from pymysql.connections import Connection


def send_command(connection: Connection[Any], command: int, argument: str | bytes) -> None:
    """Send one command of the protocol and leave its answer unread (``_execute_command``).

    Args:
        connection: with no answer that is still to be read.
        command: its number, one of ``pymysql.constants.COMMAND``.
        argument: what follows the number; a text goes in the connection's character set.

    Raises:
        pymysql.MySQLError: the connection is closed, or broke.
        OSError: as above.
    """
    private: Any = connection  # the driver's stubs leave out what is private; so below
    private._execute_command(command, argument)  # noqa: SLF001 - no public way


def receive_into(connection: Connection[Any], view: memoryview) -> int:
    """Receive at least one byte through the driver's buffer and return how many; 0 at the end (``_rfile``).

    Raises:
        OSError: the connection broke, or nothing came in time.
        ValueError: another thread closed it.
    """
    private: Any = connection
    reader = private._rfile  # noqa: SLF001 - no public way
    return int(reader.readinto1(view)) if reader is not None else 0


def socket_of(connection: Connection[Any]) -> socket.socket | None:
    """Return the socket, or that of TLS around it; None when the connection is closed (``_sock``)."""
    private: Any = connection
    found: socket.socket | None = private._sock  # noqa: SLF001 - no public way
    return found


def set_read_timeout(connection: Connection[Any], seconds: float) -> None:
    """Wait so long for an answer from now on (``_read_timeout``): the driver takes it at the log-in alone."""
    private: Any = connection
    private._read_timeout = seconds  # noqa: SLF001 - no public way


def close_at_once(connection: Connection[Any]) -> None:
    """Close without a farewell (``_force_close``): the server may still be sending."""
    private: Any = connection
    private._force_close()  # noqa: SLF001 - close() would first wait for the answer
