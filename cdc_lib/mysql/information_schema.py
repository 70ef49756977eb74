"""Table definitions from information_schema."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import pymysql
from pymysql.connections import Connection

from cdc_lib.config.patterns import SYSTEM_DATABASES
from cdc_lib.errors import SourceError, TableUnreadable
from cdc_lib.model.charset import charset_name
from cdc_lib.model.column_types import BY_NAME, Kind
from cdc_lib.model.comments import TableComments
from cdc_lib.model.lexer import quoted, words
from cdc_lib.model.refusals import NO_SUCH_TABLE
from cdc_lib.model.schema import Column, SourceType, TableSchema
from cdc_lib.model.schema_version import Key, row_key
from cdc_lib.model.table_name import TableName
from cdc_lib.mysql.connection import translated
from cdc_lib.mysql.show_index import unique_keys
from cdc_lib.mysql.statements import lenient_rows_of, rows_of

log = logging.getLogger(__name__)

_ESCAPED = re.compile(r"_\w+\\'")
"""A string with its character set, as MySQL shows it in an expression: its quote has a backslash before it."""

_SYSTEM = tuple(SYSTEM_DATABASES)
"""With BINARY before a name no other database is taken for one of these: MariaDB compares without case."""


class InformationSchema:
    """Reads the current table definitions.

    Args:
        connection: a session on the source.
    """

    def __init__(self, connection: Connection[Any]) -> None:
        """Send nothing yet."""
        self._connection = connection

    def tables(self) -> Sequence[tuple[str, str]]:
        """Return (database, table) of every base table, without the server's own databases."""
        rows = self._rows(
            "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_TYPE = 'BASE TABLE' "
            "AND BINARY TABLE_SCHEMA NOT IN %s ORDER BY TABLE_SCHEMA, TABLE_NAME",
            (_SYSTEM,),
            invalid="surrogateescape",
        )
        if wrong := [(database, table) for database, table in rows if not is_unicode(database + table)]:
            shown = ", ".join(repr(".".join(one).encode("utf-8", "surrogateescape")) for one in wrong)
            log.warning("left out, as their names are no UTF-8: %s; RENAME TABLE gives them others", shown)
        return [one for one in rows if one not in wrong]

    def with_primary_key(self) -> Sequence[tuple[str, str]]:
        """Return (database, table) of every table with a primary key, without the server's own databases."""
        rows = self._rows(
            "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLE_CONSTRAINTS "
            "WHERE CONSTRAINT_TYPE = 'PRIMARY KEY' AND BINARY TABLE_SCHEMA NOT IN %s",
            (_SYSTEM,),
        )
        return [(str(database), str(table)) for database, table in rows]

    def of_engines(self, engines: Sequence[str]) -> dict[tuple[str, str], str]:
        """Return the engine of every table that has one of some engines, without the server's own databases."""
        rows = self._rows(
            "SELECT TABLE_SCHEMA, TABLE_NAME, ENGINE FROM information_schema.TABLES WHERE TABLE_TYPE = 'BASE TABLE' "
            "AND UPPER(ENGINE) IN %s AND BINARY TABLE_SCHEMA NOT IN %s",
            (engines, _SYSTEM),
        )
        return {(str(database), str(table)): str(engine) for database, table, engine in rows}

    def with_date_keys(self, database: str) -> Sequence[str]:
        """Return the tables of a database whose key has a date; MariaDB opens no table of another database for it."""
        rows = self._rows(
            "SELECT DISTINCT TABLE_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s AND COLUMN_KEY = 'PRI' "
            "AND DATA_TYPE IN ('date', 'datetime', 'timestamp')",
            (database,),
        )
        return [str(table) for (table,) in rows]

    def estimated_rows(self) -> dict[tuple[str, str], int]:
        """Return the estimated row count of each base table, from the server's statistics."""
        self._ask_fresh()
        rows = self._rows(
            "SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_ROWS FROM information_schema.TABLES WHERE TABLE_TYPE = 'BASE TABLE' "
            "AND BINARY TABLE_SCHEMA NOT IN %s",
            (_SYSTEM,),
        )
        return {(str(database), str(table)): int(count or 0) for database, table, count in rows}

    def sizes(self) -> dict[tuple[str, str], int]:
        """Return the bytes of the rows of each base table, from the server's statistics, without its other indexes."""
        self._ask_fresh()
        rows = self._rows(
            "SELECT TABLE_SCHEMA, TABLE_NAME, DATA_LENGTH FROM information_schema.TABLES WHERE TABLE_TYPE = 'BASE TABLE' "
            "AND BINARY TABLE_SCHEMA NOT IN %s",
            (_SYSTEM,),
        )
        return {(str(database), str(table)): int(size or 0) for database, table, size in rows}

    def estimated_rows_of(self, schema: TableSchema) -> int:
        """Return the estimated row count of one table, from the server's statistics; 0 if unknown."""
        self._ask_fresh()
        rows = self._rows(
            "SELECT TABLE_ROWS FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s",
            (schema.database, schema.table),
        )
        return int(rows[0][0] or 0) if rows else 0

    def _ask_fresh(self) -> None:
        """Ask for statistics that MySQL does not cache for a day; MariaDB skips the comment."""
        self._rows("SET @fresh = 1 /*!80003 , SESSION information_schema_stats_expiry = 0 */", ())

    def defined(self, databases: Iterable[str]) -> dict[TableName, datetime]:
        """Return when each table of some databases was last defined (UTC): both servers set it at each ALTER TABLE, to the second.

        A table is left out whose engine does not say it.
        """
        if not (names := sorted(set(databases))):
            return {}
        rows = self._rows(
            "SELECT TABLE_SCHEMA, TABLE_NAME, CREATE_TIME FROM information_schema.TABLES WHERE TABLE_TYPE = 'BASE TABLE' "
            "AND TABLE_SCHEMA IN %s AND CREATE_TIME IS NOT NULL",
            (names,),
        )
        return {TableName(str(database), str(table)): at.replace(tzinfo=UTC) for database, table, at in rows}

    def versioned(self) -> Sequence[tuple[str, str]]:
        """Return (database, table) of every table WITH SYSTEM VERSIONING (MariaDB)."""
        rows = self._rows(
            "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_TYPE = %s "
            "ORDER BY TABLE_SCHEMA, TABLE_NAME",
            ("SYSTEM VERSIONED",),
        )
        return [(str(database), str(table)) for database, table in rows]

    def schema(self, database: str, table: str) -> TableSchema | None:
        """Return a table's columns and key, or None when there is no such table."""
        columns = self._rows(
            "SELECT COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, IS_NULLABLE, NUMERIC_PRECISION, NUMERIC_SCALE, "
            "DATETIME_PRECISION, CHARACTER_SET_NAME, CHARACTER_OCTET_LENGTH FROM information_schema.COLUMNS "
            "WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s ORDER BY ORDINAL_POSITION",
            (database, table),
            TableName(database, table),
            invalid="surrogateescape",
        )
        if not columns:
            self.exists(database, table)
            return None
        parsed = tuple(Column(str(row[0]), source_type(*row[1:3], *row[4:]), row[3] == "YES") for row in columns)
        key = row_key(self._keys(database, table), frozenset(c.name.lower() for c in parsed if c.nullable))
        names = (*(text for row in columns for text in (row[0], row[2])), key.name if key else "")
        if wrong := next((name for name in names if not is_unicode(name)), None):
            raise TableUnreadable(
                f"a name or label of the table is no text: {wrong.encode('utf-8', 'surrogateescape')!r}",
                hint="ALTER TABLE ... CHANGE corrects it; or exclude the table in the source file.",
                table=TableName(database, table),
            )
        return TableSchema(database, table, parsed, key.columns if key else ())

    def exists(self, database: str, table: str) -> bool:
        """Whether there is a table, also if information_schema leaves it out; waits while a statement changes it.

        Raises:
            TableUnreadable: there is one that cannot be opened, or that the user cannot see.
        """
        try:
            rows_of(self._connection, f"SELECT 1 FROM {quoted(database)}.{quoted(table)} LIMIT 0")
        except pymysql.MySQLError as error:
            if error.args[0] not in NO_SUCH_TABLE:
                raise translated(error, self._connection, TableName(database, table)) from error
            return False
        return True

    def comments(self, database: str, table: str) -> TableComments | None:
        """Return the comments of a table and its columns, or None when there is no such table; what is no UTF-8 in them is U+FFFD."""
        name = TableName(database, table)
        of_table = self._rows(
            "SELECT TABLE_COMMENT FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s "
            "AND TABLE_TYPE = 'BASE TABLE'",
            (database, table),
            name,
        )
        if not of_table:
            return None
        columns = self._rows(
            "SELECT COLUMN_NAME, COLUMN_COMMENT FROM information_schema.COLUMNS "
            "WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s ORDER BY ORDINAL_POSITION",
            (database, table),
            name,
        )
        return TableComments(name, str(of_table[0][0] or ""), {str(one): str(text) for one, text in columns if text})

    def collations(self, schema: TableSchema) -> dict[str, str]:
        """Return the collations of the text columns."""
        rows = self._rows(
            "SELECT COLUMN_NAME, COLLATION_NAME FROM information_schema.COLUMNS "
            "WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND COLLATION_NAME IS NOT NULL",
            (schema.database, schema.table),
            schema.name,
        )
        return {str(name): str(collation) for name, collation in rows}

    def key_name(self, schema: TableSchema) -> str:
        """Return the name of the key that identifies a table's rows; empty if it no longer has one, or one of whole columns."""
        keys = self._keys(schema.database, schema.table)
        return next((key.name for key in keys if key.whole and key.columns == schema.primary_key), "")

    def _keys(self, database: str, table: str) -> tuple[Key, ...]:
        try:
            return unique_keys(self._connection, database, table)
        except pymysql.MySQLError as error:
            if error.args[0] in NO_SUCH_TABLE:  # it was dropped meanwhile
                return ()
            raise translated(error, self._connection, TableName(database, table)) from error

    def generated_columns(self, database: str, table: str, *, stored: bool) -> frozenset[str]:
        """Return the names of a table's virtual columns in MariaDB, and with ``stored`` those of its stored generated ones."""
        rows = self._rows(
            "SELECT COLUMN_NAME FROM information_schema.COLUMNS "
            "WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND EXTRA LIKE %s",
            (database, table, "%GENERATED%" if stored else "%VIRTUAL GENERATED%"),
            TableName(database, table),
        )
        return frozenset(str(name) for (name,) in rows)

    def generated_from(self, database: str, table: str | None) -> dict[str, str]:
        """Return the expressions of a table's generated columns; without a table, those of all of the database."""
        chosen = () if table is None else (table,)
        rows = self._rows(
            "SELECT COLUMN_NAME, GENERATION_EXPRESSION FROM information_schema.COLUMNS "
            f"WHERE TABLE_SCHEMA = %s{' AND TABLE_NAME = %s' if chosen else ''} AND GENERATION_EXPRESSION <> '' ORDER BY ORDINAL_POSITION",
            (database, *chosen),
            TableName(database, table) if table is not None else "",
        )
        return {str(name): _unescaped(str(expression)) for name, expression in rows}

    def _rows(
        self, sql: str, arguments: Sequence[object], table: str = "", *, invalid: str = "replace"
    ) -> list[tuple[Any, ...]]:
        try:
            return lenient_rows_of(self._connection, sql, arguments, invalid=invalid)
        except pymysql.MySQLError as error:
            if table:
                raise translated(error, self._connection, table) from error
            raise SourceError(f"the table definitions cannot be read: {error}") from error


