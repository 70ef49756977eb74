"""A session that takes every date."""

from __future__ import annotations

from typing import Any


def lax(source: Any, *statements: str) -> None:
    """Run statements in the database of a source, in one transaction, in a session that takes every date."""
    with source.server.connect(database=source.database) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_mode = 'ALLOW_INVALID_DATES'")
        for statement in statements:
            cursor.execute(statement)
        connection.commit()
