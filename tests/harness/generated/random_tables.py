"""Random tables, and values of every supported column type, as SQL."""

from __future__ import annotations

import json
import string
from dataclasses import dataclass
from datetime import datetime

from hypothesis import strategies as st

Values = st.SearchStrategy[str]


def integers(low: int, high: int) -> Values:
    """Integers, often the smallest and the largest."""
    return (st.sampled_from([low, high, 0, 1]) | st.integers(low, high)).map(str)


def decimals(precision: int, scale: int) -> Values:
    def text(digits: int) -> str:
        whole = str(abs(digits)).rjust(scale + 1, "0")
        return f"{'-' if digits < 0 else ''}{whole[:-scale] or '0'}.{whole[-scale:]}" if scale else str(digits)

    most = 10**precision - 1
    return (st.sampled_from([most, -most, 0, -1]) | st.integers(-most, most)).map(text)


def texts(alphabet: str, most: int) -> Values:
    """Texts as hexadecimal literals: no quoting changes a value."""
    return st.text(alphabet, max_size=most).map(lambda text: f"_utf8mb4 x'{text.encode().hex()}'")


def binaries(most: int) -> Values:
    return st.binary(max_size=most).map(lambda data: f"x'{data.hex()}'")


def moments(first: str, last: str, digits: int) -> Values:
    """Datetimes between two, as quoted text."""
    low, high = (datetime.fromisoformat(text) for text in (first, last))
    size = len("2024-02-29 12:34:56") + (1 + digits if digits else 0)
    return st.datetimes(low, high).map(lambda at: f"'{at.isoformat(sep=' ', timespec='microseconds')[:size]}'")


def times(digits: int) -> Values:
    def text(micros: int) -> str:
        seconds, fraction = divmod(abs(micros), 1_000_000)
        sign = "-" if micros < 0 else ""
        tail = f".{fraction:06d}"[: digits + 1] if digits else ""
        return f"'{sign}{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{tail}'"

    most = (838 * 3600 + 59 * 60 + 59) * 1_000_000
    return st.integers(-most, most).map(text)


def members(labels: list[str]) -> Values:
    return st.sampled_from(labels).map(lambda label: f"'{label}'")


def sets(labels: list[str]) -> Values:
    return st.sets(st.sampled_from(labels)).map(lambda chosen: f"'{','.join(sorted(chosen))}'")


_LEAVES = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(string.printable + "éß€😀", max_size=8)
)  # fmt: skip
_KEYS = st.text(string.ascii_letters + "é", max_size=4)


def documents() -> Values:
    nested = st.recursive(
        _LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_KEYS, inner, max_size=4), max_leaves=12
    )
    return nested.map(lambda value: f"_utf8mb4 x'{json.dumps(value, ensure_ascii=False).encode().hex()}'")


LATIN, CYRILLIC, ANY = string.printable + "äöüßé€", string.ascii_letters + "Приветмир", string.printable + "äß日本語😀"
CHINESE, JAPANESE = string.printable + "中文字符数据库，。", string.printable + "日本語のテキスト、表示ｱｲｳ～－"  # noqa: RUF001 - wide
LABELS = ["x", "yé", "日本"]


@dataclass(frozen=True)
class ColumnType:
    """A type, its values, and the SELECT expression by which it is compared.

    Args:
        declared: in CREATE TABLE.
        values: SQL of values.
        key: how it is written in a key; empty if it cannot be in one.
        shown: SELECT expression of its exact value; ``{0}`` is the column.
    """

    declared: str
    values: Values
    key: str = ""
    shown: str = "{0}"


def exact(declared: str, values: Values) -> ColumnType:
    """A type that may be a key without a prefix length."""
    return ColumnType(declared, values, key="{0}")


