"""A session that only reads: statements whose answers are small, texts as the server writes them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pymysql

from cdc_lib.config import Credentials, ServerConfig
from cdc_lib.mysql.connection import Session, connect, translated
from cdc_lib.mysql.pymysql_private import set_read_timeout
from cdc_lib.mysql.server_facts import rows_of

PATIENCE_SECONDS = 24 * 3600
"""How long one statement may take: the sum over a table without a key comes from a single one."""


@contextmanager
def reading(server: ServerConfig, credentials: Credentials) -> Iterator[Session]:
    """Open a session in UTC that cannot write, and close it.

    Raises:
        SourceUnavailable: the server cannot be reached.
        UnsupportedServer: it refuses the log-in.
    """
    connection = connect(server, credentials)
    try:
        # At the log-in it would be the time to wait for that as well.
        set_read_timeout(connection, PATIENCE_SECONDS)
        # Dates as they are, CHAR without its padding, and || no operator that a server's own mode could change.
        answer(connection, "SET SESSION TRANSACTION READ ONLY")
        answer(connection, "SET SESSION sql_mode = 'ALLOW_INVALID_DATES'")
        yield connection
    finally:
        connection.close()


def answer(connection: Session, sql: str, table: str = "") -> list[tuple[Any, ...]]:
    """Return the rows of one statement.

    Args:
        connection: to ask on.
        sql: the statement.
        table: ``database.table`` that it reads; empty where it reads none.

    Raises:
        SourceUnavailable: the connection broke.
        TableUnreadable: the server refuses to read the table.
        SourceError: the server refuses the statement.
    """
    try:
        # Without arguments the driver leaves a percent sign alone.
        return rows_of(connection, sql)
    except pymysql.MySQLError as error:
        raise translated(error, connection, table) from error


def text_of(value: object) -> str | None:
    """Return what a text expression gave: some servers answer with bytes where a binary column takes part."""
    if value is None:
        return None
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
