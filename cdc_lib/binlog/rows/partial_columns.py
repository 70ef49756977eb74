"""The columns of one table with partial rows: those of whole rows, and which cells are present.

They are written to separate files, so that the files of whole rows, the normal case, have no extra column and no false null.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit

from cdc_lib.binlog.rows.columns import Conversion, TableColumns
from cdc_lib.binlog.rows.gtid_column import GtidPrefixes
from cdc_lib.binlog.rows.partial_images import ABSENT, UNKNOWN
from cdc_lib.binlog.rows.table_map import TableLayout
from cdc_lib.binlog.types.builders import TextBuilder
from cdc_lib.binlog.types.codec import Bytes, Cells
from cdc_lib.model.manifest import ABSENT as ABSENT_COLUMN
from cdc_lib.model.manifest import CELL_ABSENT, CELL_HERE, CELL_UNKNOWN, CHANGE_COLUMNS
from cdc_lib.model.projection import Projection

_HERE, _ABSENT, _UNKNOWN = (ord(mark) for mark in (CELL_HERE, CELL_ABSENT, CELL_UNKNOWN))


@njit(cache=True, nogil=True)
def write_marks(length, kept, n, offsets, data, valid, at):
    """Write a character per kept column for each row that lacks a cell of them, and null for each that is whole."""
    o = np.int64(offsets[at])
    for i in range(n):
        whole = True
        for c in kept:
            if length[c, i] == ABSENT or length[c, i] == UNKNOWN:
                whole = False
                break
        valid[at + i] = not whole
        if not whole:
            for c in kept:
                size = length[c, i]
                data[o] = _ABSENT if size == ABSENT else _UNKNOWN if size == UNKNOWN else _HERE
                o += 1
        offsets[at + i + 1] = o


class PartialColumns(TableColumns):
    """Collects rows that may lack cells into row groups.

    Args:
        layout: of the table.
        projection: which of its columns are decoded, and their masks.
        conversion: of the window.
        prepared: rows of XA transactions.
    """

    def __init__(
        self, layout: TableLayout, projection: Projection, conversion: Conversion, *, prepared: bool = False
    ) -> None:
        """Start with no rows."""
        super().__init__(layout, projection, conversion, prepared=prepared)
        self._marks = TextBuilder(pa.string())
        self._texts: dict[int, dict[int, str]] = {}

    def append(
        self,
        data: Bytes,
        cells: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]],
        marks: tuple[npt.NDArray[np.uint8], Cells, Cells],
        rows: int,
        records: Cells,
        gtids: GtidPrefixes,
    ) -> None:
        """Append located rows, as for whole ones; lengths below -1 are those of partial_images.py."""
        kept = np.array(self.projection.kept, np.int64)
        super().append(data, cells, marks, rows, records, gtids)
        self._marks.reserve(rows, rows * kept.shape[0])
        text = (self._marks.offsets, self._marks.data, self._marks.validity.bytes, self._marks.rows)
        write_marks(cells[1], kept, rows, *text)
        self._marks.rows += rows

    def put(self, row: int, column: int, text: str) -> None:
        """Give the text of a cell that came as differences; ``row`` counts from the start of the row group."""
        self._texts.setdefault(column, {})[row] = text

    def finish(self) -> pa.Table:
        """Return the row group collected so far and start the next."""
        marks = self._marks.finish()
        return super().finish().add_column(len(CHANGE_COLUMNS), ABSENT_COLUMN, marks)

    def _values_of_columns(self) -> list[pa.Array]:
        arrays = super()._values_of_columns()
        for at, column in enumerate(self.projection.kept):
            if texts := self._texts.get(column):
                mask = np.zeros(len(arrays[at]), bool)
                mask[list(texts)] = True
                values = pa.array([texts[row] for row in sorted(texts)], pa.string())
                arrays[at] = pc.replace_with_mask(arrays[at], pa.array(mask), values)
        self._texts = {}
        return arrays
