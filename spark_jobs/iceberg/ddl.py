"""SQL that creates Iceberg tables and changes their columns, mode and key."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence

from cdc_lib.lake.evolution import AddColumn, ColumnChange, identifier_fields, lake_columns
from cdc_lib.model.lake_table import KEY_PROPERTY, MODE_COLUMNS, MODE_PROPERTY, LakeName, lake_type
from cdc_lib.model.layout import DEFAULT_LAYOUT, LAYOUT_PROPERTY, Layout, Partition
from cdc_lib.model.lexer import quoted
from cdc_lib.model.schema import TableSchema
from cdc_lib.model.table_mode import IS_CURRENT, IS_DELETED, TO_ORDER, VALID_TO, Mode
from spark_jobs.sql import full_name, plain_literal

SETTINGS = {
    # One delete file for each data file, which the next delete replaces: as deletion vectors, also in format version 2.
    "write.delete.granularity": "file",
    "write.distribution-mode": "none",
    "write.merge.distribution-mode": "none",
    "write.update.distribution-mode": "none",
    "write.delete.distribution-mode": "none",
    "write.target-file-size-bytes": str(64 * 1024**2),
    "write.parquet.compression-codec": "zstd",
    # Small row groups and pages in key order let a reader fetch one row without reading the file. Pages are compressed when they
    # are full, so a row group has about as many bytes as this says in the file.
    "write.parquet.row-group-size-bytes": str(1024**2),
    "write.parquet.page-row-limit": "1000",
    # Each commit writes the whole metadata; ten previous files are kept for readers that opened one of them.
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "10",
    # Each scan and each commit reads all manifests. By default Iceberg lets a hundred gather, one of each merge.
    "commit.manifest.min-count-to-merge": "8",
}
"""Table properties of every table."""
WRITE_MODES = tuple(f"write.{what}.mode" for what in ("merge", "update", "delete"))
COPIES = "copy-on-write"
"""Value of :data:`WRITE_MODES` that also holds without one."""


def create_sql(
    name: LakeName,
    schema: TableSchema,
    mode: Mode,
    properties: Mapping[str, str],
    location: str | None,
    layout: Layout = DEFAULT_LAYOUT,
) -> str:
    """Return the statement that creates an empty table; the source's columns come first.

    Args:
        name: the lake table.
        schema: of the source table.
        mode: how rows are kept.
        properties: properties besides the mode and the key.
        location: of its files; None if the catalog chooses it.
        layout: of its files.
    """
    required = set(identifier_fields(schema, mode))
    columns = ", ".join(
        f"{quoted(column.name)} {column.type}{' NOT NULL' if column.name in required else ''}"
        for column in lake_columns(schema, mode)
    )
    fields = ", ".join(map(str, partitions_of(mode, layout)))
    partitioned = f" PARTITIONED BY ({fields})" if fields else ""
    keeps = {**SETTINGS, **defining_properties(schema.primary_key, mode, layout), **properties}
    at = located(location)
    return f"CREATE TABLE {full_name(name)} ({columns}) USING iceberg{partitioned}{at} TBLPROPERTIES ({_listed(keeps)})"


def defining_properties(key: Sequence[str], mode: Mode, layout: Layout) -> dict[str, str]:
    """Return the table properties that follow from a key, a mode and a layout."""
    counted = (*key, *((IS_CURRENT, VALID_TO, *TO_ORDER) if mode == "scd2" else ()))
    ours = {MODE_PROPERTY: mode, **_key(key), LAYOUT_PROPERTY: layout.to_json()}
    return {**layout_properties(layout), **_counted(counted), **ours}


def partitions_of(mode: Mode, layout: Layout) -> tuple[Partition, ...]:
    """Return the fields of the partition spec."""
    # A merge reads the partition of the current versions, and few files of the others.
    of_mode = (Partition("identity", IS_CURRENT),) if mode == "scd2" else ()
    return (*of_mode, *(one for one in layout.partition_by if one not in of_mode))


def layout_properties(layout: Layout) -> dict[str, str]:
    """Return the Iceberg properties of a layout."""
    kind = layout.write_mode.replace("_", "-")
    modes = dict.fromkeys(WRITE_MODES, kind)
    return {**dict(layout.properties), "format-version": str(layout.format_version), **modes}


def key_clauses(name: LakeName, schema: TableSchema, mode: Mode, layout: Layout = DEFAULT_LAYOUT) -> Iterator[str]:
    """Yield the statements that set the identifier fields and the sort order of a new table."""
    if fields := identifier_fields(schema, mode):
        yield f"ALTER TABLE {full_name(name)} SET IDENTIFIER FIELDS {_names(fields)}"
    if schema.primary_key or layout.sort_by:
        yield order_sql(name, schema.primary_key, layout)


def order_sql(name: LakeName, key: Sequence[str], layout: Layout = DEFAULT_LAYOUT) -> str:
    """Return the statement that makes the layout's order, or the key, the sort order of a table, without a shuffle at writes."""
    order = ", ".join(map(str, layout.sort_by)) or _names(key)
    return f"ALTER TABLE {full_name(name)} WRITE {f'LOCALLY ORDERED BY {order}' if order else 'UNORDERED'}"


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
    return f" LOCATION {plain_literal(location)}" if location is not None else ""


def become_sql(name: LakeName, mode: Mode, have: Collection[str]) -> Iterator[str]:
    """Yield the statements that change the mode of a table with the columns ``have``; the mode is written last."""
    table = full_name(name)
    if mode == "mirror" and IS_DELETED in have:
        yield f"DELETE FROM {table} WHERE {quoted(IS_DELETED)}"
    for column in MODE_COLUMNS[mode]:
        if column not in have:
            yield f"ALTER TABLE {table} ADD COLUMN {quoted(column)} {lake_type(column)}"
    yield set_sql(name, {MODE_PROPERTY: mode})


def key_sql(name: LakeName, key: Sequence[str]) -> str:
    """Return the statement that changes the key of a table."""
    return set_sql(name, {**_counted(key), **_key(key)})


def column_sql(name: LakeName, change: ColumnChange, comment: str = "") -> str:
    """Return the statement that adds a column, with a comment if there is one, or widens it."""
    alter, column = f"ALTER TABLE {full_name(name)}", quoted(change.name)
    if isinstance(change, AddColumn):
        column_order = f"AFTER {quoted(change.after)}" if change.after is not None else "FIRST"
        comments = f"COMMENT {plain_literal(comment)} " if comment else ""
        return f"{alter} ADD COLUMN {column} {change.type} {comments}{column_order}"
    return f"{alter} ALTER COLUMN {column} TYPE {change.type}"


def _counted(columns: Sequence[str]) -> dict[str, str]:
    """Return properties that keep column metrics: by default only for 100 columns, and merges skip files by the key's."""
    return {f"write.metadata.metrics.column.{name}": "full" for name in columns}


def _key(key: Sequence[str]) -> dict[str, str]:
    return {KEY_PROPERTY: json.dumps(key)}


def set_sql(name: LakeName, properties: Mapping[str, str]) -> str:
    """Return the statement that sets table properties."""
    return f"ALTER TABLE {full_name(name)} SET TBLPROPERTIES ({_listed(properties)})"


def _listed(properties: Mapping[str, str]) -> str:
    return ", ".join(f"{plain_literal(name)} = {plain_literal(value)}" for name, value in properties.items())
