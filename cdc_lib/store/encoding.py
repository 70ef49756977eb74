"""How the columns of a Parquet file are encoded, chosen by what its first row group holds.

A dictionary where few values repeat; differences where numbers grow by steps of nearly one size, as generated keys, times and
places in the binlog do; no compression where zstd would save little, which is where it takes longest (digests,
random numbers). The choice is a function of the rows alone, so that a window drained twice still gives the same bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdc_lib.model.manifest import EPOCH, FILE, GTID, OP, ROW

_FEWEST_ROWS = 512
"""With fewer the choice costs more than it saves."""
_ROWS_LOOKED_AT = 4096
_REPEATS = 2
"""A dictionary pays when each value stands this often among the few rows looked at; in all rows it will more often."""
_LEAST_WIDTH = 32
"""In bits: narrower numbers repeat."""
_BYTES_LOOKED_AT = 16 * 1024
_LEAST_BYTES = 4096
"""Less tells nothing about how well a column compresses."""
_WORTH = 0.8
"""Compressed to more than this part of its size, a column is better left as it is."""


@dataclass(frozen=True, slots=True)
class Encoding:
    """What a Parquet writer is told.

    Args:
        dictionary: columns with a dictionary.
        others: encodings of columns without one, where it is not the plain one.
        compression: zstd or none, by column.
        levels: zstd level, by column that is compressed.
    """

    dictionary: list[str]
    others: dict[str, str]
    compression: dict[str, str]
    levels: dict[str, int]


def choose(rows: pa.Table, level: int) -> Encoding:
    """Return how to encode a file that begins with these rows.

    Args:
        rows: the first row group.
        level: zstd level.
    """
    names = rows.schema.names
    if rows.num_rows < _FEWEST_ROWS:
        return Encoding([OP, EPOCH, FILE], {}, dict.fromkeys(names, "zstd"), dict.fromkeys(names, level))
    zstd = pa.Codec("zstd", compression_level=level)
    found = Encoding([], {}, {}, {})
    for field in rows.schema:
        column = rows.column(field.name)
        if _repeats(column):
            found.dictionary.append(field.name)
        elif field.name == GTID:
            # Neighbours differ in their last digits.
            found.others[field.name] = "DELTA_BYTE_ARRAY"
        elif field.name == ROW:
            # Rows of a compressed transaction are counted through all of it.
            found.others[field.name] = "DELTA_BINARY_PACKED"
        elif _steps_alike(column):
            found.others[field.name] = "DELTA_BINARY_PACKED"
        if field.name in found.dictionary or _shrinks(column, zstd):
            found.compression[field.name] = "zstd"
            found.levels[field.name] = level
        else:
            found.compression[field.name] = "none"
    return found


def _repeats(column: pa.ChunkedArray) -> bool:
    if pa.types.is_dictionary(column.type):
        return bool(len(column.chunk(0).dictionary) * _REPEATS <= len(column))
    looked_at = column.slice(0, _ROWS_LOOKED_AT)
    return bool(pc.count_distinct(looked_at, mode="all").as_py() * _REPEATS <= len(looked_at))


def _steps_alike(column: pa.ChunkedArray) -> bool:
    """Whether the differences of neighbours vary by little, against the width of the numbers themselves."""
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_temporal(kind)) or kind.bit_width < _LEAST_WIDTH:
        return False
    values = column.slice(0, _ROWS_LOOKED_AT).drop_null().cast(f"int{kind.bit_width}", safe=False).to_numpy()
    if len(values) < _FEWEST_ROWS:
        return False
    steps = np.diff(values)
    return bool(int(steps.max()) - int(steps.min()) < 1 << kind.bit_width // 4)


def _shrinks(column: pa.ChunkedArray, zstd: pa.Codec) -> bool:
    """Whether compression is worth it; a decimal's buffer is not what the file will hold, and it always is."""
    values = column.chunk(0).buffers()[-1] if column.num_chunks else None
    if pa.types.is_decimal(column.type) or values is None or values.size < _LEAST_BYTES:
        return True
    begin = values.slice(0, min(values.size, _BYTES_LOOKED_AT))
    return bool(zstd.compress(begin).size <= _WORTH * begin.size)
