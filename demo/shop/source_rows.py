"""Reads a table of the source exactly, by plain SELECT, into Arrow, independent of the product.

The server writes each value as text, and Arrow casts it to the type that ``information_schema`` declares. No code of
``cdc_lib`` is used, so that a mistake there is not repeated in the comparison.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pymysql.connections import Connection
from pymysql.converters import encoders
from pymysql.cursors import SSCursor

FETCH_ROWS = 20_000


@dataclass(frozen=True)
class SourceColumn:
    """A column of ``information_schema.columns``, with the Arrow type of its values."""

    name: str
    select: str
    type: pa.DataType


@dataclass(frozen=True)
class SourceTable:
    """A table's rows, columns in the source's order; ``key`` is empty without a primary key."""

    name: str
    key: tuple[str, ...]
    columns: tuple[SourceColumn, ...]
    rows: pa.Table


def table_names(connection: Connection[Any], database: str) -> list[str]:
    """Return the base tables of a database."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = %s AND table_type = 'BASE TABLE' "
            "ORDER BY table_name",
            [database],
        )
        return [name for (name,) in cursor.fetchall()]


def read(connection: Connection[Any], database: str, table: str) -> SourceTable:
    """Read every row.

    Args:
        connection: with the options of :func:`exact`, so that values arrive as the server's text.
        database: schema of the table.
        table: its name.
    """
    columns = _columns(connection, database, table)
    with connection.cursor(SSCursor) as cursor:
        cursor.execute(f"SELECT {', '.join(column.select for column in columns)} FROM `{database}`.`{table}`")
        batches = []
        while rows := cursor.fetchmany(FETCH_ROWS):
            arrays = [_array(column, values) for column, values in zip(columns, zip(*rows, strict=True), strict=True)]
            batches.append(pa.record_batch(arrays, names=[column.name for column in columns]))
    schema = pa.schema([(column.name, column.type) for column in columns])
    return SourceTable(table, _key(connection, database, table), columns, pa.Table.from_batches(batches, schema))


def exact(options: dict[str, Any]) -> dict[str, Any]:
    """Return connection options with which every value is the server's text, in UTC."""
    # Without decoders, and without an sql_mode that changes values (such as PAD_CHAR_TO_FULL_LENGTH).
    return {
        **options,
        "conv": encoders,
        "charset": "utf8mb4",
        "init_command": "SET time_zone = '+00:00', sql_mode = ''",
    }


def _columns(connection: Connection[Any], database: str, table: str) -> tuple[SourceColumn, ...]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT column_name, data_type, column_type, numeric_precision, numeric_scale "
            "FROM information_schema.columns WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position",
            [database, table],
        )
        return tuple(_column(*(_text(value) for value in row)) for row in cursor.fetchall())


def _key(connection: Connection[Any], database: str, table: str) -> tuple[str, ...]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT column_name FROM information_schema.statistics WHERE table_schema = %s AND table_name = %s "
            "AND index_name = 'PRIMARY' ORDER BY seq_in_index",
            [database, table],
        )
        return tuple(str(_text(name)) for (name,) in cursor.fetchall())


def _text(value: Any) -> str:
    """Decode a value of ``information_schema``, which some servers send as bytes."""
    return value.decode() if isinstance(value, bytes) else str(value)


_TYPES: dict[str, pa.DataType] = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "year"), pa.int32()),
    "int unsigned": pa.int64(),
    "bigint": pa.int64(),
    "bigint unsigned": pa.decimal128(20, 0),
    **dict.fromkeys(("char", "varchar", "tinytext", "text", "mediumtext", "longtext"), pa.string()),
    **dict.fromkeys(("enum", "set", "json", "time"), pa.string()),
    **dict.fromkeys(("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"), pa.binary()),
    **dict.fromkeys(("geometry", "point"), pa.binary()),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "datetime": pa.timestamp("us"),
    "timestamp": pa.timestamp("us", "UTC"),
}
_SELECTED_AS = {"bit": "{}+0", "float": "{}+0e0"}
"""A BIT as a number, and a FLOAT as its exact double: the server rounds the text of a FLOAT."""


def _column(name: str, data_type: str, column_type: str, precision: str, scale: str) -> SourceColumn:
    """Return the SELECT expression of a column and the Arrow type of its lake type."""
    select = _SELECTED_AS.get(data_type, "{}").format(f"`{name}`")
    if data_type == "decimal":
        return SourceColumn(name, select, pa.decimal128(int(precision), int(scale)))
    if data_type == "bit":
        return SourceColumn(name, select, pa.int64() if int(precision) < 64 else pa.decimal128(20, 0))
    unsigned = _TYPES.get(f"{data_type} unsigned") if "unsigned" in column_type else None
    found = unsigned or _TYPES.get(data_type)
    if found is None:
        raise NotImplementedError(f"the comparison does not know the type {column_type} of {name}")
    return SourceColumn(name, select, found)


def _array(column: SourceColumn, values: tuple[Any, ...]) -> pa.Array:
    if pa.types.is_binary(column.type):
        return pa.array([value.encode() if isinstance(value, str) else value for value in values], pa.binary())
    text = pa.array([value.decode() if isinstance(value, bytes) else value for value in values], pa.string())
    if pa.types.is_string(column.type):
        return text
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        zero = pc.starts_with(text, "0000-00-00")  # no date type holds it; the lake has null for it
        text = pc.if_else(pc.fill_null(zero, False), pa.scalar(None, pa.string()), text)
    if pa.types.is_timestamp(column.type) and column.type.tz:
        return pc.assume_timezone(pc.cast(text, pa.timestamp("us")), column.type.tz)
    if pa.types.is_float32(column.type):
        return pc.cast(pc.cast(text, pa.float64()), pa.float32(), safe=False)
    return pc.cast(text, column.type)
