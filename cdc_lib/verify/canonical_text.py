"""The canonical text of a cell: equal at the source and in the lake if and only if the values are equal.

Each type has two expressions: MySQL's and MariaDB's over the source column, and Spark SQL's over the lake column. The drain's
code is not used, so that its errors are found. FLOAT and DOUBLE are compared by their bits: programs write them as different
texts. Dates with a zero part follow ``zero_dates``; if that is ``null``, SQL turns the zero date into NULL, and other invalid
dates are normalized row by row (:func:`settled`).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from cdc_lib.model.column_types import CAST_FORMS, MAX_DECIMAL_DIGITS
from cdc_lib.model.lexer import quoted
from cdc_lib.model.schema import Column
from cdc_lib.model.value_policy import ValuePolicy

MAX_HEX_WIDTH = 65_535
"""Largest width in bytes of a binary column whose cells are compared as hex; wider ones are compared by SHA-256."""

NULL = "~"
"""NULL in the text of a row."""

_UTF8 = ("utf8mb4", "utf8mb3", "utf8", "ascii")
_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)")
_REPLACED = re.compile("[?\ufffd]+")


@dataclass(frozen=True, slots=True)
class Cell:
    """The text expressions of one column.

    Args:
        column: as the source declares it.
        source: SQL of the text at the source.
        lake: Spark SQL of the text in the lake.
        nullable: whether the text may be NULL.
        source_length: SQL of its length; empty if the text can neither hold the separator nor equal NULL's text.
        lake_length: the same in Spark SQL, as text.
        digest: whether the text is a digest of the value.
        nulls_dates: whether the lake holds null for an invalid date.
    """

    column: Column
    source: str
    lake: str
    nullable: bool = True
    source_length: str = ""
    lake_length: str = ""
    digest: bool = False
    nulls_dates: bool = False


def cell_of(column: Column, lake_type: str, policy: ValuePolicy) -> Cell:
    """Return the text expressions of a column.

    Args:
        column: as the source declares it.
        lake_type: type of the lake's column; it may be wider than the source's.
        policy: the source file's policy for values of the column that the lake cannot hold.
    """
    name = quoted(column.name)
    expected = column.type.lake_type
    value = name if lake_type == expected else _cast(name, lake_type, expected)
    null = column.nullable
    kind = column.type.kind
    if column.type.family.is_date and not column.type.as_text:
        return _date(column, name, value, null, policy)
    match kind:
        case "float" | "double":
            bits = f"CAST(reflect('java.lang.Double', 'doubleToRawLongBits', CAST({value} AS DOUBLE)) AS BIGINT)"
            lake = f"IF({value} IS NULL, NULL, lpad(hex({bits}), 16, '0'))"
            return Cell(column, f"HEX(REVERSE(SUBSTRING(POINT({name}, 0), 10, 8)))", lake, null)
        case "int" | "decimal" | "bit" | "year":
            return _number(column, name, value, null)
        case "bytes":
            return _bytes(column, name, value, null)
        case "string" | "enum" | "set":
            return _text(column, name, value, null)
        case _:
            return Cell(column, name, value, null)


def _cast(name: str, lake_type: str, expected: str) -> str:
    """Return a lake column as another type; Spark casts a date or bytes to no number, and a number to no date, but through their texts."""
    pair = {lake_type.partition("(")[0], expected}
    through = bool(pair & {"date", "binary", "boolean", "timestamp", "timestamp_ntz"}) and "string" not in pair
    return f"TRY_CAST({f'CAST({name} AS STRING)' if through else name} AS {expected})"


def _number(column: Column, name: str, value: str, null: bool) -> Cell:
    kind = column.type.kind
    if column.type.as_boolean is not None:
        # With as_true every number but 0 is the same in the lake; else another one is wrong.
        source = f"({name} <> 0)" if column.type.as_boolean == "as_true" else f"({name} + 0)"
        return Cell(column, source, f"CAST(CAST({value} AS INT) AS STRING)", null)
    text = kind == "decimal" and column.type.precision > MAX_DECIMAL_DIGITS
    plain = kind in ("int", "decimal") and "zerofill" not in column.type.text.lower()
    lake = value if text else f"CAST({value} AS STRING)"
    number = column.type.whole_year(name) if column.type.is_short_year else f"({name} + 0)"
    return Cell(column, name if plain else number, lake, null)


def _date(column: Column, name: str, value: str, null: bool, policy: ValuePolicy) -> Cell:
    source = f"NULLIF({name}, 0)" if policy.nulls_dates else name
    lake = f"CAST({value} AS STRING)"
    if column.type.kind != "date":
        # By a pattern a time becomes text in half of a cast's time; a fraction that the source's type does not have stays.
        digits = column.type.scale
        lake = f"date_format({value}, 'yyyy-MM-dd HH:mm:ss.{'S' * (digits or 6)}')"
        lake = lake if digits else f"replace({lake}, '.000000', '')"
    # A key of the lake may be null all the same, if an earlier version wrote it.
    return Cell(column, source, lake, null or policy.zero_dates == "null", nulls_dates=policy.nulls_dates)


def _bytes(column: Column, name: str, value: str, null: bool) -> Cell:
    source = f"CAST({name} AS BINARY({column.type.width}))" if column.type.form in CAST_FORMS else name
    if 0 < column.type.width <= MAX_HEX_WIDTH:
        return Cell(column, f"HEX({source})", f"hex({value})", null)
    return Cell(column, f"UPPER(SHA2({source}, 256))", f"upper(sha2({value}, 256))", null, digest=True)


def _text(column: Column, name: str, value: str, null: bool) -> Cell:
    utf8 = column.type.charset in _UTF8
    source = name if utf8 else f"CONVERT({name} USING utf8mb4)"
    if column.type.kind != "string" and not any("#" in member or member == NULL for member in column.type.members):
        return Cell(column, source, value, null)
    of_source, of_lake = ("LENGTH", "octet_length") if utf8 else ("CHAR_LENGTH", "char_length")
    return Cell(column, source, value, null, f"{of_source}({name})", f"CAST({of_lake}({value}) AS STRING)")


def settled(cell: Cell, text: str | None, policy: ValuePolicy) -> str | None:
    """Return a cell's text from either side, normalized to what the lake must hold.

    An invalid date is NULL, and replaced bytes are unknown.
    """
    if text is None:
        return None
    if cell.nulls_dates and not _is_date(text):
        return None
    if cell.column.type.kind == "string" and policy.replaces:
        return _REPLACED.sub("\ufffd", text)
    return text


def has_null(keys: Sequence[Cell], texts: Sequence[str | None]) -> bool:
    """Whether a part of a key is null, as keys with invalid dates were in lake tables of earlier versions."""
    return any(is_null(cell, text) for cell, text in zip(keys, texts, strict=True))


def is_null(cell: Cell, text: str | None) -> bool:
    """Whether a part of a key is null; lists of keys have an empty text instead, which no date has."""
    return text is None or (not text and cell.column.type.family.is_date)


def _is_date(text: str) -> bool:
    match = _DATE.match(text)
    if match is None:
        return False
    year, month, day = map(int, match.groups())
    try:
        date(year or 4, month, day)  # the lake holds the year 0, which was a leap year
    except ValueError:
        return False
    return True


def shown(cell: Cell, text: str | None) -> str | None:
    """Return a cell's text for display."""
    if text is None:
        return None
    if cell.digest:
        return f"SHA-256 {text}"
    if cell.column.type.family.is_float:
        return repr(float_of(text))
    return text