def _unescaped(expression: str) -> str:
    """Return an expression of a generated column as SQL: MySQL shows its strings with a backslash before each quote."""
    return re.sub(r"\\(.)", r"\1", expression, flags=re.DOTALL) if _ESCAPED.search(expression) else expression


def is_unicode(text: str) -> bool:
    """Whether a text that was read with ``surrogateescape`` held only UTF-8."""
    return not any("\udc80" <= one <= "\udcff" for one in text)


def source_type(  # noqa: PLR0911 - one return per family
    data_type: str,
    column_type: str,
    precision: int | None,
    scale: int | None,
    fraction: int | None,
    charset: str | None,
    octets: int | None,
) -> SourceType:
    """Return the type that a row of information_schema.COLUMNS declares."""
    entry = BY_NAME.get(data_type.lower())
    kind: Kind = entry.kind if entry is not None else "unsupported"
    text = column_type
    width = 0 if entry is None else int(octets or 0) if entry.measured else entry.width
    match kind:
        case "int":
            return SourceType(kind, width=width, unsigned="unsigned" in column_type.lower(), text=text)
        case "string":
            return SourceType(kind, width=width, charset=charset_name(charset or ""), text=text)
        case "bytes":
            return SourceType(
                kind, width=width, charset="binary", text=text, form=entry.form if entry is not None else ""
            )
        case "decimal":
            return SourceType(kind, precision=int(precision or 0), scale=int(scale or 0), text=text)
        case "float" | "double" | "date" | "year" | "json":
            return SourceType(kind, text=text)
        case "time" | "datetime" | "timestamp":
            return SourceType(kind, scale=int(fraction or 0), text=text)
        case "bit":
            return SourceType(kind, width=int(precision or 1), text=text)
        case "enum" | "set":
            # Servers escape the labels in a column's type in every SQL mode (both: append_unescaped).
            members = tuple(word.text for word in words(column_type) if word.kind == "string")
            return SourceType(kind, charset=charset_name(charset or "binary"), members=members, text=text)
    return SourceType("unsupported", text=text)
