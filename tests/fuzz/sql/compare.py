"""Compares a database with its lake tables, without any code of the product.

The source side is SELECT by pymysql, where the server itself makes the text of each value. The lake side is read by PyIceberg. Where the
lake may differ from SELECT by its documentation (docs/reference/data-types.md, docs/reference/ddl.md), this module says so:

* DATE, DATETIME and TIMESTAMP with a zero or impossible part are null (``zero_dates: "null"``); in a key column null is a fault.
* A table without rows need not be in the lake (so that nobody says that the lake cannot have its column ``_op``), and a column that was added need not be before the table's first change after it.
* A dropped column stays in the lake.
* Work tables of online schema change tools are not captured.
* A table without a primary key is a list of changes: inserted rows minus deleted ones.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchTableError
from pymysql.connections import Connection

Row = tuple[str | None, ...]
SHOWN = 3
_WORK_TABLE = re.compile(r"_+.+_(gho|ghc|del|new|old)", re.IGNORECASE)
_ORDER = ("_epoch", "_binlog", "_offset", "_row")
_TEMPORAL = ("date", "datetime", "timestamp")
_BYTES = ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob", "vector")
_GEOMETRY = (
    "geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon", "geomcollection",
    "geometrycollection",
)  # fmt: skip
_NETWORK = {"inet4": 4, "inet6": 16, "uuid": 16}
_TEXT = ("char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set", "json")
_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


@dataclass(frozen=True)
class Difference:
    """What is wrong with one table.

    Args:
        table: its name.
        kind: ``missing table``, ``missing column``, ``null key`` or ``rows``.
        what: columns and their types, without values: equal for equal faults.
        examples: a few rows.
    """

    table: str
    kind: str
    what: str
    examples: tuple[str, ...] = ()


_NUMBERS = {
    "bit": "{} + 0",
    "float": "{} * 1e0",
    # MySQL writes the product of the smallest normal number with a digit less.
    "double": "IF({0} <> 0 AND ABS({0}) < 1e-300, {0}, {0} * 1e0)",
    "year(2)": "IF(YEAR({0}) = 1900, 0, YEAR({0}))",
}
"""Types whose own text is not the whole value: a FLOAT has six digits there, a DOUBLE(m,d) d after the point, and a YEAR(2) two."""


@dataclass(frozen=True)
class _Column:
    name: str
    type: str
    in_key: bool

    @property
    def select(self) -> str:
        """The SELECT expression of its text."""
        name = "`" + self.name.replace("`", "``") + "`"
        if self.type in _TEXT:
            return (
                f"HEX(CONVERT(CAST({name} AS CHAR) USING utf8mb4))"
                if self.type == "json"
                else f"HEX(CONVERT({name} USING utf8mb4))"
            )
        if self.type in _BYTES or self.type in _GEOMETRY:
            return f"HEX({name})"
        if self.type in _NETWORK:
            return f"HEX(CAST({name} AS BINARY({_NETWORK[self.type]})))"
        return f"CAST({_NUMBERS.get(self.type, '{}').format(name)} AS CHAR)"


def differences(
    connection: Connection[Any], database: str, catalog: Catalog, left_out: Sequence[str], *, added_columns: bool
) -> Iterator[Difference]:
    """Yield what is wrong with the tables of a database.

    Args:
        connection: a session of the source; its settings are changed.
        database: its name, which is the lake's namespace as well.
        catalog: the lake's.
        left_out: names of tables that are not compared.
        added_columns: whether every table was changed after its last added column.
    """
    with connection.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00', sql_mode = '', NAMES utf8mb4")
        cursor.execute(
            # Rows of a MERGE table and of its parts have the events of one of them, which doctor says.
            "SELECT table_name FROM information_schema.tables WHERE table_schema = %s AND table_type IN ('BASE TABLE', 'SYSTEM VERSIONED') "
            "AND NOT (engine IN ('MyISAM', 'MRG_MyISAM') "
            "AND EXISTS (SELECT 1 FROM information_schema.tables AS one WHERE one.engine = 'MRG_MyISAM')) ORDER BY 1",
            [database],
        )
        names = [name for (name,) in cursor.fetchall()]
    for name in names:
        if name not in left_out and not _WORK_TABLE.fullmatch(name):
            yield from _table(connection, database, name, catalog, added_columns=added_columns)


def _table(
    connection: Connection[Any], database: str, table: str, catalog: Catalog, *, added_columns: bool
) -> Iterator[Difference]:
    columns = _columns(connection, database, table)
    quoted = "`" + table.replace("`", "``") + "`"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(one.select for one in columns)} FROM `{database}`.{quoted}")
        source = list(cursor.fetchall())
    try:
        lake = catalog.load_table((database, table)).scan().to_arrow()
    except NoSuchTableError:
        if source:
            yield Difference(table, "missing table", "", (f"{len(source)} rows at the source",))
        return
    by_name = {name.lower(): name for name in lake.column_names}
    known = [one for one in columns if one.name.lower() in by_name]
    if added_columns and source and len(known) < len(columns):
        missing = ", ".join(f"{one.name} {one.type}" for one in columns if one not in known)
        yield Difference(table, "missing column", missing)
    if not source and any(one.name.lower() == "_op" for one in columns):
        return
    indexes = [columns.index(one) for one in known]
    types = [lake.schema.field(by_name[one.name.lower()]).type for one in known]
    expected = Counter(
        tuple(_expected(one, kind, row[i]) for one, kind, i in zip(known, types, indexes, strict=True))
        for row in source
    )
    found = _lake_rows(lake, [by_name[one.name.lower()] for one in known], known)
    nulls = [one for i, one in enumerate(known) if one.in_key and any(row[i] is None for row in found)]
    if nulls:
        yield Difference(
            table,
            "null key",
            ", ".join(one.type for one in nulls),
            tuple(f"{one.name} is null in the lake" for one in nulls),
        )
    if expected != found:
        yield _rows_differ(table, known, types, expected, found)


def _rows_differ(
    table: str, columns: Sequence[_Column], types: Sequence[pa.DataType], expected: Counter[Row], found: Counter[Row]
) -> Difference:
    wrong = [
        f"{one.type}{' in the key' if one.in_key else ''} as {kind}"
        for i, (one, kind) in enumerate(zip(columns, types, strict=True))
        if _of(expected, i) != _of(found, i)
    ]
    missing, extra = expected - found, found - expected
    count = f"{sum(missing.values())} missing, {sum(extra.values())} extra"
    negative = {row: n for row, n in found.items() if n < 0}
    same = sum(expected.values()) == sum(found.values())
    examples = [
        f"{count}; columns {', '.join(one.name for one in columns)}",
        *(f"missing in the lake: {row!r}"[:400] for row in list(missing)[:SHOWN]),
        *(f"only in the lake: {row!r}"[:400] for row in list(extra)[:SHOWN]),
        *(f"deleted {-n} times too often: {row!r}"[:400] for row, n in list(negative.items())[:SHOWN]),
    ]
    return Difference(
        table, "rows", f"{'other values' if same else 'other rows'}: {', '.join(sorted(set(wrong)))}", tuple(examples)
    )


def _of(rows: Counter[Row], index: int) -> Counter[str | None]:
    column: Counter[str | None] = Counter()
    for row, count in rows.items():
        column[row[index]] += count
    return column


def _columns(connection: Connection[Any], database: str, table: str) -> list[_Column]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT column_name, IF(column_type = 'year(2)', column_type, data_type), column_key = 'PRI' FROM information_schema.columns "
            # A virtual column by RAND() is another one each time that somebody reads it.
            "WHERE table_schema = %s AND table_name = %s AND COALESCE(generation_expression, '') NOT LIKE '%%rand(%%' "
            "ORDER BY ordinal_position",
            [database, table],
        )
        found = cursor.fetchall()
        cursor.execute(
            "SELECT COUNT(*) FROM information_schema.statistics WHERE table_schema = %s AND table_name = %s AND index_name = 'PRIMARY'",
            [database, table],
        )
        ((keyed,),) = cursor.fetchall()
    return [_Column(name, kind.lower(), bool(keyed and key)) for name, kind, key in found]


def _lake_rows(lake: pa.Table, names: Sequence[str], columns: Sequence[_Column]) -> Counter[Row]:
    """Return the rows with their number; those of a list of changes are added up."""
    cells = [_cells(lake.column(name), one.type) for name, one in zip(names, columns, strict=True)]
    rows: Counter[Row] = Counter()
    texts: list[Row] = list(zip(*cells, strict=True)) if cells else [()] * lake.num_rows
    if "_op" not in lake.column_names or "_op" in names:
        rows.update(texts)
        return rows
    order = list(zip(*(lake.column(name).to_pylist() for name in _ORDER), strict=True))
    ops = lake.column("_op").to_pylist()
    emptied = max((at for at, op in zip(order, ops, strict=True) if op == "t"), default=None)
    for op, at, row in zip(ops, order, texts, strict=True):
        if op != "t" and (emptied is None or at > emptied):
            rows[row] += -1 if op == "d" else 1
    return Counter({row: count for row, count in rows.items() if count})


def _cells(column: pa.ChunkedArray, source_type: str) -> list[str | None]:
    """Return the texts of a lake column's values."""
    kind = column.type
    if pa.types.is_date(kind):
        return [None if days is None else calendar_day(days) for days in column.cast(pa.int32()).to_pylist()]
    if pa.types.is_timestamp(kind):
        return [None if at is None else _moment(at) for at in pc.cast(column, pa.int64()).to_pylist()]
    values = column.to_pylist()
    return [None if value is None else _text(value, kind, source_type) for value in values]


