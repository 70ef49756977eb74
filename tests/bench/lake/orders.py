"""A large lake table in key order, and batches of changes to it, generated from numbers."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from cdc_lib.model.lexer import quoted
from cdc_lib.model.schema import SourceType, TableSchema
from tests.harness.lake.batches import BIGINT, INT, TEXT, BatchWriter, table
from tests.harness.lake.running import Lake

Keys = Literal["uniform", "recent"]

TABLE = "bench.orders"
SCHEMA: TableSchema = table(
    TABLE,
    {
        "id": BIGINT,
        "customer": INT,
        "status": TEXT,
        "total": SourceType("decimal", precision=12, scale=2),
        "weight": SourceType("double"),
        "created": SourceType("datetime", scale=6),
        "place": TEXT,
        "note": TEXT,
        "visits": INT,
        "points": BIGINT,
        "flag": INT,
        "code": TEXT,
    },
)
ROWS_PER_FILE = 500_000
RECENT = 150_000
"""Average distance of a recent change from the newest key."""
_SEED = 20_261_121
_START = 1_000
_COLUMNS = {
    "id": "id",
    "customer": "CAST(hash(id) & 1048575 AS INT)",
    "status": "element_at(array('new', 'paid', 'sent', 'done'), CAST(id % 4 + 1 AS INT))",
    "total": "CAST(pmod(hash(id, 1), 10000000) / 100 AS DECIMAL(12, 2))",
    "weight": "pmod(hash(id, 2), 100000) / 7D",
    "created": "CAST(timestamp_micros(1700000000000000 + id * 1000003) AS TIMESTAMP_NTZ)",
    "place": "concat('street ', hash(id, 3) & 65535)",
    "note": "concat('n', hex(xxhash64(id)), hex(xxhash64(id, 1)))",
    "visits": "hash(id, 4) & 1023",
    "points": "xxhash64(id, 5) >> 20",
    "flag": "hash(id, 6) & 1",
    "code": "hex(hash(id, 7))",
    "_op": "'r'",
    "_epoch": "1",
    "_binlog": "1",
    "_offset": "CAST(100 AS BIGINT)",
    "_row": "id",
    "_ts": "TIMESTAMP '2026-01-01 00:00:00'",
    "_gtid": "CAST(NULL AS STRING)",
}


def make_table(spark: SparkSession, lake: Lake, rows: int, files: int = 0) -> None:
    """Make the lake table by a merge of one row, and add the other rows in key order, as a snapshot does.

    Args:
        spark: a running Spark.
        lake: where the table is made.
        rows: number of rows; their keys are even (0, 2, 4 ...), so that new keys fit between them.
        files: into how many files; 0 for files of half a million rows.
    """
    first = lake.batches.window_of(4, 50, SCHEMA, _changes(np.array([-2]), np.array(["c"]), 20))
    lake.merge(lake.batches.plan(50, first))
    columns = [column.name for column in lake.state(TABLE).columns]
    if not rows:
        return
    frame = spark.range(0, 2 * rows, 2, files or max(1, rows // ROWS_PER_FILE))
    frame = frame.selectExpr(*(f"{_COLUMNS[name]} AS {quoted(name)}" for name in columns))
    frame.writeTo(lake.name(TABLE)).append()


def write_changes(batches: BatchWriter, rows: int, changes: int, keys: Keys, number: int = 0) -> tuple[str, int]:
    """Write a window of changes: 80% updates, 10% inserts, 10% deletes, each with a different key.

    Args:
        batches: writes the window.
        rows: of the table.
        changes: how many.
        keys: spread over the whole table, or mostly near its newest rows.
        number: of the window; windows follow each other.

    Returns:
        The key of the manifest, and the end of its window.

    Raises:
        ValueError: the table has too few rows for so many changes.
    """
    random = np.random.default_rng([_SEED, number])
    drawings = 3 * changes  # some keys are drawn twice
    if keys == "uniform":
        drawn = random.integers(0, rows, drawings)
    else:
        drawn = rows - 1 - random.exponential(RECENT, drawings).astype(np.int64) % rows
    chosen = random.permutation(np.unique(drawn))[:changes] * 2
    if len(chosen) < changes:
        raise ValueError(f"{changes} changes need more than the table's {rows} rows")
    ops = np.full(changes, "u")
    ops[::10], ops[1::10] = "c", "d"
    chosen[::10] += 1
    if keys == "recent":  # inserted rows are the newest
        chosen[::10] = 2 * (rows + number * changes + np.arange(len(chosen[::10]))) + 1
    start = _START + number * changes * 10
    stop = start + changes * 10
    return batches.window_of(start, stop, SCHEMA, _changes(chosen, ops, start)), stop


def write_rows(batches: BatchWriter, rows: int) -> tuple[list[str], int]:
    """Write windows of new rows in key order, of half a million each.

    Returns:
        The keys of the manifests, and the end of the last window.
    """
    manifests, stop = list[str](), _START
    for first in range(0, rows, ROWS_PER_FILE):
        keys, start = np.arange(first, min(first + ROWS_PER_FILE, rows)), stop
        stop += 10 * len(keys)
        created = _changes(keys, np.full(len(keys), "c"), start)
        manifests.append(batches.window_of(start, stop, SCHEMA, created))
    return manifests, stop


def _changes(keys: np.ndarray, ops: np.ndarray, start: int) -> pa.Table:
    count = len(keys)
    same = np.zeros(count, np.int32)
    when = pa.array([datetime(2026, 1, 2, tzinfo=UTC)] * count, pa.timestamp("us", tz="UTC"))
    texts = pa.array([f"changed {key}" for key in keys.tolist()])
    cents = pa.array(keys % 10_000_000).cast(pa.decimal128(19, 0)).cast(pa.decimal128(12, 2))
    return pa.table(
        {
            "_op": pa.array(ops.tolist()),
            "_epoch": same + 1,
            "_binlog": same + 1,
            "_offset": np.arange(start, start + count, dtype=np.int64),
            "_row": same,
            "_ts": when,
            "_gtid": pa.nulls(count, pa.string()),
            "id": keys.astype(np.int64),
            "customer": (keys % 1_000_003).astype(np.int32),
            "status": texts,
            "total": cents,
            "weight": keys / 3,
            "created": pa.array(keys.astype(np.int64), pa.timestamp("us")),
            "place": texts,
            "note": texts,
            "visits": same,
            "points": keys.astype(np.int64),
            "flag": same,
            "code": texts,
        }
    )
