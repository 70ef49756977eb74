"""The canonical texts of whole lake columns, and the names and hashes of their rows: what ``Cell.lake`` is in Spark SQL.

The texts equal those of ``Cell.source`` at the source if and only if the values are equal; see :mod:`cdc_lib.verify.canonical_text`.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdc_lib.lake.arrow_types import arrow_type
from cdc_lib.model.column_types import MAX_DECIMAL_DIGITS
from cdc_lib.model.schema import SourceType
from cdc_lib.verify.canonical_text import MAX_HEX_WIDTH, NULL, Cell, float_of
from cdc_lib.verify.hash_kernel import Hashes, hash_of_each

_EXACT = Context(prec=2 * MAX_DECIMAL_DIGITS)
_GREATEST_FLOAT = struct.unpack(">f", bytes.fromhex("7f7fffff"))[0]

_SECONDS = 19
"""Characters of a date and time without a fraction."""

_PLAIN_SCALE = 6
"""Most digits after the point with which Arrow writes every decimal without an exponent."""


def text_array(cell: Cell, values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return the canonical text of each value of a lake column, null for null.

    Args:
        cell: the column.
        values: of the lake column; its type may be wider than the source's.
    """
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    source = cell.column.type
    if not len(array):
        return pa.array([], pa.string())
    if source.family.is_date and not source.as_text:
        return _times(source, array)
    texts = _others(source, array)
    if texts is not None:
        return texts
    return pa.array([None if one is None else text_of(source, one) for one in array.to_pylist()], pa.string())


def key_columns(cells: Sequence[Cell], keys: Sequence[Sequence[str]]) -> pa.Table:
    """Return keys, given by the texts of their cells, as the lake holds them, under the names of the source's columns."""
    columns = [_column(cell.column.type.lake_type, [key[i] for key in keys]) for i, cell in enumerate(cells)]
    return pa.table(columns, names=[cell.column.name for cell in cells])


def _column(lake_type: str, texts: list[str]) -> pa.Array:
    of = arrow_type(lake_type)
    if pa.types.is_binary(of):
        return pa.array([bytes.fromhex(text) for text in texts], of)
    if pa.types.is_floating(of):
        return pa.array([float_of(text) for text in texts], of)
    column = pa.array(texts, pa.string())
    if pa.types.is_timestamp(of):
        return column.cast(pa.timestamp("us")).cast(pa.int64()).cast(of)
    return column.cast(of)


def row_hashes(cells: Sequence[Cell], texts: Sequence[pa.Array]) -> Hashes:
    """Return the hash of each row, as ``Subject.source_hash`` has it at the source."""
    return hash_of_each(row_texts(cells, texts))


def row_texts(cells: Sequence[Cell], texts: Sequence[pa.Array]) -> pa.Array:
    """Return the text of each row, as :func:`cdc_lib.verify.canonical_text.source_row_text` writes it at the source."""
    parts = [text if cell.source_length else text.fill_null(NULL) for cell, text in zip(cells, texts, strict=True)]
    parts += [_lengths(cell, text) for cell, text in zip(cells, texts, strict=True) if cell.source_length]
    # A null is left out, as CONCAT_WS does.
    return parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, "#", null_handling="skip")


def names_of(cells: Sequence[Cell], keys: Sequence[Sequence[str]]) -> list[str]:
    """Return the identifying name of each row, by the texts of the cells of its key."""
    texts = [pa.array([key[number] for key in keys], pa.string()) for number in range(len(cells))]
    names: list[str] = row_texts(cells, texts).to_pylist()
    return names


def _lengths(cell: Cell, texts: pa.Array) -> pa.Array:
    in_characters = cell.source_length.startswith("CHAR_LENGTH")
    lengths = pc.utf8_length(texts) if in_characters else pc.binary_length(texts)
    return lengths.cast(pa.string()).fill_null(NULL)


def _times(source: SourceType, array: pa.Array) -> pa.Array:
    if source.kind == "date":
        return array.cast(pa.string())
    micros = array.cast(pa.timestamp("us"))  # without a zone: they are in UTC, and text would end with the zone
    texts = micros.cast(pa.string())
    if pc.any(pc.not_equal(_remainders(micros.cast(pa.int64()), 10 ** (6 - source.scale)), 0)).as_py():
        # Digits of a second that the source's type does not have.
        return pa.array([None if one is None else day_text(source, one) for one in texts.to_pylist()], pa.string())
    return pc.utf8_slice_codeunits(texts, 0, _SECONDS + (source.scale + 1 if source.scale else 0))