def _text(value: Any, kind: pa.DataType, source_type: str) -> str:
    if isinstance(value, bytes):
        return value.hex().upper()
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass").hex().upper() if source_type in _TEXT else value
    if pa.types.is_float32(kind):
        return repr(float(np.float32(value)))
    if pa.types.is_floating(kind):
        return repr(float(value))
    return _number(value) if pa.types.is_decimal(kind) else str(value)


def _number(value: Decimal) -> str:
    """Return the text of a number; the lake's column may have more digits than the source's has now."""
    text = f"{value:f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text).removesuffix("-0") or "0"


def _expected(column: _Column, kind: pa.DataType, text: str | bytes | None) -> str | None:
    """Return the text that the lake has of a value, from the server's text of it; that text where the lake's type holds none such."""
    if text is None:
        return None
    text = text.decode() if isinstance(text, bytes) else text
    try:
        return _as_in_lake(column, kind, text)
    except (ValueError, ArithmeticError):
        return text


def _as_in_lake(column: _Column, kind: pa.DataType, text: str) -> str | None:
    if column.type in _TEMPORAL and not pa.types.is_string(kind):
        return _of_day(text, kind)
    if pa.types.is_integer(kind):
        return str(int(text))  # without the zeros before it of ZEROFILL and YEAR
    if pa.types.is_decimal(kind):
        return _number(Decimal(text))
    if column.type == "decimal" and pa.types.is_string(kind):
        return re.sub(r"^(-?)0+(?=\d)", r"\1", text)
    if column.type in ("float", "double") or pa.types.is_floating(kind):
        return repr(float(np.float32(float(text)) if column.type == "float" else float(text)))
    return text


