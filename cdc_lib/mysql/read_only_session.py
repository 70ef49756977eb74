"""A read-only session for statements with small results."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pymysql

from cdc_lib.config import Credentials, ServerConfig
from cdc_lib.mysql.connection import Session, connect, translated
from cdc_lib.mysql.pymysql_private import set_read_timeout
from cdc_lib.mysql.statements import rows_of

PATIENCE_SECONDS = 24 * 3600
"""Read timeout of one statement: the checksum of a table without a key is a single statement."""


@contextmanager
def reading(server: ServerConfig, credentials: Credentials, patience: float = PATIENCE_SECONDS) -> Iterator[Session]:
    """Open a read-only session in UTC, and close it at the end.

    Args:
        server: its address.
        credentials: the log-in.
        patience: seconds that one statement gets.

    Raises:
        SourceUnavailable: the server cannot be reached.
        UnsupportedServer: it refuses the log-in.
    """
    connection = connect(server, credentials)
    try:
        # Set after the log-in, which has its own timeout.
        set_read_timeout(connection, patience)
        # Invalid dates unchanged, CHAR without padding, and a fixed meaning of ||, independent of the server's sql_mode.
        answer(connection, "SET SESSION TRANSACTION READ ONLY")
        answer(connection, "SET SESSION sql_mode = 'ALLOW_INVALID_DATES'")
        yield connection
    finally:
        connection.close()


def answer(connection: Session, sql: str, table: str = "") -> list[tuple[Any, ...]]:
    """Return the rows of one statement.

    Args:
        connection: the session.
        sql: the statement.
        table: ``database.table`` that it reads; empty if none.

    Raises:
        SourceUnavailable: the connection broke.
        TableUnreadable: the server refuses to read the table.
        SourceError: the server refuses the statement.
    """
    try:
        # Without arguments the driver does not interpret percent signs.
        return rows_of(connection, sql)
    except pymysql.MySQLError as error:
        raise translated(error, connection, table) from error


def text_of(value: object) -> str | None:
    """Return the value of a text expression: some servers return bytes if a binary column is part of it."""
    if value is None:
        return None
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
