"""Policies for values that the lake's types cannot hold."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from cdc_lib.model.schema import Column, TableSchema
from cdc_lib.model.table_name import TableName

ZeroDates = Literal["null", "string", "error"]
InvalidText = Literal["error", "replace"]
LegacyTemporals = Literal["error", "no_fraction"]

OnError = Literal["stop", "quarantine"]
"""Policy for a fault in one table: stop the whole window, or quarantine the table."""


@dataclass(frozen=True, slots=True)
class ValuePolicy:
    """The source file's policies for such values; the same for row images and result sets.

    Law: of a column of the key no value becomes null and no two become one. So a policy that loses a value does not apply to the
    key: see :meth:`of`. A value of ENUM or SET that looks like another one is refused in a key.

    Args:
        zero_dates: a date with a zero part: store NULL, fail, or store every date column as the text that SELECT shows.
        invalid_text: bytes that are not valid in the column's character set: fail, or replace them with U+FFFD.
        legacy_temporals: MariaDB columns in the format before 5.6, whose fractional digits are not in the binlog: fail, or
            accept them because no column has fractions.
        text_keys: tables whose key had a date with a zero part: the lake holds the dates of their keys as text.
        in_key: whether these are the policies of a column of a key.
    """

    zero_dates: ZeroDates = "null"
    invalid_text: InvalidText = "error"
    legacy_temporals: LegacyTemporals = "error"
    text_keys: Collection[TableName] = frozenset()
    in_key: bool = False

    @property
    def nulls_dates(self) -> bool:
        """Whether a date with a zero part becomes NULL."""
        return self.zero_dates != "error" and not self.in_key

    @property
    def replaces(self) -> bool:
        """Whether invalid bytes are replaced with U+FFFD."""
        return self.invalid_text == "replace" and not self.in_key

    def of(self, schema: TableSchema, column: Column) -> ValuePolicy:
        """Return the policies of one column: those of the key keep every value apart."""
        return replace(self, in_key=True) if column.name in schema.primary_key else self

    def has_date_texts(self, table: TableName) -> bool:
        """Whether the lake holds dates of a table as text, at least those of its key."""
        return self.zero_dates == "string" or table in self.text_keys

    def applied(self, schema: TableSchema) -> TableSchema:
        """Return the schema as stored: with dates as text, all if configured, or those of the key."""
        if not self.has_date_texts(schema.name):
            return schema
        columns = tuple(
            replace(column, type=replace(column.type, as_text=True)) if self._is_text(schema, column) else column
            for column in schema.columns
        )
        return replace(schema, columns=columns)

    def _is_text(self, schema: TableSchema, column: Column) -> bool:
        return column.type.family.is_date and (self.zero_dates == "string" or column.name in schema.primary_key)

    def as_held(self, schema: TableSchema, lake_types: Mapping[str, str]) -> ValuePolicy:
        """Return the policies with which a lake table was written.

        Args:
            schema: of the source table.
            lake_types: types of the lake table's columns, by their names in lower case; empty without a lake table.
        """
        held = {
            column.name: lake_types.get(column.name.lower()) for column in schema.columns if column.type.family.is_date
        }
        texts = any(held.get(name) == "string" for name in schema.primary_key)
        return replace(self, text_keys=frozenset([schema.name])) if texts else self
