"""Tables and columns as the source declares them and as the lake holds them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from cdc_lib.model.column_types import SourceType
from cdc_lib.model.table_name import TableName

__all__ = ["Column", "SourceType", "TableSchema"]


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    Args:
        name: as the source spells it.
        type: its type at the source.
        nullable: whether the source allows NULL.
    """

    name: str
    type: SourceType
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class TableSchema:
    """One version of a table's columns.

    Args:
        database: schema at the source.
        table: name at the source.
        columns: in the order of the source.
        primary_key: names of the key's columns in key order; empty when the table has none.
    """

    database: str
    table: str
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...] = ()

    @property
    def name(self) -> TableName:
        """The table."""
        return TableName(self.database, self.table)

    @property
    def id(self) -> str:
        """Twelve hex digits that change when a column changes; nullability and declared text are ignored."""
        facts = [(c.name, c.type.kind, c.type.lake_type, c.type.scale) for c in self.columns]
        text = json.dumps([self.database, self.table, facts, self.primary_key])
        return hashlib.sha256(text.encode()).hexdigest()[:12]
