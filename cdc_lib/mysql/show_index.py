"""Keys of a table from SHOW INDEX: in the server's order, which information_schema does not show."""

from __future__ import annotations

from typing import Any

from pymysql.connections import Connection

from cdc_lib.model.lexer import quoted
from cdc_lib.model.schema_version import Key
from cdc_lib.mysql.statements import lenient_rows_of


def unique_keys(connection: Connection[Any], database: str, table: str) -> tuple[Key, ...]:
    """Return primary and unique keys; bytes of their names that are no UTF-8 are halves of surrogate pairs.

    Raises:
        SourceUnavailable: the connection broke.
        pymysql.MySQLError: the server refuses the statement.
    """
    parts: dict[str, list[tuple[str, bool]]] = {}
    shown = f"SHOW INDEX FROM {quoted(database)}.{quoted(table)}"
    for _, non_unique, name, _, column, _, _, prefix, *_ in lenient_rows_of(
        connection, shown, invalid="surrogateescape"
    ):
        if not int(non_unique):
            parts.setdefault(name, []).append((column or "", bool(column) and prefix is None))
    return tuple(Key(name, tuple(c for c, _ in key), all(w for _, w in key)) for name, key in parts.items())
