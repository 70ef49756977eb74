"""Names and values as they are in Spark SQL."""

from __future__ import annotations

from collections.abc import Mapping

from cdc_lib.model.lake_table import LakeName
from cdc_lib.model.position import Point


def quoted(name: str) -> str:
    """Return a name in backticks."""
    return f"`{name.replace('`', '``')}`"


def full_name(table: LakeName, branch: str | None = None) -> str:
    """Return a table's name, or that of one of its branches."""
    parts = [table.catalog, *table.namespace, table.name]
    if branch is not None:
        parts.append(f"branch_{branch}")
    return ".".join(map(quoted, parts))


def text_literal(text: str) -> str:
    """Return a string constant; by its bytes, so that no character in it means anything."""
    return f"CAST(X'{text.encode().hex()}' AS STRING)"


def literal(text: str, lake_type: str) -> str:
    """Return a constant of a type from the text that ``CAST(... AS STRING)`` gave of it.

    Binary values come as hex digits.
    """
    if lake_type == "string":
        return text_literal(text)
    if lake_type == "binary":
        return f"X'{text}'"
    return f"CAST('{text}' AS {lake_type})"


def as_text(column: str, lake_type: str) -> str:
    """Return the expression whose text :func:`literal` takes."""
    return f"hex({column})" if lake_type == "binary" else f"CAST({column} AS STRING)"


def struct(columns: tuple[str, ...], relation: str = "") -> str:
    """Return columns as one value that compares field by field."""
    prefix = f"{relation}." if relation else ""
    return f"struct({', '.join(f'{prefix}{quoted(name)}' for name in columns)})"


def point(at: Point) -> str:
    """Return a point as a value that compares with ``struct(epoch, file, offset)``."""
    return f"struct({at.epoch}, {at.file}, {at.offset}L)"


def belongs(columns: Mapping[str, str], relation: str = "") -> list[str]:
    """Return the conditions that say whose rows are meant: a column of text and its value each."""
    prefix = f"{relation}." if relation else ""
    return [f"{prefix}{quoted(name)} = {text_literal(value)}" for name, value in columns.items()]
