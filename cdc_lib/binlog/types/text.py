"""CHAR, VARCHAR, TEXT and their binary types.

Row image and text row alike: the bytes as they are stored in the column's character set (a snapshot's session asks for them so).
The lake holds UTF-8; see :mod:`cdc_lib.binlog.charsets`. A BINARY(n) comes without its trailing zero bytes in a row image and is
filled up again, because SELECT shows all n.
"""

from __future__ import annotations

import pyarrow as pa

from cdc_lib.binlog.bytes.copy import copy_ranges, total
from cdc_lib.binlog.charsets.registry import transcoder
from cdc_lib.binlog.types.builders import TextBuilder
from cdc_lib.binlog.types.codec import Bytes, Cells, ValueFault
from cdc_lib.model.value_policy import ValuePolicy

_HINT = "Correct the row, then: cdc snapshot {source} {table}; or set invalid_text: replace in the source file."
_KEY_HINT = (
    "Correct the row, then: cdc snapshot {source} {table}; or exclude the table. With invalid_text: replace two keys could "
    "become one, so it does not apply to keys. Of a character with two codes in its character set, keys have one."
)


class BytesCodec:
    """Codec of bytes.

    Args:
        fill: BINARY(n) in row images: n.
    """

    def __init__(self, *, fill: int = 0) -> None:
        """Start empty."""
        self.arrow_type = pa.binary()
        self._column = TextBuilder(self.arrow_type)
        self._fill = fill

    def append(self, data: Bytes, pos: Cells, length: Cells, rows: int) -> None:
        """Append cells."""
        column = self._column
        column.reserve(rows, int(total(length, rows, self._fill)))
        target = (column.offsets, column.data, column.validity.bytes, column.rows)
        copy_ranges(data, pos, length, rows, *target, self._fill)
        column.rows += rows

    def finish(self) -> pa.Array:
        """Return the column."""
        return self._column.finish()


class TextCodec:
    """Codec of text.

    Args:
        charset: MySQL's name of the character set that cells are in.
        values: whether U+FFFD replaces invalid text, which it never does in a key; else that is a fault.
    """

    def __init__(self, charset: str, values: ValuePolicy) -> None:
        """Look the character set up."""
        self.arrow_type = pa.string()
        self._column = TextBuilder(self.arrow_type)
        self._charset = charset
        self._transcoder = transcoder(charset, in_key=values.in_key)
        self._values = values
        self._growth = 3 if values.replaces else self._transcoder.growth

    def append(self, data: Bytes, pos: Cells, length: Cells, rows: int) -> None:
        """Append cells."""
        column = self._column
        column.reserve(rows, self._growth * int(total(length, rows, 0)))
        target = (column.offsets, column.data, column.validity.bytes, column.rows)
        made = self._transcoder
        bad = made.kernel(data, pos, length, rows, *target, self._values.replaces, *made.tables)
        if bad >= 0:
            what = f"bytes that are not valid in the character set {self._charset}"
            raise ValueFault(int(bad), what, _KEY_HINT if self._values.in_key else _HINT)
        column.rows += rows

    def finish(self) -> pa.Array:
        """Return the column."""
        return self._column.finish()
