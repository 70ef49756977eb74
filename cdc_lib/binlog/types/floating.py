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
from cdc_lib.model.schema import SourceType


@njit(cache=True, nogil=True)
def image(b, pos, length, n, values, valid, at):
    """Copy the bits."""
    for i in range(n):
        valid[at + i] = length[i] >= 0
        values[at + i] = little(b, pos[i], max(length[i], 0))


class FloatCodec:
    """Codec of FLOAT and DOUBLE.

    Args:
        source_type: of kind ``float`` or ``double``.
        from_text: the cells are those of a text result set, not of a row image.
    """

    def __init__(self, source_type: SourceType, *, from_text: bool) -> None:
        """Choose the width; the column holds bits, so that no value changes on its way."""
        single = source_type.kind == "float"
        self.arrow_type = pa.float32() if single else pa.float64()
        self._float = np.float32 if single else np.float64
        self._from_text = from_text
        self._column = FixedBuilder(self.arrow_type, np.int32 if single else np.int64)

    def append(self, data: Bytes, pos: Cells, length: Cells, rows: int) -> None:
        """Append cells."""
        column = self._column
        column.reserve(rows)
        if self._from_text:
            self._append_text(data, pos, length, rows)
        else:
            image(data, pos, length, rows, column.values, column.validity.bytes, column.rows)
        column.rows += rows

    def _append_text(self, data: Bytes, pos: Cells, length: Cells, rows: int) -> None:
        # Correct rounding of decimal text is the C library's work; snapshots alone come this way.
        column = self._column
        floats = column.values.view(self._float)
        valid = length[:rows] >= 0
        column.validity.bytes[column.rows : column.rows + rows] = valid
        raw = data.data
        for row in range(rows):
            text = bytes(raw[pos[row] : pos[row] + length[row]]) if valid[row] else b"0"
            floats[column.rows + row] = float(text)

    def finish(self) -> pa.Array:
        """Return the column."""
        return self._column.finish()
