"""Decodes a text result set straight into Arrow columns.

Response to COM_QUERY: a packet with the number of columns, one definition per column, EOF, one packet per row, EOF. A row is a
sequence of length-encoded strings; 0xFB is NULL (MySQL internals, "Text Resultset"). The codecs are those of row images.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numba import njit

from cdc_lib.binlog.bytes.integers import u16, u24, u64
from cdc_lib.binlog.framing.receiver import HEADROOM, Bytes, Receiver, extended
from cdc_lib.binlog.rows.errors import value_fault
from cdc_lib.binlog.rows.masking import Masker
from cdc_lib.binlog.rows.table_map import refuse_unreadable
from cdc_lib.binlog.types.codec import ValueFault
from cdc_lib.binlog.types.registry import codec_for
from cdc_lib.errors import SourceUnavailable, UnsupportedServer
from cdc_lib.model.projection import Projection
from cdc_lib.model.refusals import refused_for
from cdc_lib.model.value_policy import ValuePolicy
from cdc_lib.ports import BinlogStream

MORE, FULL, END, ERROR, BAD = range(5)
_PACKETS = 16384
_MAX_PAYLOAD = 0xFFFFFF
_LONGEST_HEADER = 16 << 20
"""Bytes of the definitions of 4,096 columns, and more."""
_LONGEST_ROW = (1 << 30) + (16 << 20)
"""A little more than the greatest max_allowed_packet."""
_WIDEST = np.iinfo(np.int32).max
"""Bytes of a buffer in which 32 bits say where a cell is. A longer one, which holds a row of more than 1 GiB, takes 64."""
_GROUP_BYTES = 64 << 20
"""Bytes of values of a row group; exceeded by at most one receive buffer."""


@njit(cache=True, nogil=True)
def _wire_size(b, p, fill):
    """Bytes on the wire of the logical packet at ``p``; 0 if it is incomplete."""
    q = p
    while True:
        if q + 4 > fill:
            return np.int64(0)
        size = u24(b, q)
        q += 4 + size
        if q > fill:
            return np.int64(0)
        if size < _MAX_PAYLOAD:
            return np.int64(q - p)


@njit(cache=True, nogil=True)
def _join(b, p, wire):
    """Join the parts of a long packet in place; return the bytes of its payload."""
    source = p
    target = p + 4
    while source < p + wire:
        size = u24(b, source)
        source += 4
        if source != target:
            for i in range(size):
                b[target + i] = b[source + i]
        source += size
        target += size
    return target - p - 4


@njit(cache=True, nogil=True)
def locate_text(b, begin, fill, columns, pos, length):
    """Locate the cells of the row packets in ``b[begin:fill]``.

    Returns:
        Why it ended, rows located, where the next packet starts, end of that packet's payload.
    """
    n = 0
    p = begin
    while True:
        if n == pos.shape[1]:
            return FULL, n, p, p
        wire = _wire_size(b, p, fill)
        if wire == 0:
            return MORE, n, p, p
        q = p + 4
        end = q + _join(b, p, wire)
        if end - q < 9 and end > q and b[q] == 0xFE:
            return END, n, p + wire, end
        if end > q and b[q] == 0xFF:
            return ERROR, n, p, end
        for c in range(columns):
            if q >= end:
                return BAD, n, p, end
            first = np.int64(b[q])
            q += 1
            if first == 0xFB:
                pos[c, n] = 0
                length[c, n] = -1
                continue
            size = first
            if first == 0xFC and q + 2 <= end:
                size = u16(b, q)
                q += 2
            elif first == 0xFD and q + 3 <= end:
                size = u24(b, q)
                q += 3
            elif first == 0xFE and q + 8 <= end:
                size = u64(b, q)
                q += 8
            if size < 0 or size > end - q:
                return BAD, n, p, end
            pos[c, n] = q
            length[c, n] = size
            q += size
        if q != end:
            return BAD, n, p, end
        n += 1
        p += wire


def _length_encoded(number: int) -> bytes:
    """Return a number of columns, at most 4,096, as the first packet of a result has it."""
    return bytes([number]) if number < 0xFB else b"\xfc" + number.to_bytes(2, "little")


class ResultSet:
    """Reads the result of one SELECT of a table's columns.

    Args:
        projection: the selected columns, in their order, and their masks.
        stream: from the response's first byte on.
        masker: applies the masks.
        values: policy for values that the lake cannot represent.
    """

    def __init__(self, projection: Projection, stream: BinlogStream, masker: Masker, values: ValuePolicy) -> None:
        """Make a codec for each column.

        Raises:
            UnsupportedValue: a column's type is not read.
        """
        schema = projection.source
        for column in schema.columns:
            refuse_unreadable(schema.name, column)
        self._schema = schema
        self._projection = projection
        self._masker = masker
        self._stream = stream
        self._codecs = [codec_for(c.type, values.of(schema, c), from_text=True) for c in schema.columns]
        columns = len(schema.columns)
        # Like the cells of row images, for which the codecs are compiled already.
        self._pos = np.empty((columns, _PACKETS), np.int32)
        self._length = np.empty((columns, _PACKETS), np.int32)
        self._key_columns = [[c.name for c in schema.columns].index(name) for name in schema.primary_key]
        self._skipped = 0
        self._finished = False
        self._rows = 0
        self._bytes = 0
        self.rows = 0
        self.last_key: tuple[bytes, ...] | None = None

    def groups(self) -> Iterator[pa.Table]:
        """Read all rows; yield them in non-empty row groups of bounded size.

        Raises:
            SourceUnavailable: the connection broke before the end.
            TableUnreadable: the server refuses to read the table.
            UnsupportedValue: the lake cannot represent a value exactly.
            UnsupportedServer: the response does not follow the protocol.
        """
        rest: Bytes = np.empty(0, np.uint8)
        with Receiver(self._stream, ends=False) as receiver:
            for buffer, end in receiver.buffers():
                if rest.shape[0] <= HEADROOM:
                    begin = HEADROOM - rest.shape[0]
                    buffer[begin:HEADROOM] = rest
                    data, fill = buffer, end
                elif rest.shape[0] > _LONGEST_ROW:
                    raise self._not_spoken("a row of the result has no end")
                else:
                    # A long row: its size is unknown before its last packet, so the buffer doubles.
                    data = extended(rest, buffer[HEADROOM:end], 2 * rest.shape[0])
                    begin, fill = 0, data.shape[0]
                at = self._take(data, begin, fill)
                rest = data if data is not buffer and at == 0 else data[at:fill].copy()
                receiver.release(buffer)
                if self._finished:
                    break
                if self._bytes >= _GROUP_BYTES:
                    yield self._group()
        if not self._finished:
            raise SourceUnavailable(
                "the connection ended in the middle of a result", hint="The task can be tried again."
            )
        if self._rows:
            yield self._group()

    def _group(self) -> pa.Table:
        """Return the rows collected so far as a table, and reset."""
        self._rows = self._bytes = 0
        names = [column.name for column in self._schema.columns]
        columns = self._masker.apply_all([codec.finish() for codec in self._codecs], self._projection)
        return pa.Table.from_arrays(columns, names=names)

    def _take(self, data: Bytes, begin: int, fill: int) -> int:
        at = self._skip_header(data, begin, fill)
        if at < 0:
            return begin
        if data.shape[0] > _WIDEST and self._pos.dtype == np.int32:
            self._pos, self._length = self._pos.astype(np.int64), self._length.astype(np.int64)
        while True:
            status, rows, at, end = locate_text(data, at, fill, len(self._codecs), self._pos, self._length)
            self._append(data, int(rows))
            if status == ERROR:
                self._refused(data[at + 4 : end].tobytes())
            if status == BAD:
                raise self._not_spoken("a row of the result is too short or too long")
            if status != FULL:
                self._finished = status == END
                return int(at)

    def _skip_header(self, data: Bytes, begin: int, fill: int) -> int:
        """Skip the column count, the definitions and their EOF; -1 until all of it has arrived."""
        if self._skipped:
            return begin
        at = begin
        for number in range(len(self._codecs) + 2):
            wire = int(_wire_size(data, at, fill))
            if wire == 0 and fill - begin > _LONGEST_HEADER:
                raise self._not_spoken("the definitions of a result have no end")
            if wire == 0:
                return -1
            packet = data[at + 4 : at + min(wire, 16)].tobytes()
            if packet[:1] == b"\xff":  # an error packet
                self._refused(data[at + 4 : at + wire].tobytes())
            if number == 0 and packet != _length_encoded(len(self._codecs)):
                raise self._not_spoken("a result has other columns than those that were selected")
            if number == len(self._codecs) + 1 and packet[:1] != b"\xfe":
                raise self._not_spoken("the definitions of a result have no end")
            at += wire
        self._skipped = 1
        return at

    def _append(self, data: Bytes, rows: int) -> None:
        if rows == 0:
            return
        for c, codec in enumerate(self._codecs):
            try:
                codec.append(data, self._pos[c], self._length[c], rows)
            except ValueFault as fault:
                named, value = fault.of_column(self._schema.columns[c].name), self._shown(data, c, fault.row)
                raise value_fault(named, self._schema.name, {} if value is None else {"value": value}) from None
        self.rows += rows
        self._rows += rows
        self._bytes += int(np.maximum(self._length[: len(self._codecs), :rows], 0).sum())
        last = rows - 1
        starts = [(int(self._pos[c, last]), int(self._length[c, last])) for c in self._key_columns]
        self.last_key = tuple(data[start : start + size].tobytes() for start, size in starts) or None

    def _shown(self, data: Bytes, column: int, row: int) -> str | None:
        """Return the cell for an error message; None for a masked column."""
        if self._projection.masks[column] is not None:
            return None
        start, size = int(self._pos[column, row]), int(self._length[column, row])
        return f"{data[start : start + size].tobytes()!r}"

    def _not_spoken(self, why: str) -> UnsupportedServer:
        return UnsupportedServer(
            f"the server does not speak MySQL's protocol: {why}",
            hint="Check that server.host and server.port are those of MySQL or MariaDB, and not of another program.",
            table=self._schema.name,
        )

    def _refused(self, packet: bytes) -> None:
        number = int.from_bytes(packet[1:3], "little")
        text = packet[3:].decode("utf-8", "replace")
        raise refused_for(self._schema.name, number, text)