def _remainders(numbers: pa.Array, by: int) -> pa.Array:
    return pc.subtract(numbers, pc.multiply(pc.divide(numbers, by), by))


def _others(source: SourceType, array: pa.Array) -> pa.Array | None:
    """Return other values as text; None if Arrow does not write them as the source does."""
    held = array.type
    texts: pa.Array | None = None
    match source.kind:
        case "float" | "double":
            if pa.types.is_floating(held):
                texts = _bits(array.cast(pa.float64()), single=source.kind == "float")
        case "int" | "bit" | "year":
            if pa.types.is_boolean(held):
                texts = array.cast(pa.int8()).cast(pa.string())
            elif pa.types.is_integer(held) or (pa.types.is_decimal(held) and held.scale == 0):
                texts = array.cast(pa.string())
        case "decimal" if source.precision <= MAX_DECIMAL_DIGITS:
            if pa.types.is_decimal(held) and held.scale == source.scale <= _PLAIN_SCALE:
                texts = array.cast(pa.string())
        case "bytes":
            if 0 < source.width <= MAX_HEX_WIDTH and pa.types.is_binary(held):
                texts = _hex(array)
        case _:
            texts = array if pa.types.is_string(held) else None
    return texts


def _bits(array: pa.Array, *, single: bool) -> pa.Array:
    """Return the sixteen hex digits of each double; a FLOAT column's value is rounded as the column rounds it."""
    doubles = array.fill_null(0).to_numpy(zero_copy_only=False).copy()
    if single:
        is_float = np.abs(doubles) <= _GREATEST_FLOAT
        doubles[is_float] = doubles[is_float].astype(np.float32)
    ends = np.arange(0, 16 * (len(doubles) + 1), 16, dtype=np.int32)
    return _with_nulls_of(array, ends, doubles.astype(">f8").tobytes().hex().upper())


def _hex(array: pa.Array) -> pa.Array:
    """Return the hex digits of each binary value."""
    _, offsets, data = array.buffers()
    ends = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1]
    used = memoryview(data)[ends[0] : ends[-1]] if data is not None else b""
    return _with_nulls_of(array, ((ends - ends[0]) * 2).astype(np.int32), bytes(used).hex().upper())


def _with_nulls_of(array: pa.Array, ends: np.ndarray, digits: str) -> pa.Array:
    texts = pa.StringArray.from_buffers(len(array), pa.py_buffer(ends), pa.py_buffer(digits.encode()))
    return pc.if_else(array.is_valid(), texts, pa.scalar(None, pa.string()))


def day_text(source: SourceType, text: str) -> str:
    """Return a date or time with the column's digits of a second; more digits stay, because the source cannot have them."""
    seconds, fraction = text[:_SECONDS], text[_SECONDS + 1 :].ljust(6, "0")
    kept = fraction[: max(source.scale, len(fraction.rstrip("0")))]
    return f"{seconds}.{kept}" if kept else seconds


def text_of(source: SourceType, value: Any) -> str:
    """Return the text of a value that is no date; digits that the source's column cannot have stay."""
    match source.kind:
        case "float" | "double":
            return _bits_of(value, single=source.kind == "float")
        case "int" | "bit" | "year":
            return str(int(value)) if int(value) == value else str(value)
        case "decimal" if source.precision <= MAX_DECIMAL_DIGITS:
            return _decimal(value, source.scale)
        case "bytes":
            is_short = 0 < source.width <= MAX_HEX_WIDTH
            return value.hex().upper() if is_short else hashlib.sha256(value).hexdigest().upper()
        case _:
            return str(value)


def _bits_of(value: float, *, single: bool) -> str:
    """Return the sixteen hex digits of a double; a FLOAT column's value is rounded as the column rounds it."""
    if single and abs(value) <= _GREATEST_FLOAT:
        (value,) = struct.unpack(">f", struct.pack(">f", value))
    return struct.pack(">d", value).hex().upper()


def _decimal(value: Decimal, scale: int) -> str:
    """Return all digits of the column; a value of a wider lake column that has more digits keeps them."""
    exact = _EXACT.quantize(value, Decimal(1).scaleb(-scale))
    return f"{exact if exact == value else value:f}"
