"""Table definitions with the keys and default character sets that later DDL statements depend on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pymysql
from pymysql.connections import Connection

from cdc_lib.model.charset import charset_name, charset_of_collation
from cdc_lib.model.lexer import quoted
from cdc_lib.model.refusals import NO_SUCH_TABLE
from cdc_lib.model.schema import TableSchema
from cdc_lib.model.schema_version import Definition
from cdc_lib.model.table_name import TableName
from cdc_lib.mysql.connection import translated
from cdc_lib.mysql.information_schema import InformationSchema
from cdc_lib.mysql.show_index import unique_keys
from cdc_lib.mysql.statements import rows_of


class Definitions:
    """Reads current definitions under a metadata lock.

    Args:
        connection: a session on the source for this purpose alone.
    """

    def __init__(self, connection: Connection[Any]) -> None:
        """Send nothing yet."""
        self._connection = connection

    @contextmanager
    def locked(self, database: str, table: str) -> Iterator[Definition | None]:
        """Give a table's definition, or None if there is no such table.

        While the block runs no statement can change the table: the definition contains exactly the statements up to the
        binlog's end at that moment.
        """
        try:
            rows_of(self._connection, "START TRANSACTION")
            exists = self._open(database, table)
            yield self._read(database, table) if exists else None
            rows_of(self._connection, "ROLLBACK")
        except pymysql.MySQLError as error:
            raise translated(error, self._connection, TableName(database, table)) from error

    def database(self, database: str) -> Definition | None:
        """Return a database's default character set, or None if there is no such database."""
        rows = rows_of(
            self._connection,
            "SELECT DEFAULT_CHARACTER_SET_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = %s",
            (database,),
        )
        return Definition(TableSchema(database, "", ()), charset_name(str(rows[0][0]))) if rows else None

    def _open(self, database: str, table: str) -> bool:
        """Take a reader's metadata lock until the transaction ends; False if there is no such table."""
        try:
            rows_of(self._connection, f"SELECT 1 FROM {quoted(database)}.{quoted(table)} LIMIT 0")
        except pymysql.MySQLError as error:
            if error.args[0] in NO_SUCH_TABLE:
                return False
            raise
        return True

    def _read(self, database: str, table: str) -> Definition | None:
        schema = InformationSchema(self._connection).schema(database, table)
        if schema is None:
            return None
        # Not joined with COLLATIONS: since 10.10 MariaDB lists some collations there without their character sets.
        collation = rows_of(
            self._connection,
            "SELECT TABLE_COLLATION FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s",
            (database, table),
        )
        keys = unique_keys(self._connection, database, table)
        return Definition(schema, charset_of_collation(str(collation[0][0] or "")) if collation else "", keys)
