"""Spark reads the Parquet encodings that the drain chooses."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cdc_lib.store.encoding import choose

ROWS = 20_000
NUMBERS = np.arange(ROWS, dtype=np.int64)
COLUMNS = {
    "key": pa.array(NUMBERS + 4_000_000_000),
    "unsigned": pa.array(NUMBERS.astype(np.uint64) + np.uint64(1 << 63)),
    "unsigned_small": pa.array((NUMBERS + (1 << 31)).astype(np.uint32)),
    "small": pa.array(NUMBERS.astype(np.int32)),
    "local": pa.array(NUMBERS * 1_000_003, pa.timestamp("us")),
    "instant": pa.array(NUMBERS * 1_000_003, pa.timestamp("us", "UTC")),
    "day": pa.array(NUMBERS.astype(np.int32), pa.date32()),
    "gaps": pa.array([number if number % 3 else None for number in range(ROWS)], pa.int64()),
}


def test_spark_reads_delta_encoded_numbers(lake, tmp_path):
    """Of every type with this encoding, signed and unsigned, with nulls."""
    rows = pa.table(COLUMNS)
    chosen = choose(rows, 1)
    assert set(chosen.others.values()) == {"DELTA_BINARY_PACKED"}
    assert set(chosen.others) == set(COLUMNS)
    file = tmp_path / "rows.parquet"
    pq.write_table(rows, file, use_dictionary=False, column_encoding=chosen.others, compression="zstd")
    texts = [f"CAST({name} AS STRING) AS {name}" for name in COLUMNS if name not in ("local", "instant")]
    texts += [f"CAST(unix_micros(CAST({name} AS TIMESTAMP)) AS STRING) AS {name}" for name in ("local", "instant")]
    read = lake.spark.read.parquet(str(file)).orderBy("key").selectExpr(*texts).collect()
    expected = {
        name: [None if cell is None else str(cell) for cell in _cells(column)] for name, column in COLUMNS.items()
    }
    assert {name: [row[name] for row in read] for name in COLUMNS} == expected


def _cells(column):
    return column.cast(pa.int64()).to_pylist() if pa.types.is_timestamp(column.type) else column.to_pylist()
