"""Keys of a table from SHOW INDEX: in the server's order, which information_schema does not show."""

from __future__ import annotations

from typing import Any

from pymysql.connections import Connection

from cdc_lib.model.lexer import quoted
from cdc_lib.model.schema_version import Key
from cdc_lib.mysql.statements import lenient_rows_of

_WITH_HASHES = ("MEMORY", "NDBCLUSTER")
"""Engines with indexes by hash."""


def unique_keys(connection: Connection[Any], database: str, table: str) -> tuple[Key, ...]:
    """Return primary and unique keys; bytes of their names that are no UTF-8 are halves of surrogate pairs.

    Raises:
        SourceUnavailable: the connection broke.
        pymysql.MySQLError: the server refuses the statement.
    """
    parts: dict[str, list[tuple[str, bool]]] = {}
    shown = f"SHOW INDEX FROM {quoted(database)}.{quoted(table)}"
    hashed = set()
    for _, non_unique, name, _, column, _, _, prefix, _, _, kind, *_ in lenient_rows_of(
        connection, shown, invalid="surrogateescape"
    ):
        if not int(non_unique):
            parts.setdefault(name, []).append((column or "", bool(column) and prefix is None))
            hashed |= {name} if kind == "HASH" else set()
    if hashed and _has_such_indexes(connection, database, table):
        hashed = set()
    return tuple(
        Key(name, tuple(c for c, _ in key), all(w for _, w in key), name in hashed) for name, key in parts.items()
    )


def _has_such_indexes(connection: Connection[Any], database: str, table: str) -> bool:
    """Whether an index by hash is one of the table's engine, and no column of hashes that MariaDB adds."""
    asked = "SELECT ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
    return any(
        str(engine).upper() in _WITH_HASHES for (engine,) in lenient_rows_of(connection, asked, (database, table))
    )
