"""ENUM and SET.

Row image: ENUM is the member's number from 1 in one or two bytes, 0 being the empty string of an invalid value; SET is a bit
per member in 1, 2, 3, 4 or 8 bytes; both little-endian. The lake holds labels. Text row: labels already.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numba import njit

from cdc_lib.binlog.bytes.integers import copy, little
from cdc_lib.binlog.types.builders import TextBuilder
from cdc_lib.binlog.types.codec import Bytes, Cells, Codec, Kernel, ValueFault
from cdc_lib.model.members import SharedTexts
from cdc_lib.model.schema import SourceType

_KEY_HINT = (
    "SELECT shows the error value 0 and the member '' alike, so two keys would become one. Correct the row (WHERE column + 0 = 0 "
    "finds it), then: cdc snapshot {source} {table}; or exclude the table."
)


@njit(cache=True, nogil=True)
def enum(b, pos, length, n, offsets, data, valid, at, labels, starts):
    """Write the label of each number; returns the row of a number without a label, else -1."""
    o = np.int64(offsets[at])
    members = starts.shape[0] - 1
    for i in range(n):
        valid[at + i] = length[i] >= 0
        if length[i] > 0:
            member = little(b, pos[i], length[i])
            if member > members:
                return i
            if member > 0:
                size = starts[member] - starts[member - 1]
                copy(labels, starts[member - 1], data, o, size)
                o += size
        offsets[at + i + 1] = o
    return -1


@njit(cache=True, nogil=True)
def set_(b, pos, length, n, offsets, data, valid, at, labels, starts):
    """Write the labels of each bit mask with commas between; returns the row of a bit without a label, else -1."""
    o = np.int64(offsets[at])
    members = starts.shape[0] - 1
    for i in range(n):
        valid[at + i] = length[i] >= 0
        if length[i] > 0:
            mask = np.uint64(little(b, pos[i], length[i]))
            if members < 64 and mask >> np.uint64(members) != 0:
                return i
            first = True
            for m in range(members):
                if (mask >> np.uint64(m)) & np.uint64(1) == 0:
                    continue
                if not first:
                    data[o] = 44
                    o += 1
                first = False
                size = starts[m + 1] - starts[m]
                copy(labels, starts[m], data, o, size)
                o += size
        offsets[at + i + 1] = o
    return -1


class MemberCodec:
    """Codec of ENUM and SET out of row images.

    Args:
        source_type: of kind ``enum`` or ``set``, with its members.
    """

    def __init__(self, source_type: SourceType) -> None:
        """Lay the labels out one after another."""
        encoded = [member.encode() for member in source_type.members]
        self.arrow_type = pa.string()
        self._column = TextBuilder(self.arrow_type)
        self._labels = np.frombuffer(b"".join(encoded) or b"\0", np.uint8)
        self._starts = np.cumsum([0, *map(len, encoded)]).astype(np.int64)
        self._kernel: Kernel = enum if source_type.kind == "enum" else set_
        if source_type.kind == "enum":
            self._longest = max(map(len, encoded), default=0)
        else:
            self._longest = sum(map(len, encoded)) + len(encoded)

    def append(self, data: Bytes, pos: Cells, length: Cells, rows: int) -> None:
        """Append cells."""
        column = self._column
        column.reserve(rows, rows * self._longest)
        target = (column.offsets, column.data, column.validity.bytes, column.rows)
        fault = self._kernel(data, pos, length, rows, *target, self._labels, self._starts)
        if fault >= 0:
            raise ValueFault(int(fault), "the number is not a member of the column's type")
        column.rows += rows

    def finish(self) -> pa.Array:
        """Return the column."""
        return self._column.finish()


class KeyMemberCodec:
    """Codec of a key's column of which some values have the text of another: two keys would become one.

    Args:
        codec: of the column outside of a key.
        shared: those values.
        from_text: cells are texts, NULL for such a value (:meth:`SharedTexts.select`).
    """

    def __init__(self, codec: Codec, shared: SharedTexts, *, from_text: bool) -> None:
        self.arrow_type = codec.arrow_type
        self._codec, self._shared, self._from_text = codec, shared, from_text

    def append(self, data: Bytes, pos: Cells, length: Cells, rows: int) -> None:
        """Append cells."""
        for row in range(rows):
            if self._is_shared(data[pos[row] : pos[row] + length[row]], is_null=length[row] < 0):
                raise ValueFault(row, "a value of ENUM or SET that looks like another one, in a key", _KEY_HINT)
        self._codec.append(data, pos, length, rows)

    def _is_shared(self, cell: Bytes, *, is_null: bool) -> bool:
        if is_null or self._from_text:
            return is_null and self._from_text
        return self._shared.has(int.from_bytes(cell.tobytes(), "little"))

    def finish(self) -> pa.Array:
        """Return the column."""
        return self._codec.finish()
