"""The canonical text of cells that were read from the lake as Arrow columns: what ``Cell.lake`` is in Spark SQL.

The texts equal those of ``Cell.source`` at the source if and only if the values are equal; see
:mod:`cdc_lib.verify.canonical_text`.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa

from cdc_lib.model.schema import MAX_DECIMAL_DIGITS, SourceType
from cdc_lib.verify.canonical_text import MAX_HEX_WIDTH, Cell

_EXACT = Context(prec=2 * MAX_DECIMAL_DIGITS)
_GREATEST_FLOAT = struct.unpack(">f", bytes.fromhex("7f7fffff"))[0]

_SECONDS = 19
"""Characters of a date and time without a fraction."""


def texts_of(cell: Cell, values: pa.Array | pa.ChunkedArray) -> list[str | None]:
    """Return the text of each value of a lake column; None for null.

    Args:
        cell: the column.
        values: of the lake column; its type may be wider than the source's.
    """
    source = cell.column.type
    if source.family.is_date and not source.as_text:
        return [_day(source, text) for text in _plain_times(values).cast(pa.string()).to_pylist()]
    return [None if value is None else _text(source, value) for value in values.to_pylist()]


def _plain_times(values: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return times without a zone: they are in UTC, and text would end with the zone."""
    return values.cast(pa.timestamp("us")) if pa.types.is_timestamp(values.type) else values


def _day(source: SourceType, text: str | None) -> str | None:
    """Return a date or time with the column's digits of a second; more digits stay, because the source cannot have them."""
    if text is None or source.kind == "date":
        return text
    seconds, fraction = text[:_SECONDS], text[_SECONDS + 1 :].ljust(6, "0")
    kept = fraction[: max(source.scale, len(fraction.rstrip("0")))]
    return f"{seconds}.{kept}" if kept else seconds


def _text(source: SourceType, value: Any) -> str:
    match source.kind:
        case "float" | "double":
            return _bits(value, single=source.kind == "float")
        case "int" | "bit" | "year":
            return str(int(value)) if int(value) == value else str(value)
        case "decimal" if source.precision <= MAX_DECIMAL_DIGITS:
            return _decimal(value, source.scale)
        case "bytes":
            is_short = 0 < source.width <= MAX_HEX_WIDTH
            return value.hex().upper() if is_short else hashlib.sha256(value).hexdigest().upper()
        case _:
            return str(value)


def _bits(value: float, *, single: bool) -> str:
    """Return the sixteen hex digits of a double; a FLOAT column's value is rounded as the column rounds it."""
    if single and abs(value) <= _GREATEST_FLOAT:
        (value,) = struct.unpack(">f", struct.pack(">f", value))
    return struct.pack(">d", value).hex().upper()


def _decimal(value: Decimal, scale: int) -> str:
    """Return all digits of the column; a value of a wider lake column that has more digits keeps them."""
    exact = _EXACT.quantize(value, Decimal(1).scaleb(-scale))
    return f"{exact if exact == value else value:f}"


def row_text(cells: Sequence[Cell], texts: Sequence[str]) -> str:
    """Return the text of a key, as :func:`cdc_lib.verify.canonical_text.source_row_text` writes it at the source.

    Args:
        cells: of the key; no part of it is null.
        texts: of the cells.
    """
    lengths = [length_of(cell, text) for cell, text in zip(cells, texts, strict=True) if cell.source_length]
    return "#".join((*texts, *lengths))


def length_of(cell: Cell, text: str) -> str:
    """Return the length of a text as ``Cell.source_length`` has it."""
    return str(len(text) if cell.source_length.startswith("CHAR_LENGTH") else len(text.encode()))
