"""The change columns of rows that were read by SELECT: their position is the low watermark."""

from __future__ import annotations

from datetime import datetime

import numpy as np
import pyarrow as pa

from cdc_lib.binlog.rows.columns import CHANGE_TYPES, OP_LABELS
from cdc_lib.model.manifest import CHANGE_COLUMNS, Op
from cdc_lib.model.position import SNAPSHOT_ROW, Position

_CODES = OP_LABELS.to_pylist()


def with_order(table: pa.Table, epoch: int, watermark: Position, at: datetime, op: Op = "r") -> pa.Table:
    """Put the change columns before selected rows.

    Args:
        table: the rows.
        epoch: of the watermark.
        watermark: position read before the SELECT.
        at: when it was read.
        op: ``r``, or ``d`` for keys that have no row.
    """
    rows = table.num_rows
    codes = pa.array(np.full(rows, _CODES.index(op), np.uint8))
    micros = int(at.timestamp() * 1_000_000)
    values = [
        pa.DictionaryArray.from_arrays(codes, OP_LABELS),
        pa.array(np.full(rows, epoch, np.int32)),
        pa.array(np.full(rows, watermark.file_number, np.int32)),
        pa.array(np.full(rows, watermark.offset, np.int64)),
        pa.array(np.full(rows, SNAPSHOT_ROW, np.int64)),
        pa.array(np.full(rows, micros, np.int64)).cast(CHANGE_TYPES[5]),
        pa.nulls(rows, pa.string()),
    ]
    return pa.Table.from_arrays(
        [*values, *(column.combine_chunks() for column in table.columns)], names=[*CHANGE_COLUMNS, *table.column_names]
    )
