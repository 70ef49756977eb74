"""Key values as the lake holds them, from the texts in which comparisons keep them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from cdc_lib.model.schema import SourceType
from cdc_lib.verify.canonical_text import Cell, float_of

ARROW = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp_ntz": pa.timestamp("us"),
    "timestamp": pa.timestamp("us", "UTC"),
    "float": pa.float32(),
    "double": pa.float64(),
}
"""Arrow types of lake types; decimals have theirs by their digits."""


def key_columns(cells: Sequence[Cell], keys: Sequence[Sequence[str]]) -> pa.Table:
    """Return keys as the lake holds them, under the names of the source's columns."""
    columns = [_column(cell.column.type, [key[i] for key in keys]) for i, cell in enumerate(cells)]
    return pa.table(columns, names=[cell.column.name for cell in cells])


def _column(kind: SourceType, texts: list[str]) -> pa.Array:
    lake_type = kind.lake_type
    if lake_type == "binary":
        return pa.array([bytes.fromhex(text) for text in texts], pa.binary())
    if lake_type in ("float", "double"):
        return pa.array([float_of(text) for text in texts], ARROW[lake_type])
    column = pa.array(texts, pa.string())
    if lake_type.startswith("decimal"):
        return column.cast(pa.decimal128(*(int(part) for part in lake_type[8:-1].split(","))))
    if lake_type == "timestamp":
        return column.cast(pa.timestamp("us")).cast(pa.int64()).cast(ARROW[lake_type])
    return column.cast(ARROW[lake_type])
