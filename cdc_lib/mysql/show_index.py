"""Keys of a table from SHOW INDEX: in the server's order, which information_schema does not show."""

from __future__ import annotations

from typing import Any

from pymysql.connections import Connection
from pymysql.cursors import DictCursor

from cdc_lib.model.lexer import quoted
from cdc_lib.model.schema_version import Key
from cdc_lib.mysql.connection import answering


def unique_keys(connection: Connection[Any], database: str, table: str) -> tuple[Key, ...]:
    """Return primary and unique keys.

    Raises:
        SourceUnavailable: the connection broke.
        pymysql.MySQLError: the server refuses the statement.
    """
    parts: dict[str, list[tuple[str, bool]]] = {}
    with answering(connection), connection.cursor(DictCursor) as cursor:
        cursor.execute(f"SHOW INDEX FROM {quoted(database)}.{quoted(table)}")
        for row in cursor.fetchall():
            if not int(row["Non_unique"]):
                column = str(row["Column_name"] or "")
                whole = bool(column) and row["Sub_part"] is None
                parts.setdefault(str(row["Key_name"]), []).append((column, whole))
    return tuple(Key(name, tuple(c for c, _ in key), all(w for _, w in key)) for name, key in parts.items())
