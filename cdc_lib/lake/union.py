"""The common columns of several source tables in one lake table: pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cdc_lib.errors import IncompatibleSchema
from cdc_lib.lake.evolution import AddColumn, changes_for, lake_columns
from cdc_lib.lake.modes import mode_of
from cdc_lib.model.lake_table import LakeColumn, LakeTable, Marker
from cdc_lib.model.schema import TableSchema
from cdc_lib.model.table_mode import Mode

Shard = tuple[str, TableSchema]
"""A source table's name and the schema of its rows in the lake."""


def union(lake_table: str, shards: Sequence[Shard], configured: Mode | None = None) -> LakeTable:
    """Return a new lake table that holds the rows of all shards.

    Raises:
        IncompatibleSchema: two of them have different keys, or a column of incompatible types; names both.
    """
    first, schema = shards[0]
    mode = mode_of(schema, configured)
    table = LakeTable(lake_columns(schema, mode), schema.primary_key, mode, Marker(), None, records=0)
    homes = {column.name.lower(): first for column in table.columns}
    for name, schema in shards[1:]:
        try:
            changes = changes_for(table, schema)
        except IncompatibleSchema as error:
            other = homes.get(str(error.context.get("column", "")).lower(), first)
            raise shared_table_error(error, lake_table, (other, name)) from error
        columns = list(table.columns)
        for change in changes:
            homes[change.name.lower()] = name
            if isinstance(change, AddColumn):
                columns.insert(0, LakeColumn(change.name, change.type))
            else:
                columns = [LakeColumn(c.name, change.type) if c.name == change.name else c for c in columns]
        table = replace(table, columns=tuple(columns))
    return table


def shared_table_error(error: IncompatibleSchema, lake_table: str, tables: Sequence[str]) -> IncompatibleSchema:
    """Return the error of one table as an error of all tables that share the lake table."""
    names = " and ".join(dict.fromkeys(tables))
    context = {name: value for name, value in error.context.items() if name not in ("table", "lake_table")}
    return IncompatibleSchema(
        f"{names} share one lake table and are not compatible: {error.message}",
        hint="Give one of them a lake table of its own under routes, or leave the column out under columns.",
        table=names,
        lake_table=lake_table,
        **context,
    )
