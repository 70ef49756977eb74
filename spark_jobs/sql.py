"""Writes names and values as Spark SQL."""

from __future__ import annotations

from collections.abc import Mapping

from cdc_lib.model.lake_table import LakeName
from cdc_lib.model.lexer import quoted
from cdc_lib.model.position import Point


def full_name(table: LakeName) -> str:
    """Return a table's name."""
    return ".".join(map(quoted, (table.catalog, *table.namespace, table.name)))


def text_literal(text: str) -> str:
    """Return a string literal, written as bytes so that no character is special."""
    return f"CAST(X'{text.encode().hex()}' AS STRING)"


def plain_literal(text: str) -> str:
    """Return a string literal where no expression is allowed: in TBLPROPERTIES, and in CALL before Spark 4."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def struct(columns: tuple[str, ...]) -> str:
    """Return columns as one struct, which compares field by field."""
    return f"struct({', '.join(map(quoted, columns))})"


def point(at: Point) -> str:
    """Return a point as a struct comparable with ``struct(epoch, file, offset)``."""
    return f"struct({at.epoch}, {at.file}, {at.offset}L)"


def belongs(columns: Mapping[str, str]) -> list[str]:
    """Return the conditions that select the rows of a source table: one for each text column and its value."""
    return [f"{quoted(name)} = {text_literal(value)}" for name, value in columns.items()]