INTEGERS = [
    exact(f"{name}{' UNSIGNED' if unsigned else ''}", integers(0, 2**bits - 1) if unsigned else integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1))
    for name, bits in (("TINYINT", 8), ("SMALLINT", 16), ("MEDIUMINT", 24), ("INT", 32), ("BIGINT", 64))
    for unsigned in (False, True)
]  # fmt: skip
DECIMALS = [
    exact(f"DECIMAL({p},{s})", decimals(p, s)) for p, s in ((1, 0), (9, 9), (10, 2), (19, 4), (38, 0), (38, 30))
]
LONG_DECIMALS = {
    f"DECIMAL({p},{s})": ColumnType(f"DECIMAL({p},{s})", decimals(p, s), key="{0}", shown="CAST({0} AS CHAR)")
    for p, s in ((39, 0), (50, 20), (65, 30))
}
FLOATS = [
    ColumnType("FLOAT", st.floats(width=32, allow_nan=False, allow_infinity=False).map(repr), "{0}", shown="{0} * 1e0"),
    exact("DOUBLE", st.floats(allow_nan=False, allow_infinity=False).map(repr)),
]
BITS = [ColumnType(f"BIT({n})", integers(0, 2**n - 1), "{0}", shown="{0} + 0") for n in (1, 10, 33, 64)]
TEXTS = [
    exact("VARCHAR(20)", texts(ANY, 20)),
    ColumnType("VARCHAR(20) COLLATE utf8mb4_bin", texts(ANY, 20), key="{0}(5)"),
    exact("VARCHAR(90) CHARACTER SET latin1", texts(LATIN, 90)),
    exact("CHAR(12) CHARACTER SET utf8mb4", texts(ANY.replace(" ", ""), 12)),
    exact("VARCHAR(9) CHARACTER SET ascii", texts(string.printable, 9)),
    ColumnType("VARCHAR(30) CHARACTER SET cp1251", texts(CYRILLIC, 30)),
    ColumnType("VARCHAR(600)", texts(ANY, 300)),
    *(exact(f"VARCHAR(20) CHARACTER SET {name}", texts(CHINESE, 20)) for name in ("gbk", "gb2312", "big5")),
    *(exact(f"VARCHAR(20) CHARACTER SET {name}", texts(JAPANESE, 20)) for name in ("sjis", "cp932", "ujis", "eucjpms")),
    *(ColumnType(f"TEXT CHARACTER SET {name}", texts(ANY, 90)) for name in ("utf16", "utf32", "ucs2", "utf16le")),
    ColumnType("CHAR(9) CHARACTER SET utf16", texts(ANY.replace(" ", ""), 9)),
    ColumnType("TINYTEXT", texts(ANY, 50), key="{0}(9)"),
    ColumnType("TEXT", texts(ANY, 400)),
    ColumnType("MEDIUMTEXT CHARACTER SET latin1", texts(LATIN, 400)),
]
BINARIES = [
    exact("BINARY(8)", binaries(8)),
    exact("VARBINARY(30)", binaries(30)),
    ColumnType("VARBINARY(300)", binaries(300)),
    ColumnType("BLOB", binaries(400), key="{0}(7)"),
    ColumnType("LONGBLOB", binaries(400)),
]
TEMPORALS = [
    exact("DATE", st.dates().map(lambda day: f"'{day.isoformat()}'")),
    exact("YEAR", st.integers(1901, 2155).map(str)),
    *(exact(f"DATETIME({n})", moments("0001-01-01", "9999-12-31", n)) for n in (0, 3, 6)),
    *(exact(f"TIMESTAMP({n}) NULL", moments("1970-01-02", "2038-01-18", n)) for n in (0, 2, 6)),
    *(ColumnType(f"TIME({n})", times(n), key="{0}", shown="CAST({0} AS CHAR)") for n in (0, 1, 3, 6)),
]
MEMBERS = [
    exact("ENUM('x','yé','日本')", members(LABELS)),
    exact("SET('x','yé','日本')", sets(LABELS)),
]
DOCUMENTS = [ColumnType("JSON", documents(), shown="CAST({0} AS CHAR)")]
TYPES = [
    *INTEGERS,
    *DECIMALS,
    *LONG_DECIMALS.values(),
    *FLOATS,
    *BITS,
    *TEXTS,
    *BINARIES,
    *TEMPORALS,
    *MEMBERS,
    *DOCUMENTS,
]
KEY_TYPES = [kind for kind in TYPES if kind.key]


@dataclass(frozen=True)
class Column:
    name: str
    type: ColumnType
    nullable: bool = True

    @property
    def sql(self) -> str:
        return f"{self.name} {self.type.declared}{'' if self.nullable else ' NOT NULL'}"

    @property
    def values(self) -> Values:
        return (st.just("NULL") | self.type.values) if self.nullable else self.type.values


@dataclass(frozen=True)
class Table:
    """A table; without a key, rows are identified by their values."""

    name: str
    columns: tuple[Column, ...]
    key: tuple[Column, ...]

    @property
    def sql(self) -> str:
        parts = [column.sql for column in self.columns]
        if self.key:
            parts.append(f"PRIMARY KEY ({', '.join(column.type.key.format(column.name) for column in self.key)})")
        return f"CREATE TABLE {self.name} ({', '.join(parts)})"


@st.composite
def tables(draw: st.DrawFn, name: str) -> Table:
    """Draw a table without a key, or with a key of up to three columns at any places."""
    kinds = draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=8))
    keys = draw(st.lists(st.sampled_from(KEY_TYPES), max_size=3))
    columns = [Column(f"c{i}", kind) for i, kind in enumerate(kinds)]
    key = [Column(f"k{i}", _never_null(kind), nullable=False) for i, kind in enumerate(keys)]
    order = draw(st.permutations([*columns, *key]))
    return Table(name, tuple(order), tuple(draw(st.permutations(key))))


def _never_null(kind: ColumnType) -> ColumnType:
    return ColumnType(kind.declared.removesuffix(" NULL"), kind.values, kind.key, kind.shown)
