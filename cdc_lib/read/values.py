"""Rows as Python values."""

from __future__ import annotations

from typing import Any

import pyarrow as pa


def row_values(rows: pa.Table) -> list[dict[str, Any]]:
    """Return rows as dicts.

    A date or time that Python cannot hold, as one of the year 0, is text.
    """
    columns = {name: _values(column) for name, column in zip(rows.column_names, rows.columns, strict=True)}
    return [{name: values[number] for name, values in columns.items()} for number in range(rows.num_rows)]


def _values(column: pa.ChunkedArray) -> list[Any]:
    if not pa.types.is_temporal(column.type):
        return column.to_pylist()  # type: ignore[no-any-return]
    return [python_value(value) for value in column]


def python_value(value: pa.Scalar) -> Any:
    """Return a date or a time as a Python value; as text if Python cannot hold it."""
    try:
        return value.as_py()
    except (ValueError, OverflowError):
        return str(value.cast(pa.string()).as_py())
