"""Writes rows to a file as CSV or Parquet, while they are read."""

from __future__ import annotations

from typing import IO, Literal

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq


def write(rows: pa.RecordBatchReader, form: Literal["csv", "parquet"], to: IO[bytes]) -> None:
    """Write rows. In CSV bytes are hex digits, null is an empty field, and an empty text is ``""``.

    Args:
        rows: are read while they are written.
        form: csv or parquet.
        to: an open file.
    """
    if form == "parquet":
        with pq.ParquetWriter(to, rows.schema, compression="zstd") as file:
            for batch in rows:
                file.write_batch(batch)
        return
    with pa.csv.CSVWriter(to, pa.schema([_as_text(field) for field in rows.schema])) as file:
        for batch in rows:
            file.write_table(_texts(pa.table(batch)))


def _as_text(field: pa.Field) -> pa.Field:
    return field.with_type(pa.string()) if _is_text(field.type) else field


def _is_text(of: pa.DataType) -> bool:
    """Whether CSV needs a text instead of the value."""
    return bool(pa.types.is_binary(of) or pa.types.is_fixed_size_binary(of) or pa.types.is_nested(of))


def _texts(rows: pa.Table) -> pa.Table:
    columns = [_text(column) if _is_text(column.type) else column for column in rows.columns]
    return pa.table(columns, names=rows.column_names)


def _text(column: pa.ChunkedArray) -> pa.Array:
    shown = str if pa.types.is_nested(column.type) else bytes.hex
    return pa.array([None if one is None else shown(one) for one in column.to_pylist()], pa.string())
