"""The text of a cell, which is the same at the source and in the lake exactly when the value is.

For each type a pair of expressions: MySQL's and MariaDB's over the source's column, Spark SQL's over the lake's. No code of the
drain takes part, so that a mistake there is not made twice. FLOAT and DOUBLE are compared by their bits: texts of floats
differ from program to program. Dates with a zero part follow ``zero_dates``; as long as that is ``null`` the whole zero is
NULL in SQL already, and other impossible dates are settled row by row (:func:`settled`).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from cdc_lib.model.column_types import CAST_FORMS
from cdc_lib.model.schema import MAX_DECIMAL_DIGITS, Column
from cdc_lib.model.value_policy import ValuePolicy

MOST_HEX = 65_535
"""Bytes of a binary column up to which its cells are written as hex; of wider ones the SHA-256 is compared."""

NULL = "~"
"""Stands for NULL in the text of a row."""

_UTF8 = ("utf8mb4", "utf8mb3", "utf8", "ascii")
_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)")
_REPLACED = re.compile("[?\ufffd]+")


@dataclass(frozen=True, slots=True)
class Cell:
    """How the cells of one column become text.

    Args:
        column: as the source declares it.
        source: SQL of the text at the source.
        lake: Spark SQL of the text in the lake.
        nullable: whether the text may be NULL.
        source_length: SQL of its length; empty where the text can neither hold a separator nor look like NULL's.
        lake_length: the same in Spark SQL, as text.
        digest: whether the text is a digest of the value.
    """

    column: Column
    source: str
    lake: str
    nullable: bool = True
    source_length: str = ""
    lake_length: str = ""
    digest: bool = False


def quoted(name: str) -> str:
    """Return a name in backticks, which both sides take."""
    return "`" + name.replace("`", "``") + "`"


def cell_of(column: Column, found: str, policy: ValuePolicy) -> Cell:
    """Return how a column's cells become text.

    Args:
        column: as the source declares it.
        found: type of the lake's column; it may be wider than that of the source's.
        policy: what the source file says of values that the lake cannot hold.
    """
    name = quoted(column.name)
    wanted = column.type.lake_type
    value = name if found == wanted else f"TRY_CAST({name} AS {wanted})"
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
            text = kind == "decimal" and column.type.precision > MAX_DECIMAL_DIGITS
            plain = kind in ("int", "decimal") and "zerofill" not in column.type.text.lower()
            lake = value if text else f"CAST({value} AS STRING)"
            century = f"IF({name} + 0 < 70, 2000, 1900)" if column.type.is_short_year else "0"
            return Cell(column, name if plain else f"({name} + {century})", lake, null)
        case "bytes":
            return _bytes(column, name, value, null)
        case "string" | "enum" | "set":
            return _text(column, name, value, null)
        case _:
            return Cell(column, name, value, null)


def _date(column: Column, name: str, value: str, null: bool, policy: ValuePolicy) -> Cell:
    source = name
    if policy.zero_dates == "null":
        source, null = f"NULLIF({name}, 0)", True
    lake = f"CAST({value} AS STRING)"
    if digits := column.type.scale if column.type.kind != "date" else 0:
        # The value is written once: of one without a fraction the point is put in afterwards.
        lake = f"overlay(rpad({lake}, {20 + digits}, '0') PLACING '.' FROM 20)"
    return Cell(column, source, lake, null)


def _bytes(column: Column, name: str, value: str, null: bool) -> Cell:
    source = f"CAST({name} AS BINARY({column.type.width}))" if column.type.form in CAST_FORMS else name
    if 0 < column.type.width <= MOST_HEX:
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
    """Return a cell's text as the lake is to have it, from either side.

    A date that no date type holds is NULL, and of replaced bytes nobody can tell what they were.
    """
    if text is None:
        return None
    kind = cell.column.type.kind
    if (
        cell.column.type.family.is_date
        and not cell.column.type.as_text
        and policy.zero_dates == "null"
        and not _is_date(text)
    ):
        return None
    if kind == "string" and policy.replaces:
        return _REPLACED.sub("\ufffd", text)
    return text


def _is_date(text: str) -> bool:
    found = _DATE.match(text)
    if found is None:
        return False
    year, month, day = map(int, found.groups())
    try:
        date(year or 4, month, day)  # the lake holds the year 0, which was a leap year
    except ValueError:
        return False
    return True


def shown(cell: Cell, text: str | None) -> str | None:
    """Return a cell's text for people."""
    if text is None:
        return None
    if cell.digest:
        return f"SHA-256 {text}"
    if cell.column.type.kind in ("float", "double"):
        return repr(float_of(text))
    return text


def float_of(bits: str) -> float:
    """Return the number of an IEEE 754 double from its sixteen hex digits."""
    (number,) = struct.unpack(">d", bytes.fromhex(bits))
    return float(number)


def literal(cell: Cell, text: str) -> str:
    """Return the constant at the source whose value has a text; whether it is the same text is to be looked at then."""
    match cell.column.type.kind:
        case "int" | "decimal" | "bit" | "year":
            return text
        case "float" | "double":
            return repr(float_of(text))
        case "bytes" if not cell.digest:
            return f"X'{text}'"
        case _:
            return f"_utf8mb4 X'{text.encode().hex()}'"


def source_row_text(cells: Sequence[Cell]) -> str:
    """Return the SQL of a row's text: its cells, and the lengths of those that may hold the separator.

    NULL has a sign in the place of its cell, or of its length where the cell could look like that.
    """
    parts = [
        f"IFNULL({cell.source}, '{NULL}')" if cell.nullable and not cell.source_length else cell.source
        for cell in cells
    ]
    parts += [f"IFNULL({cell.source_length}, '{NULL}')" for cell in cells if cell.source_length]
    return f"CONCAT_WS('#', {', '.join(parts)})"


def lake_row_text(cells: Sequence[Cell]) -> str:
    """Return the same in Spark SQL."""
    parts = [
        f"coalesce({cell.lake}, '{NULL}')" if cell.nullable and not cell.lake_length else cell.lake for cell in cells
    ]
    parts += [f"coalesce({cell.lake_length}, '{NULL}')" for cell in cells if cell.lake_length]
    return f"concat_ws('#', {', '.join(parts)})"


def source_hash(text: str) -> str:
    """Return the SQL of a text's hash.

    CRC32 of CRC32: the same change in two rows changes their CRC32 by the same bits, which cancel out in an XOR; the outer
    one takes the decimal digits of the inner, so that sums tell such changes.
    """
    return f"CRC32(CRC32({text}))"


def lake_hash(text: str) -> str:
    """Return the same in Spark SQL."""
    return f"crc32(CAST(crc32({text}) AS STRING))"
