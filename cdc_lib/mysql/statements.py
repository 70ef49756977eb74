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
