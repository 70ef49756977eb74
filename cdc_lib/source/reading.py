"""A session that only reads: statements whose answers are small, texts as the server writes them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pymysql

from cdc_lib.config import Credentials, ServerConfig
from cdc_lib.errors import SourceError
from cdc_lib.source.connect import Session, connect
from cdc_lib.source.facts import rows_of

PATIENCE_SECONDS = 24 * 3600
"""How long one statement may take: the sum over a table without a key comes from a single one."""


@contextmanager
def reading(server: ServerConfig, credentials: Credentials) -> Iterator[Session]:
    """Open a session in UTC that cannot write, and close it.

    Raises:
        SourceUnavailable: the server cannot be reached.
        UnsupportedServer: it refuses the log-in.
    """
    connection: Any = connect(server, credentials)
    try:
        # The driver takes it at the log-in alone, where it would be the time to wait for that as well.
        connection._read_timeout = PATIENCE_SECONDS  # noqa: SLF001
        # Dates as they are, CHAR without its padding, and || no operator that a server's own mode could change.
        answer(connection, "SET SESSION TRANSACTION READ ONLY")
        answer(connection, "SET SESSION sql_mode = 'ALLOW_INVALID_DATES'")
        yield connection
    finally:
        connection.close()


def answer(connection: Session, sql: str) -> list[tuple[Any, ...]]:
    """Return the rows of one statement.

    Raises:
        SourceUnavailable: the connection broke.
        SourceError: the server refuses the statement.
    """
    try:
        # Without arguments the driver leaves a percent sign alone.
        return rows_of(connection, sql)
    except pymysql.MySQLError as error:
        raise SourceError(f"the server answers with an error: {error.args[-1]} ({error.args[0]})") from error


def text_of(value: object) -> str | None:
    """Return what a text expression gave: some servers answer with bytes where a binary column takes part."""
    if value is None:
        return None
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
