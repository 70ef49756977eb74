"""SQL that creates Iceberg tables and changes their columns, mode and key: format version 3, merge-on-read."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence

from cdc_lib.lake.evolution import AddColumn, ColumnChange, identifier_fields, lake_columns
from cdc_lib.model.lake_table import KEY_PROPERTY, MODE_COLUMNS, MODE_PROPERTY, LakeName, lake_type
from cdc_lib.model.lexer import quoted
from cdc_lib.model.schema import TableSchema
from cdc_lib.model.table_mode import IS_CURRENT, IS_DELETED, TO_ORDER, VALID_TO, Mode
from spark_jobs.sql import full_name

SETTINGS = {
    "format-version": "3",
    "write.merge.mode": "merge-on-read",
    "write.update.mode": "merge-on-read",
    "write.delete.mode": "merge-on-read",
    "write.distribution-mode": "none",
    "write.merge.distribution-mode": "none",
    "write.update.distribution-mode": "none",
    "write.delete.distribution-mode": "none",
    "write.target-file-size-bytes": str(64 * 1024**2),
    "write.parquet.compression-codec": "zstd",
    # Small row groups in key order let a reader fetch one row without reading the file.
    "write.parquet.row-group-size-bytes": str(2 * 1024**2),
    # Each commit writes the whole metadata; ten previous files are kept for readers that opened one of them.
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "10",
}
"""Table properties of every table."""


def create_sql(
    name: LakeName, schema: TableSchema, mode: Mode, properties: Mapping[str, str], location: str | None
) -> str:
    """Return the statement that creates an empty table; the source's columns come first.

    Args:
        name: the lake table.
        schema: of the source table.
        mode: how rows are kept.
        properties: properties besides the mode and the key.
        location: of its files; None if the catalog chooses it.
    """
    required = set(identifier_fields(schema, mode))
    columns = ", ".join(
        f"{quoted(column.name)} {column.type}{' NOT NULL' if column.name in required else ''}"
        for column in lake_columns(schema, mode)
    )
    counted = (*schema.primary_key, *((IS_CURRENT, VALID_TO, *TO_ORDER) if mode == "scd2" else ()))
    # A merge reads the partition of the current versions, and few files of the others.
    partitioned = f" PARTITIONED BY ({quoted(IS_CURRENT)})" if mode == "scd2" else ""
    keeps = {**SETTINGS, **_counted(counted), MODE_PROPERTY: mode, **_key(schema.primary_key), **properties}
    at = located(location)
    return f"CREATE TABLE {full_name(name)} ({columns}) USING iceberg{partitioned}{at} TBLPROPERTIES ({_listed(keeps)})"


def key_clauses(name: LakeName, schema: TableSchema, mode: Mode) -> Iterator[str]:
    """Yield the statements that set the identifier fields and the sort order of a new table."""
    if fields := identifier_fields(schema, mode):
        yield f"ALTER TABLE {full_name(name)} SET IDENTIFIER FIELDS {_names(fields)}"
    if schema.primary_key:
        yield order_sql(name, schema.primary_key)


def order_sql(name: LakeName, key: Sequence[str]) -> str:
    """Return the statement that makes a key the sort order of a table, without a shuffle at writes."""
    return f"ALTER TABLE {full_name(name)} WRITE LOCALLY ORDERED BY {_names(key)}"


def forget_identity_sql(name: LakeName, fields: Sequence[str], required: Sequence[str]) -> Iterator[str]:
    """Yield the statements that drop the identifier fields, and make required columns nullable."""
    if fields:
        yield f"ALTER TABLE {full_name(name)} DROP IDENTIFIER FIELDS {_names(fields)}"
    for column in required:
        yield f"ALTER TABLE {full_name(name)} ALTER COLUMN {quoted(column)} DROP NOT NULL"


def _names(columns: Sequence[str]) -> str:
    return ", ".join(map(quoted, columns))


def located(location: str | None) -> str:
    """Return the LOCATION clause; empty if the catalog chooses the location."""
    return f" LOCATION {_property(location)}" if location is not None else ""


def become_sql(name: LakeName, mode: Mode, have: Collection[str]) -> Iterator[str]:
    """Yield the statements that change the mode of a table with the columns ``have``; the mode is written last."""
    table = full_name(name)
    if mode == "mirror" and IS_DELETED in have:
        yield f"DELETE FROM {table} WHERE {quoted(IS_DELETED)}"
    for column in MODE_COLUMNS[mode]:
        if column not in have:
            yield f"ALTER TABLE {table} ADD COLUMN {quoted(column)} {lake_type(column)}"
    yield _set(name, {MODE_PROPERTY: mode})


def key_sql(name: LakeName, key: Sequence[str]) -> str:
    """Return the statement that changes the key of a table."""
    return _set(name, {**_counted(key), **_key(key)})


def column_sql(name: LakeName, change: ColumnChange) -> str:
    """Return the statement that adds or widens a column."""
    alter, column = f"ALTER TABLE {full_name(name)}", quoted(change.name)
    if isinstance(change, AddColumn):
        column_order = f"AFTER {quoted(change.after)}" if change.after is not None else "FIRST"
        return f"{alter} ADD COLUMN {column} {change.type} {column_order}"
    return f"{alter} ALTER COLUMN {column} TYPE {change.type}"


def _counted(columns: Sequence[str]) -> dict[str, str]:
    """Return properties that keep column metrics: by default only for 100 columns, and merges skip files by the key's."""
    return {f"write.metadata.metrics.column.{name}": "full" for name in columns}


def _key(key: Sequence[str]) -> dict[str, str]:
    return {KEY_PROPERTY: json.dumps(key)}


def _set(name: LakeName, properties: Mapping[str, str]) -> str:
    return f"ALTER TABLE {full_name(name)} SET TBLPROPERTIES ({_listed(properties)})"


def _listed(properties: Mapping[str, str]) -> str:
    return ", ".join(f"{_property(name)} = {_property(value)}" for name, value in properties.items())


def _property(text: str) -> str:
    """Return a string literal for TBLPROPERTIES, which allows no expression."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
