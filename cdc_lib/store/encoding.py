"""Chooses the encodings of a Parquet file's columns from its first row group.

Dictionary encoding where few values repeat. Delta encoding where numbers grow in nearly equal steps, as generated keys, times and
binlog offsets do. No compression where zstd saves little, which is where it is slowest (digests, random numbers). The
choice depends on the rows alone, so that draining a window twice gives the same bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdc_lib.model.manifest import BINLOG, EPOCH, GTID, OP, ROW

_FEWEST_ROWS = 512
"""Minimum rows: with fewer, the choice costs more than it saves."""
_FEWEST_BYTES = 1024
"""Minimum bytes of few rows: zstd makes fewer no smaller, and takes longer than everything else about such a file."""
_SAMPLE_ROWS = 4096
_REPEATS = 2
"""Minimum occurrences of each value in the sampled rows for a dictionary; in all rows there are more."""
_LEAST_WIDTH = 32
"""Minimum bits for delta encoding: narrower numbers repeat."""
_SAMPLE_BYTES = 16 * 1024
_LEAST_BYTES = 4096
"""Minimum bytes of a sample that shows how well a column compresses."""
_WORTH = 0.8
"""Maximum ratio of compressed to plain size; above it a column is not compressed."""


@dataclass(frozen=True, slots=True)
class Encoding:
    """Encoding options of a Parquet writer.

    Args:
        dictionary: columns with dictionary encoding.
        others: encodings of other columns, if not plain.
        compression: zstd or none, by column.
        levels: zstd level, by compressed column.
    """

    dictionary: list[str]
    others: dict[str, str]
    compression: dict[str, str]
    levels: dict[str, int]


def choose(rows: pa.Table, level: int) -> Encoding:
    """Return the encoding of a file that begins with these rows.

    Args:
        rows: the first row group.
        level: zstd level.
    """
    names = rows.schema.names
    if rows.num_rows < _FEWEST_ROWS and rows.nbytes < _FEWEST_BYTES:
        return Encoding([OP, EPOCH, BINLOG], {}, dict.fromkeys(names, "none"), {})
    if rows.num_rows < _FEWEST_ROWS:
        return Encoding([OP, EPOCH, BINLOG], {}, dict.fromkeys(names, "zstd"), dict.fromkeys(names, level))
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
    sample = column.slice(0, _SAMPLE_ROWS)
    return bool(pc.count_distinct(sample, mode="all").as_py() * _REPEATS <= len(sample))


def _steps_alike(column: pa.ChunkedArray) -> bool:
    """Whether the differences of neighbours vary little, compared to the width of the numbers."""
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_temporal(kind)) or kind.bit_width < _LEAST_WIDTH:
        return False
    values = column.slice(0, _SAMPLE_ROWS).drop_null().cast(f"int{kind.bit_width}", safe=False).to_numpy()
    if len(values) < _FEWEST_ROWS:
        return False
    steps = np.diff(values)
    return bool(int(steps.max()) - int(steps.min()) < 1 << kind.bit_width // 4)


def _shrinks(column: pa.ChunkedArray, zstd: pa.Codec) -> bool:
    """Whether compression saves enough. Decimals always count: their buffer differs from the file's bytes."""
    values = column.chunk(0).buffers()[-1] if column.num_chunks else None
    if pa.types.is_decimal(column.type) or values is None or values.size < _LEAST_BYTES:
        return True
    begin = values.slice(0, min(values.size, _SAMPLE_BYTES))
    return bool(zstd.compress(begin).size <= _WORTH * begin.size)
