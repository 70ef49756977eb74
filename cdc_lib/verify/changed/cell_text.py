"""The canonical text of cells that were read from the lake without Spark: what ``Cell.lake`` is in Spark SQL.

The texts equal those of ``Cell.source`` at the source if and only if the values are equal; see
:mod:`cdc_lib.verify.canonical_text`. :mod:`cdc_lib.verify.changed.cell_arrays` makes those of whole columns.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from decimal import Context, Decimal
from typing import Any

from cdc_lib.model.schema import MAX_DECIMAL_DIGITS, SourceType
from cdc_lib.verify.canonical_text import MAX_HEX_WIDTH, Cell

_EXACT = Context(prec=2 * MAX_DECIMAL_DIGITS)
GREATEST_FLOAT = struct.unpack(">f", bytes.fromhex("7f7fffff"))[0]

SECONDS = 19
"""Characters of a date and time without a fraction."""


def day_text(source: SourceType, text: str) -> str:
    """Return a date or time with the column's digits of a second; more digits stay, because the source cannot have them."""
    seconds, fraction = text[:SECONDS], text[SECONDS + 1 :].ljust(6, "0")
    kept = fraction[: max(source.scale, len(fraction.rstrip("0")))]
    return f"{seconds}.{kept}" if kept else seconds


def text_of(source: SourceType, value: Any) -> str:
    """Return the text of a value that is no date; digits that the source's column cannot have stay."""
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
    if single and abs(value) <= GREATEST_FLOAT:
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