def float_of(bits: str) -> float:
    """Return the number of an IEEE 754 double from its sixteen hex digits."""
    (number,) = struct.unpack(">d", bytes.fromhex(bits))
    return float(number)


def literal(cell: Cell, text: str) -> str:
    """Return the SQL literal of a cell's text at the source; the row that it selects must still be compared."""
    family = cell.column.type.family
    if family.is_float:
        return repr(float_of(text))
    if not family.signs[0] or (family.in_hex and not (family.has_charset or cell.digest)):
        return cell.column.type.literal(text)
    return f"_utf8mb4 X'{text.encode().hex()}'"


def source_row_text(cells: Sequence[Cell]) -> str:
    """Return the SQL of a row's text: its cells, and the lengths of cells that may hold the separator.

    NULL replaces the cell, or its length if the cell could equal NULL's text.
    """
    parts = [
        f"IFNULL({cell.source}, '{NULL}')" if cell.nullable and not cell.source_length else cell.source
        for cell in cells
    ]
    parts += [f"IFNULL({cell.source_length}, '{NULL}')" for cell in cells if cell.source_length]
    return f"CONCAT_WS('#', {', '.join(parts)})"


def lake_row_text(cells: Sequence[Cell]) -> str:
    """Return the same in Spark SQL; a lake column may be null that the source's cannot be."""
    parts = [cell.lake if cell.lake_length else f"coalesce({cell.lake}, '{NULL}')" for cell in cells]
    parts += [f"coalesce({cell.lake_length}, '{NULL}')" for cell in cells if cell.lake_length]
    return f"concat_ws('#', {', '.join(parts)})"


def source_hash(text: str) -> str:
    """Return the SQL of a text's hash.

    CRC32 of CRC32: the same change in two rows changes their CRC32 by the same bits, which cancel out in an XOR; the outer
    CRC32 is over the decimal digits of the inner one, so that sums show such changes.
    """
    return f"CRC32(CRC32({text}))"


def lake_hash(text: str) -> str:
    """Return the same in Spark SQL."""
    return f"crc32(CAST(crc32({text}) AS STRING))"