def _of_day(text: str, kind: pa.DataType) -> str | None:
    """Return the text of a DATE, DATETIME or TIMESTAMP in a column of a date or a timestamp."""
    if not _has_place(text):
        return None
    day, _, fraction = text.partition(".")
    if pa.types.is_date(kind):
        return day
    return f"{day if ' ' in day else f'{day} 00:00:00'}.{fraction:0<6}"


def _has_place(text: str) -> bool:
    """Whether a date has no zero or impossible part."""
    year, month, day = int(text[:4]), int(text[5:7]), int(text[8:10])
    if not 1 <= month <= 12:
        return False
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 1 <= day <= _DAYS[month - 1] + (leap and month == 2)


def calendar_day(days: int) -> str:
    """Return a day since 1970 in the proleptic Gregorian calendar, also of the year 0, which Python does not have."""
    era, of_era = divmod(days + 719_468, 146_097)
    year = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    shifted = (5 * of_year + 2) // 153
    month = shifted + 3 if shifted < 10 else shifted - 9
    return f"{year + era * 400 + (month <= 2):04d}-{month:02d}-{of_year - (153 * shifted + 2) // 5 + 1:02d}"


def _moment(micros: int) -> str:
    seconds, fraction = divmod(micros, 1_000_000)
    days, second = divmod(seconds, 86_400)
    return f"{calendar_day(days)} {second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}.{fraction:06d}"
