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


def lenient_rows_of(
    connection: Connection[Any], sql: str, arguments: Sequence[object] | None = None, *, invalid: str = "replace"
) -> list[tuple[Any, ...]]:
    """Run one statement whose columns are texts and numbers; the texts may hold bytes that are no UTF-8.

    MariaDB's SHOW CREATE TABLE has the default of a BINARY column as it is, and its names, labels and comments may hold halves of
    surrogate pairs.

    Args:
        connection: a session on the source.
        sql: the statement.
        arguments: its values.
        invalid: what becomes of such bytes, a handler of errors of :meth:`bytes.decode`: U+FFFD by default.

    Raises:
        SourceUnavailable: the connection broke.
    """
    connection.use_unicode = False
    try:
        rows = rows_of(connection, sql, arguments)
    finally:
        connection.use_unicode = True
    return [tuple(one.decode("utf-8", invalid) if isinstance(one, bytes) else one for one in row) for row in rows]
