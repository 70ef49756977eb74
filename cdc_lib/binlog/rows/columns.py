"""The columns of one table while its rows are decoded: change columns in front, its own after."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from numba import njit

from cdc_lib.binlog.framing.packets import BEGAN, FILE, ROW, START, TIME
from cdc_lib.binlog.rows.gtid_column import GtidColumn, GtidPrefixes
from cdc_lib.binlog.rows.masking import Masker
from cdc_lib.binlog.rows.table_map import TableLayout
from cdc_lib.binlog.types.builders import FixedBuilder
from cdc_lib.binlog.types.codec import Bytes, Cells, ValueFault
from cdc_lib.binlog.types.registry import codec_for
from cdc_lib.model.manifest import CHANGE_COLUMNS
from cdc_lib.model.projection import Projection
from cdc_lib.model.value_policy import ValuePolicy

OP_LABELS = pa.array(["c", "u", "d", "r"])
"""Labels of the codes of locate.py."""

_TS = pa.timestamp("us", tz="UTC")
CHANGE_TYPES = (
    pa.dictionary(pa.uint8(), pa.string()),
    pa.int32(),
    pa.int32(),
    pa.int64(),
    pa.int64(),
    _TS,
    pa.dictionary(pa.int32(), pa.string()),
)
_ROWS_PER_BYTE = 2048
"""More than the bytes that deflate makes of one (1032, zlib's technical details); a row takes at least one."""


@njit(cache=True, nogil=True)
def _order(records, event, image, n, at, files, offsets, rows, times):
    for i in range(n):
        r = records[event[i]]
        files[at + i] = r[FILE]
        offsets[at + i] = r[START]
        rows[at + i] = r[ROW] + image[i]
        times[at + i] = r[TIME]


@njit(cache=True, nogil=True)
def _order_prepared(records, event, image, n, at, files, offsets, rows, times):
    """Put rows in order within their XA transaction, which bears the offset at which it began.

    A row's number derives from its own position alone, so that rows of whole and of partial images come in one order. Each byte
    of an event has room for as many rows as deflate can make of it (MariaDB's compressed rows).
    """
    for i in range(n):
        r = records[event[i]]
        files[at + i] = r[FILE]
        offsets[at + i] = r[BEGAN]
        rows[at + i] = (r[START] - r[BEGAN]) * _ROWS_PER_BYTE + r[ROW] + image[i]
        times[at + i] = r[TIME]


@dataclass(frozen=True, slots=True)
class Conversion:
    """The conversion of a window's rows for the lake, the same for all tables.

    Args:
        masker: applies masks.
        epoch: of the window.
        values: what becomes of values that the lake cannot hold as they are.
    """

    masker: Masker
    epoch: int
    values: ValuePolicy


class TableColumns:
    """Collects the rows of one layout into row groups.

    Args:
        layout: of the table.
        projection: which of its columns are decoded, and their masks.
        conversion: of the window.
        prepared: rows of XA transactions, which get their place in the order when they are committed.
    """

    def __init__(
        self, layout: TableLayout, projection: Projection, conversion: Conversion, *, prepared: bool = False
    ) -> None:
        """Start with no rows."""
        self.layout = layout
        self.schema = projection.schema
        self.projection = projection
        self._masker = conversion.masker
        self.rows = 0
        self.bytes = 0
        self._epoch = conversion.epoch
        columns = projection.source.columns
        self._codecs = [
            codec_for(
                column.type,
                conversion.values.of(projection.source, column),
                from_text=False,
                fill=layout.added_defaults[c],
            )
            for c, column in zip(projection.kept, columns, strict=True)
        ]
        self._op = FixedBuilder(pa.uint8(), np.uint8)
        self._file = FixedBuilder(pa.int32(), np.int32)
        self._offset = FixedBuilder(pa.int64(), np.int64)
        self._row = FixedBuilder(pa.int64(), np.int64)
        self._time = FixedBuilder(_TS, np.int64)
        self._gtid = GtidColumn()
        self._prepared = prepared
        fields = zip(CHANGE_COLUMNS, CHANGE_TYPES, strict=True)
        # A mask changes the type of what the codec gives.
        empty = self._masker.apply_all([pa.nulls(0, codec.arrow_type) for codec in self._codecs], projection)
        own = ((column.name, array.type) for column, array in zip(columns, empty, strict=True))
        self._schema = pa.schema([*fields, *own])

    def append(
        self,
        data: Bytes,
        cells: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]],
        marks: tuple[npt.NDArray[np.uint8], Cells, Cells],
        rows: int,
        records: Cells,
        gtids: GtidPrefixes,
    ) -> None:
        """Append located rows.

        Args:
            data: bytes off the wire.
            cells: start and length of each cell, (columns, capacity) both.
            marks: op code, record and image index of each row.
            rows: how many.
            records: of frame.scan.
            gtids: prefixes of the GTID sources.

        Raises:
            ValueFault: with the column's name in its text; its row is the index in this call.
        """
        pos, length = cells
        for c, codec in zip(self.projection.kept, self._codecs, strict=True):
            try:
                codec.append(data, pos[c], length[c], rows)
            except ValueFault as fault:
                raise fault.of_column(self.layout.schema.columns[c].name) from None
        self._append_marks(marks, rows, records, gtids)
        self.rows += rows

    def _append_marks(
        self, marks: tuple[npt.NDArray[np.uint8], Cells, Cells], rows: int, records: Cells, gtids: GtidPrefixes
    ) -> None:
        op, event, image = marks
        at = self.rows
        fixed = (self._op, self._file, self._offset, self._row, self._time)
        for builder in fixed:
            builder.reserve(rows)
            builder.validity.bytes[at : at + rows] = 1
        self._op.values[at : at + rows] = op[:rows]
        values = [builder.values for builder in fixed[1:]]
        order = _order_prepared if self._prepared else _order
        order(records, event, image, rows, at, *values)
        self._gtid.append(records, event, rows, gtids)
        for column in fixed:
            column.rows += rows

    def finish(self) -> pa.Table:
        """Return the row group collected so far and start the next."""
        rows = self.rows
        op = pa.DictionaryArray.from_arrays(self._op.finish(), OP_LABELS)
        epoch = pa.array(np.full(rows, self._epoch, np.int32))
        order = [self._file.finish(), self._offset.finish(), self._row.finish(), self._time.finish()]
        own = self._masker.apply_all(self._values_of_columns(), self.projection)
        self.rows = 0
        self.bytes = 0
        return pa.Table.from_arrays([op, epoch, *order, self._gtid.finish(), *own], schema=self._schema)

    def _values_of_columns(self) -> list[pa.Array]:
        """Return the table's own columns, before their masks, and start over."""
        return [codec.finish() for codec in self._codecs]
