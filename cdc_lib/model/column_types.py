"""Every supported column type, in one list.

Two levels: a :class:`ColumnType` is what a server calls a type; a :class:`Family` is what all types of one kind have in common. A
type of a known kind is one entry here. `tests/unit/model/test_column_types.py` holds that each place which decides by types knows
every entry, and that docs/internals/extending.md names each such place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal[
    "int", "decimal", "float", "double", "bit", "string", "bytes", "date", "time", "datetime", "timestamp", "year",
    "enum", "set", "json", "unsupported",
]  # fmt: skip

Form = Literal["", "old", "compressed", "inet4", "inet6", "uuid"]
"""How a value is written, where its kind alone does not say it; see :class:`SourceType`."""


@dataclass(frozen=True, slots=True)
class Family:
    """What the types of one kind have in common.

    Args:
        lake_type: the lake's type; those that depend on sign, width or digits are in ``SourceType.lake_type``.
        jdbc: number in java.sql.Types; of integers it depends on the width.
        has_charset: texts in a character set.
        is_date: has a day, which may be one that no date type holds.
        has_fraction: has a declared number of fractional digits of a second.
        has_point: its text may have a decimal point, and zeros at its end say nothing.
        is_float: FLOAT and DOUBLE: compared by their bits; in an index two zeros are one key.
        is_integer: whole numbers of a width in bytes.
        has_members: labels in a declared order.
        null_by_setting: whether a column without a word about it allows NULL depends on the server's settings.
        orders_alike: the lake orders its values as the source does.
        signs: before and after the text of a key's value in an SQL literal, formatted with the character set. Texts and bytes are hex
            digits there.
        typed: before and after the text of a lake value in an SQL literal that has the column's type in any place, formatted with the
            type and the collation; empty where ``signs`` do that.
        bound: of kinds whose keys can be read in chunks, as ORDER BY and a comparison with a literal agree at the source: what a
            person may write as an end of a range, for messages.
        pattern: of such texts as keys have them; dates are parsed.
        declared: parts of a :class:`SourceType` that a table map declares.
        spelling: the type as the server writes it, formatted with the type, the name of an integer, and its sign; empty where the
            kind does not tell it.
    """

    lake_type: str
    jdbc: int
    has_charset: bool = False
    is_date: bool = False
    has_fraction: bool = False
    has_point: bool = False
    is_float: bool = False
    is_integer: bool = False
    has_members: bool = False
    null_by_setting: bool = False
    orders_alike: bool = False
    signs: tuple[str, str] = ("", "")
    typed: tuple[str, str] | None = None
    bound: str = ""
    pattern: str = ""
    declared: tuple[str, ...] = ()
    spelling: str = ""

    @property
    def walks(self) -> bool:
        """Whether keys of it can be read in chunks."""
        return bool(self.bound)

    @property
    def in_hex(self) -> bool:
        """Whether literals have its values as hex digits."""
        return self.signs[0].endswith("X'")


_DIGITS = "{0.kind}({0.scale})"
_QUOTED, _HEX, _TEXT = ("'", "'"), ("X'", "'"), ("_{} X'", "'")
_MOMENT = ("CAST('", "' AS DATETIME(6))")

FAMILIES: dict[Kind, Family] = {
    "int": Family(
        "int",
        4,
        orders_alike=True,
        bound="a whole number",
        pattern=r"-?\d{1,20}",
        is_integer=True,
        declared=("width", "unsigned"),
        spelling="{1}{2}",
    ),
    "decimal": Family(
        "string",
        3,
        has_point=True,
        orders_alike=True,
        typed=("CAST('", "' AS DECIMAL({0.precision},{0.scale}))"),
        bound="a number",
        pattern=r"-?\d+(\.\d+)?",
        declared=("precision", "scale"),
        spelling="decimal({0.precision},{0.scale}){2}",
    ),
    "float": Family("float", 7, has_point=True, is_float=True, spelling="float"),
    "double": Family(
        "double",
        8,
        has_point=True,
        is_float=True,
        orders_alike=True,
        bound="a number",
        pattern=r"-?\d+(\.\d+)?([eE][-+]?\d+)?",
        spelling="double",
    ),
    "bit": Family("bigint", -7, declared=("width",), spelling="bit({0.width})"),
    "string": Family(
        "string",
        12,
        has_charset=True,
        signs=_TEXT,
        typed=("CONVERT(_utf8mb4 X'", "' USING {0.charset}) COLLATE {1}"),
        bound="a text of the column's character set",
        declared=("charset",),
    ),
    "bytes": Family(
        "binary",
        2004,
        orders_alike=True,
        signs=_HEX,
        bound="hex digits such as 0x1F",
        pattern="([0-9a-f]{2})*",
        declared=("charset",),
    ),
    "date": Family(
        "date",
        91,
        is_date=True,
        orders_alike=True,
        signs=_QUOTED,
        typed=("CAST('", "' AS DATE)"),
        bound="a date such as 2026-01-31",
        spelling="date",
    ),
    "time": Family(
        "string",
        92,
        has_fraction=True,
        has_point=True,
        signs=_QUOTED,
        typed=("CAST('", "' AS TIME(6))"),
        bound="a time such as 12:00:00",
        pattern=r"-?\d{1,3}:[0-5]\d:[0-5]\d(\.\d{1,6})?",
        declared=("scale",),
        spelling=_DIGITS,
    ),
    "datetime": Family(
        "timestamp_ntz",
        93,
        is_date=True,
        has_fraction=True,
        has_point=True,
        orders_alike=True,
        signs=_QUOTED,
        typed=_MOMENT,
        bound="a time such as 2026-01-31 12:00:00",
        declared=("scale",),
        spelling=_DIGITS,
    ),
    "timestamp": Family(
        "timestamp",
        93,
        is_date=True,
        has_fraction=True,
        has_point=True,
        orders_alike=True,
        signs=_QUOTED,
        typed=_MOMENT,
        bound="a time in UTC such as 2026-01-31 12:00:00",
        declared=("scale",),
        spelling=_DIGITS,
        null_by_setting=True,
    ),
    "year": Family("int", 12, orders_alike=True, bound="a year of four digits", pattern=r"\d{4}", spelling="year"),
    "enum": Family("string", 1, has_charset=True, signs=_TEXT, has_members=True, declared=("charset",)),
    "set": Family("string", 1, has_charset=True, signs=_TEXT, has_members=True, declared=("charset",)),
    "json": Family("string", 12, signs=_QUOTED, spelling="json"),
    "unsupported": Family("binary", 1111),
}


@dataclass(frozen=True, slots=True)
class ColumnType:
    """A type as servers declare it.

    Args:
        name: DATA_TYPE of information_schema.COLUMNS.
        kind: its family.
        codes: type bytes of a TABLE_MAP, the one of today first; for ENUM and SET those that a STRING hides.
        words: how DDL spells it.
        width: integers, and types that the binlog declares as BINARY(n): bytes of a value; else 0.
        prefix: TEXT and BLOB: bytes of the length before a value; else 0.
        measured: whether CHARACTER_OCTET_LENGTH is its width.
        form: for types that the binlog declares as BINARY(n).
    """

    name: str
    kind: Kind
    codes: tuple[int, ...]
    words: tuple[str, ...] = ()
    width: int = 0
    prefix: int = 0
    measured: bool = False
    form: Form = ""


_STRING, _VARCHAR, _BLOB = (254,), (15, 253, 141), (252, 140)

COLUMN_TYPES = (
    ColumnType("tinyint", "int", (1,), ("TINYINT", "INT1", "BOOL", "BOOLEAN"), width=1),
    ColumnType("smallint", "int", (2,), ("SMALLINT", "INT2"), width=2),
    ColumnType("mediumint", "int", (9,), ("MEDIUMINT", "INT3", "MIDDLEINT"), width=3),
    ColumnType("int", "int", (3,), ("INT", "INTEGER", "INT4"), width=4),
    ColumnType("bigint", "int", (8,), ("BIGINT", "INT8", "SERIAL"), width=8),
    ColumnType("decimal", "decimal", (246,), ("DECIMAL", "DEC", "NUMERIC", "FIXED")),
    ColumnType("float", "float", (4,), ("FLOAT", "FLOAT4")),
    ColumnType("double", "double", (5,), ("DOUBLE", "FLOAT8", "REAL")),
    ColumnType("bit", "bit", (16,), ("BIT",)),
    ColumnType("char", "string", _STRING, ("CHAR", "CHARACTER"), measured=True),
    ColumnType("varchar", "string", _VARCHAR, ("VARCHAR", "VARCHARACTER"), measured=True),
    ColumnType("tinytext", "string", _BLOB, ("TINYTEXT",), prefix=1, measured=True),
    ColumnType("text", "string", _BLOB, ("TEXT",), prefix=2, measured=True),
    ColumnType("mediumtext", "string", _BLOB, ("MEDIUMTEXT", "LONG"), prefix=3, measured=True),
    ColumnType("longtext", "string", _BLOB, ("LONGTEXT",), prefix=4, measured=True),
    ColumnType("binary", "bytes", _STRING, ("BINARY",), measured=True),
    ColumnType("varbinary", "bytes", _VARCHAR, ("VARBINARY",), measured=True),
    ColumnType("tinyblob", "bytes", _BLOB, ("TINYBLOB",), prefix=1, measured=True),
    ColumnType("blob", "bytes", _BLOB, ("BLOB",), prefix=2, measured=True),
    ColumnType("mediumblob", "bytes", _BLOB, ("MEDIUMBLOB",), prefix=3, measured=True),
    ColumnType("longblob", "bytes", _BLOB, ("LONGBLOB",), prefix=4, measured=True),
    ColumnType("date", "date", (10,), ("DATE",)),
    ColumnType("time", "time", (19, 11), ("TIME",)),
    ColumnType("datetime", "datetime", (18, 12), ("DATETIME",)),
    ColumnType("timestamp", "timestamp", (17, 7), ("TIMESTAMP",)),
    ColumnType("year", "year", (13,), ("YEAR",)),
    ColumnType("enum", "enum", (247,), ("ENUM",)),
    ColumnType("set", "set", (248,), ("SET",)),
    ColumnType("json", "json", (245,), ("JSON",)),
    # SELECT gives the bytes of these: SRID (4 bytes, little-endian) and WKB; floats.
    ColumnType("geometry", "bytes", (255,), ("GEOMETRY",)),
    ColumnType("point", "bytes", (255,), ("POINT",)),
    ColumnType("linestring", "bytes", (255,), ("LINESTRING",)),
    ColumnType("polygon", "bytes", (255,), ("POLYGON",)),
    ColumnType("multipoint", "bytes", (255,), ("MULTIPOINT",)),
    ColumnType("multilinestring", "bytes", (255,), ("MULTILINESTRING",)),
    ColumnType("multipolygon", "bytes", (255,), ("MULTIPOLYGON",)),
    ColumnType("geomcollection", "bytes", (255,), ("GEOMCOLLECTION", "GEOMETRYCOLLECTION")),
    ColumnType("geometrycollection", "bytes", (255,)),  # MariaDB's name
    ColumnType("vector", "bytes", (242,), ("VECTOR",)),
    # MariaDB's binlog declares these as BINARY(n), so that the lake holds bytes.
    ColumnType("inet4", "bytes", _STRING, ("INET4",), width=4, form="inet4"),
    ColumnType("inet6", "bytes", _STRING, ("INET6",), width=16, form="inet6"),
    ColumnType("uuid", "bytes", _STRING, ("UUID",), width=16, form="uuid"),
    # DDL with it can be followed; a captured column of it is refused.
    ColumnType("xmltype", "unsupported", (), ("XMLTYPE",)),
)
"""The list."""

BY_NAME = {one.name: one for one in COLUMN_TYPES}
BY_WORD = {word: one for one in COLUMN_TYPES for word in one.words}

INTEGERS = {one.name: one.width for one in COLUMN_TYPES if one.kind == "int"}
"""Bytes of a value."""

_OF_WIDTH = {width: name for name, width in INTEGERS.items()}

LONG_TEXTS = {one.name: one.prefix for one in COLUMN_TYPES if one.kind == "string" and one.prefix}
LONG_BYTES = {one.name: one.prefix for one in COLUMN_TYPES if one.kind == "bytes" and one.prefix}
"""TEXT and BLOB: bytes of the length before a value."""

CAST_FORMS = frozenset(one.form for one in COLUMN_TYPES if one.form)
"""Forms whose values SELECT shows in another format; CAST AS BINARY gives the bytes of the binlog."""

AsBoolean = Literal["error", "as_true"]
"""What a value other than 0 and 1 is in a column that the lake holds as a boolean."""

BOOLEAN = "boolean"
"""The lake's type of such a column."""

