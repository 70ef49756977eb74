"""Policies for values that the lake's types cannot hold."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from cdc_lib.model.schema import TableSchema

ZeroDates = Literal["null", "string", "error"]
InvalidText = Literal["error", "replace"]
LegacyTemporals = Literal["error", "no_fraction"]

OnError = Literal["stop", "quarantine"]
"""Policy for a fault in one table: stop the whole window, or quarantine the table."""


@dataclass(frozen=True, slots=True)
class ValuePolicy:
    """The source file's policies for such values; the same for row images and result sets.

    Args:
        zero_dates: a date with a zero part: store NULL, fail, or store every date column as the text that SELECT shows.
        invalid_text: bytes that are not valid in the column's character set: fail, or replace them with U+FFFD.
        legacy_temporals: MariaDB columns in the format before 5.6, whose fractional digits are not in the binlog: fail, or
            accept them because no column has fractions.
    """

    zero_dates: ZeroDates = "null"
    invalid_text: InvalidText = "error"
    legacy_temporals: LegacyTemporals = "error"

    @property
    def replaces(self) -> bool:
        """Whether invalid bytes are replaced with U+FFFD."""
        return self.invalid_text == "replace"

    def applied(self, schema: TableSchema) -> TableSchema:
        """Return the schema as stored: with dates as text if configured."""
        if self.zero_dates != "string":
            return schema
        columns = tuple(
            replace(column, type=replace(column.type, as_text=True)) if column.type.family.is_date else column
            for column in schema.columns
        )
        return replace(schema, columns=columns)
