"""One statement and all of its rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pymysql.connections import Connection

from cdc_lib.mysql.connection import answering


def rows_of(connection: Connection[Any], sql: str, arguments: Sequence[object] | None = None) -> list[tuple[Any, ...]]:
    """Run one statement and return all of its rows.

    Raises:
        SourceUnavailable: the connection broke.
    """
    with answering(connection), connection.cursor() as cursor:
        cursor.execute(sql, arguments)
        return list(cursor.fetchall())


def lenient_rows_of(connection: Connection[Any], sql: str) -> list[tuple[str | None, ...]]:
    """Run one statement whose columns are texts, which may hold bytes that are no UTF-8: those become U+FFFD.

    MariaDB's SHOW CREATE TABLE has the default of a BINARY column as it is.

    Raises:
        SourceUnavailable: the connection broke.
    """
    connection.use_unicode = False
    try:
        rows = rows_of(connection, sql)
    finally:
        connection.use_unicode = True
    return [tuple(value.decode("utf-8", "replace") if value is not None else None for value in row) for row in rows]
