"""What becomes of values that the lake's types cannot hold as they are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from cdc_lib.model.schema import TableSchema

ZeroDates = Literal["null", "string", "error"]
InvalidText = Literal["error", "replace"]
LegacyTemporals = Literal["error", "no_fraction"]

OnError = Literal["stop", "quarantine"]
"""What becomes of a table of which something is not understood: the whole window stops, or the table is quarantined."""


@dataclass(frozen=True, slots=True)
class ValuePolicy:
    """What the source file says of such values; the same for row images and result sets.

    Args:
        zero_dates: of a date with a zero part: NULL, a fault, or every date column is kept as the text that SELECT shows.
        invalid_text: of bytes that are no text of the column's character set: a fault, or U+FFFD in their place.
        legacy_temporals: of MariaDB's columns in the format before 5.6, whose fraction the binlog does not tell: a fault, or
            the promise that none of them has one.
    """

    zero_dates: ZeroDates = "null"
    invalid_text: InvalidText = "error"
    legacy_temporals: LegacyTemporals = "error"

    @property
    def replaces(self) -> bool:
        """Whether U+FFFD stands for what is no text."""
        return self.invalid_text == "replace"

    def applied(self, schema: TableSchema) -> TableSchema:
        """Return the schema as it is kept: with dates as text where that is asked for."""
        if self.zero_dates != "string":
            return schema
        columns = tuple(
            replace(column, type=replace(column.type, as_text=True)) if column.type.family.is_date else column
            for column in schema.columns
        )
        return replace(schema, columns=columns)
