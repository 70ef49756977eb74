"""FLOAT and DOUBLE.

Row image: IEEE 754, little-endian, 4 or 8 bytes; bits are kept as they are. Text row: the shortest text that reads back as
the same double; a FLOAT is selected as a double, because its own text has six digits only.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numba import njit

from cdc_lib.binlog.bytes.integers import little
from cdc_lib.binlog.types.builders import FixedBuilder
from cdc_lib.binlog.types.codec import Bytes, Cells
from cdc_lib.binlog.types.text import BytesCodec
from cdc_lib.model.schema import SourceType


@njit(cache=True, nogil=True)
def image(b, pos, length, n, values, valid, at):
    """Copy the bits."""
    for i in range(n):
        valid[at + i] = length[i] >= 0
        values[at + i] = little(b, pos[i], max(length[i], 0))


class FloatCodec:
    """Codec of FLOAT and DOUBLE in row images.

    Args:
        arrow_type: ``float32`` or ``float64``.
    """

    def __init__(self, arrow_type: pa.DataType) -> None:
        """Choose the width; the column holds bits, so that no value changes on its way."""
        self.arrow_type = arrow_type
        self._column = FixedBuilder(arrow_type, np.int32 if arrow_type == pa.float32() else np.int64)

    def append(self, data: Bytes, pos: Cells, length: Cells, rows: int) -> None:
        """Append cells."""
        column = self._column
        column.reserve(rows)
        image(data, pos, length, rows, column.values, column.validity.bytes, column.rows)
        column.rows += rows

    def finish(self) -> pa.Array:
        """Return the column."""
        return self._column.finish()


class FloatTextCodec:
    """Codec of FLOAT and DOUBLE in text rows.

    Args:
        arrow_type: ``float32`` or ``float64``.
    """

    def __init__(self, arrow_type: pa.DataType) -> None:
        """Start empty."""
        self.arrow_type = arrow_type
        self._text = BytesCodec()

    def append(self, data: Bytes, pos: Cells, length: Cells, rows: int) -> None:
        """Append cells."""
        self._text.append(data, pos, length, rows)

    def finish(self) -> pa.Array:
        """Return the column; Arrow rounds decimal text correctly."""
        # A FLOAT is the text of a double too: rounding it once to 32 bits could give another value.
        return self._text.finish().cast(pa.float64()).cast(self.arrow_type, safe=False)


def float_codec(source_type: SourceType, *, from_text: bool) -> FloatCodec | FloatTextCodec:
    """Return the codec of a column.

    Args:
        source_type: of kind ``float`` or ``double``.
        from_text: the cells are those of a text result set, not of a row image.
    """
    arrow_type = pa.float32() if source_type.kind == "float" else pa.float64()
    return FloatTextCodec(arrow_type) if from_text else FloatCodec(arrow_type)
