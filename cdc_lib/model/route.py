"""Routing of a source table's rows into lake tables, with the columns that routes add."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from cdc_lib.errors import IncompatibleSchema
from cdc_lib.model.schema import Column, SourceType, TableSchema
from cdc_lib.model.table_mode import Mode
from cdc_lib.model.table_name import TableName

SourceKey = Literal["server", "schema", "table"]

SOURCE_KEYS: dict[SourceKey, str] = {
    "server": "_source_server",
    "schema": "_source_schema",
    "table": "_source_table",
}
"""Columns with the origin of a row in a lake table of several source tables; part of its key, in this order.

The server is the source's name: it does not change at a failover.
"""


def _everything(_: str) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Target:
    """One lake table of a source table.

    Args:
        database: database of the lake table; ``lake.namespace`` derives the namespace from it.
        table: name of the lake table.
        routed: whether a route names it; else it has the source table's name.
        keys: columns that are added to the row and to its key.
        where: predicates; a row must match all of them.
        keeps: whether a column, by its name, goes there.
        mode: its mode; None if the source file does not set it.
    """

    database: str
    table: str
    routed: bool = False
    keys: tuple[SourceKey, ...] = ()
    where: tuple[str, ...] = ()
    keeps: Callable[[str], bool] = _everything
    mode: Mode | None = None

    @property
    def name(self) -> TableName:
        """``database.table`` in the lake."""
        return TableName(self.database, self.table)

    def constants(self, source: str, database: str, table: str) -> dict[str, str]:
        """Return the added columns of one source table's rows, with their values."""
        values: dict[SourceKey, str] = {"server": source, "schema": database, "table": table}
        return {column: values[key] for key, column in SOURCE_KEYS.items() if key in self.keys}


def routed_schema(schema: TableSchema, target: Target) -> TableSchema:
    """Return the schema of a source table's rows in a lake table.

    Raises:
        IncompatibleSchema: a column has the name of an added one, or the route leaves out a key column.
    """
    added = tuple(SOURCE_KEYS[key] for key in SOURCE_KEYS if key in target.keys)
    columns = tuple(column for column in schema.columns if target.keeps(column.name))
    names = {column.name for column in columns}
    _refuse_clashes(schema, target, names, added)
    if not added:
        return replace(schema, columns=columns)
    text = SourceType("string", charset="utf8mb4", text="source")
    key = (*added, *schema.primary_key) if schema.primary_key else ()
    more = tuple(Column(name, text, nullable=False) for name in added)
    return replace(schema, columns=(*columns, *more), primary_key=key)


def _refuse_clashes(schema: TableSchema, target: Target, names: set[str], added: tuple[str, ...]) -> None:
    clash = {name.lower() for name in names} & set(added)
    if clash:
        raise IncompatibleSchema(
            f"column {min(clash)} has the name of a column that the route into {target.name} adds",
            hint="Rename the column at the source, leave it out under columns, or take the key out of the route.",
            table=schema.name,
        )
    lost = [name for name in schema.primary_key if name not in names]
    if lost:
        raise IncompatibleSchema(
            f"the route into {target.name} leaves out column {lost[0]}, which belongs to the primary key",
            hint="Keep the column in the route.",
            table=schema.name,
            column=lost[0],
        )