MAX_DECIMAL_DIGITS = 38
"""Digits that the lake's decimal type holds; longer ones are kept as exact text."""


@dataclass(frozen=True, slots=True)
class SourceType:
    """A column's type, with all that is needed to read its bytes.

    Args:
        kind: family of the type; each family has one file under ``cdc_lib/binlog/types``.
        width: integers: bytes (1, 2, 3, 4, 8); bit: bits; string and bytes: declared length in bytes; else 0.
        unsigned: integers only.
        precision: decimal: digits in all.
        scale: decimal: digits after the point; time, datetime and timestamp: fractional digits (0 to 6).
        charset: string, enum and set: MySQL's name of the character set, for example ``latin1``.
        members: enum and set: the labels in their declared order.
        text: the type as the server writes it, for people; may be empty if only the binlog describes the column.
        form: how the value is written, where its kind alone does not say it: ``old`` (time, datetime and timestamp before
            MySQL 5.6), ``compressed`` (a compressed column of MariaDB), ``inet4``, ``inet6``, ``uuid``; else empty.
        as_text: date, datetime and timestamp: the lake holds the text that SELECT shows.
        as_boolean: integers of one byte: the lake holds a boolean; what other values than 0 and 1 are. None for a number.
    """

    kind: Kind
    width: int = 0
    unsigned: bool = False
    precision: int = 0
    scale: int = 0
    charset: str = ""
    members: tuple[str, ...] = ()
    text: str = ""
    form: str = ""
    as_text: bool = False
    as_boolean: AsBoolean | None = None

    @property
    def family(self) -> Family:
        """What it has in common with the other types of its kind."""
        return FAMILIES[self.kind]

    def literal(self, text: str, charset: str = "") -> str:
        """Return a key's value as SQL.

        Args:
            text: as :func:`cdc_lib.snapshot.chunks.key_text` has it.
            charset: of a text; empty for the column's own.
        """
        before, after = self.signs(charset)
        return f"{before}{text}{after}"

    def signs(self, charset: str = "") -> tuple[str, str]:
        """Return what :meth:`literal` has before and after the text."""
        before, after = self.family.signs
        return before.format(charset or self.charset), after

    @property
    def spelled(self) -> str:
        """As the server writes it; else as far as the binlog says it, which does not tell CHAR from VARCHAR: such ones are empty."""
        name, unsigned = _OF_WIDTH.get(self.width, ""), " unsigned" if self.unsigned else ""
        return self.text or self.family.spelling.format(self, name, unsigned).replace("(0)", "")

    @property
    def is_supported(self) -> bool:
        """Whether columns of it are read."""
        return self.kind != "unsupported"

    @property
    def is_short_year(self) -> bool:
        """Whether SELECT shows two digits of a year: MariaDB's YEAR(2), of which the binlog has all four."""
        return self.kind == "year" and self.text.lower().replace(" ", "").startswith("year(2)")

    def whole_year(self, name: str) -> str:
        """Return the SQL of a short year's four digits, where ``name`` is the quoted column; 0 for the year that is none."""
        return f"IF(YEAR({name}) = 1900, 0, YEAR({name}))"

    @property
    def has_digits(self) -> bool:
        """Whether it is FLOAT(M,D) or DOUBLE(M,D): the server rounds what it looks up in an index, but not every value that it stores."""
        return self.family.is_float and "(" in self.text

    @property
    def orders_alike(self) -> bool:
        """Whether the lake orders its values as the source does."""
        return self.family.orders_alike and self.lake_type not in (BOOLEAN, "string")

    @property
    def may_be_boolean(self) -> bool:
        """Whether it is TINYINT, also BOOL and BOOLEAN. The binlog does not have the display width of TINYINT(1)."""
        return self.family.is_integer and self.width == 1

    @property
    def lake_type(self) -> str:
        """The lake's name of the type that holds every value of this one exactly.

        One of ``boolean``, ``int``, ``bigint``, ``decimal(p,s)``, ``float``, ``double``, ``string``, ``binary``, ``date``,
        ``timestamp_ntz`` (no time zone: DATETIME) and ``timestamp`` (an instant: TIMESTAMP), as Spark SQL spells them.
        """
        if self.as_text:
            return "string"
        if self.as_boolean is not None:
            return BOOLEAN
        match self.kind:
            case "int":
                return _integer(self.width, unsigned=self.unsigned)
            case "bit":
                return "bigint" if self.width < 64 else "decimal(20,0)"  # bits of a bigint
            case "decimal" if self.precision <= MAX_DECIMAL_DIGITS:
                return f"decimal({self.precision},{self.scale})"
            case _:
                return self.family.lake_type


def _integer(width: int, *, unsigned: bool) -> str:
    if width < 4:  # up to MEDIUMINT both signs fit
        return "int"
    if width == 4:
        return "bigint" if unsigned else "int"
    return "decimal(20,0)" if unsigned else "bigint"


PLAIN_BYTES = SourceType("bytes")
"""Of cells that are taken as they come."""
