"""The columns of a lake table as Arrow types, and their columns in data files, found by field id."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.schema import Schema
from pyiceberg.types import IcebergType, NestedField

from cdc_lib.errors import ConfigError
from cdc_lib.lake.arrow_types import arrow_of


@dataclass(frozen=True, slots=True)
class ReadColumn:
    """A column of a lake table.

    Args:
        name: in the schema of the snapshot.
        field_id: Iceberg's id, which stays when the column is renamed.
        type: Arrow type of its values.
        default: the value in files that were written before the column was added.
    """

    name: str
    field_id: int
    type: pa.DataType
    default: Any = None

    @property
    def field(self) -> pa.Field:
        """The column in a result."""
        return pa.field(self.name, self.type)


class Columns:
    """The columns of one snapshot of a lake table, in order.

    Args:
        schema: of the snapshot.
        table: name of the table, for errors.
    """

    def __init__(self, schema: Schema, table: str) -> None:
        self._table = table
        self._fields = {one.name: one for one in schema.fields}
        self.by_id = {one.field_id: one.name for one in schema.fields}
        self._chosen: dict[str, ReadColumn] = {}
        self._all: tuple[ReadColumn, ...] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all columns."""
        return tuple(self._fields)

    @property
    def types(self) -> dict[str, IcebergType]:
        """The type of each column as Iceberg has it, by name."""
        return {name: one.field_type for name, one in self._fields.items()}

    @property
    def readable(self) -> tuple[ReadColumn, ...]:
        """All columns but those whose type cannot be read without Spark."""
        return self.choose(name for name, one in self._fields.items() if _arrow_of(one) is not None)

    def choose(self, names: Iterable[str] | None) -> tuple[ReadColumn, ...]:
        """Return columns by their names; all for None.

        Raises:
            ConfigError: there is no such column, it is named twice, or its type cannot be read.
        """
        if names is None:
            if self._all is None:
                self._all = tuple(map(self.named, self._fields))
            return self._all
        chosen = list(names)
        if isinstance(names, str) or len(set(chosen)) < len(chosen):
            raise ConfigError("columns is a list of different names", hint='For example columns=["id", "state"].')
        return tuple(map(self.named, chosen))

    def named(self, name: str) -> ReadColumn:
        """Return a column.

        Raises:
            ConfigError: there is no such column, or its type cannot be read.
        """
        if (known := self._chosen.get(name)) is not None:
            return known
        if name not in self._fields:
            raise ConfigError(
                f"the lake table has no column {name}",
                hint=f"It has {', '.join(self._fields)}.",
                table=self._table,
            )
        found = self._chosen[name] = _column(self._fields[name], self._table)
        return found


def _column(field: NestedField, table: str) -> ReadColumn:
    if (kind := _arrow_of(field)) is None:
        raise ConfigError(
            f"column {field.name} has the type {field.field_type}, which is not read without Spark",
            hint="Name the other columns.",
            table=table,
        )
    return ReadColumn(field.name, field.field_id, kind, field.initial_default)


def _arrow_of(field: NestedField) -> pa.DataType | None:
    """Return the Arrow type of a column; None if it cannot be read without Spark."""
    try:
        return arrow_of(str(field.field_type))
    except KeyError:
        return None


def in_order(tables: Sequence[pa.Table], columns: Sequence[ReadColumn]) -> pa.Table:
    """Return the rows of tables as one, with these columns."""
    schema = pa.schema([column.field for column in columns])
    return pa.concat_tables([one.select(schema.names) for one in tables]) if tables else schema.empty_table()


def default_array(column: ReadColumn, count: int) -> pa.Array:
    """Return the values of a column that a file lacks."""
    if column.default is None:
        return pa.nulls(count, column.type)
    value = column.default
    if not isinstance(value, str) or column.type == pa.string():
        return pa.repeat(pa.scalar(value, column.type), count)
    return pa.repeat(pc.cast(pa.scalar(value), column.type), count)
