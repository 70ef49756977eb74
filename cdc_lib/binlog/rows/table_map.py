"""TABLE_MAP: the table of the next row events, and the layout of its values.

Body (MySQL ``libs/mysql/binlog/event/rows_event.h``, Table_map_event): table id 6, flags 2, schema and table name (length 1,
text, zero byte), number of columns, a type byte each, a block of type metadata, a bitmap of nullable columns, and optional
metadata as (type 1, length, value) fields. With ``binlog_row_metadata=FULL`` those give names, signs, character sets,
members and the primary key, so that the stream describes itself. MINIMAL leaves signs and the character sets of texts, and
NO_LOG of MariaDB nothing: what is missing then comes out of the schema history, after it was held against what is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from cdc_lib.binlog.charsets.registry import READABLE, decoded
from cdc_lib.binlog.rows.hidden_columns import hidden, refuse_versioned
from cdc_lib.binlog.rows.schema_check import Declared, disagreement
from cdc_lib.binlog.types.decimal import packed_size
from cdc_lib.binlog.types.registry import unreadable
from cdc_lib.binlog.types.temporal import fraction_size
from cdc_lib.errors import DecodeError, UnknownSchema, UnsupportedValue
from cdc_lib.model.column_types import COLUMN_TYPES, Kind
from cdc_lib.model.schema import Column, SourceType, TableSchema
from cdc_lib.model.schema_version import Definition
from cdc_lib.model.server_identity import Flavor
from cdc_lib.model.table_name import TableName

_FLOAT, _DOUBLE, _YEAR = 4, 5, 13
_VARCHAR, _BIT, _TIMESTAMP2, _DATETIME2, _TIME2 = 15, 16, 17, 18, 19
_JSON, _NEWDECIMAL, _ENUM, _SET, _BLOB, _VAR_STRING, _STRING, _GEOMETRY = 245, 246, 247, 248, 252, 253, 254, 255
_VECTOR, _BLOB_COMPRESSED, _VARCHAR_COMPRESSED = 242, 140, 141
_OLD_TIMESTAMP, _OLD_TIME, _OLD_DATETIME = 7, 11, 12

_INTEGERS = {code: one.width for one in COLUMN_TYPES if one.kind == "int" for code in one.codes}
_NUMERIC = {*_INTEGERS, _FLOAT, _DOUBLE, _NEWDECIMAL, _YEAR}
"""Types that have a bit in the row of signs; YEAR has one too, but for :data:`_LAST_WITHOUT_YEARS`."""
_LAST_WITHOUT_YEARS = (8, 0, 15)
"""The newest MySQL that was seen to write no bit for YEAR; it writes one from 8.0.29 on at the latest
(github.com/osheroff/mysql-binlog-connector-java/issues/108)."""
_CHARACTER: dict[Flavor, set[int]] = {
    "mysql": {_VARCHAR, _VAR_STRING, _STRING, _BLOB, _VECTOR},
    "mariadb": {_VARCHAR, _VAR_STRING, _STRING, _BLOB, _GEOMETRY, _BLOB_COMPRESSED, _VARCHAR_COMPRESSED},
}
"""Types that have a place in the list of character sets."""
_META_ONE = {_FLOAT, _DOUBLE, _BLOB, _JSON, _GEOMETRY, _VECTOR, _BLOB_COMPRESSED, _TIMESTAMP2, _DATETIME2, _TIME2}
_META_TWO = {_VARCHAR, _BIT, _NEWDECIMAL, _VAR_STRING, _STRING, _ENUM, _SET, _VARCHAR_COMPRESSED}
_META_LIMITS = {
    _FLOAT: (4, 4), _DOUBLE: (8, 8), _BLOB: (1, 4), _JSON: (1, 4), _GEOMETRY: (1, 4), _VECTOR: (1, 4),
    _BLOB_COMPRESSED: (1, 4), _TIMESTAMP2: (0, 6), _DATETIME2: (0, 6), _TIME2: (0, 6),
}  # fmt: skip
"""Least and greatest metadata: what lies outside would lead a kernel out of its buffers."""
_NO_DEFAULT = {_BLOB, _JSON, _GEOMETRY, _VECTOR, _BLOB_COMPRESSED}
_BINARY = "binary"

_SIGNEDNESS, _DEFAULT_CHARSET, _COLUMN_CHARSET, _COLUMN_NAME, _SET_STRINGS, _ENUM_STRINGS = 1, 2, 3, 4, 5, 6
_SIMPLE_KEY, _KEY_WITH_PREFIX, _MEMBER_DEFAULT_CHARSET, _MEMBER_COLUMN_CHARSET = 8, 9, 10, 11


@dataclass(frozen=True, slots=True)
class TableLayout:
    """A table's columns, and the sizes of their values.

    Args:
        schema: names, types and key. Columns that only the server sees are not among them; they come last in the rest.
        prefix: per column, bytes of the length prefix; 0 for a fixed width.
        width: per column, bytes of a fixed width.
        added_defaults: per column, bytes to fill BINARY(n) up to; 0 for others.
        keys: indexes of the key's columns.
        null_by_default: per column, whether an INSERT that does not name it leaves NULL: BLOBs, texts and JSON have no literal
            default, and the server logs the value of a default that is an expression.
    """

    schema: TableSchema
    prefix: npt.NDArray[np.int64]
    width: npt.NDArray[np.int64]
    added_defaults: tuple[int, ...]
    keys: npt.NDArray[np.int64]
    null_by_default: tuple[bool, ...]


class _Bytes:
    """A reader over the event's body that refuses to leave it."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, size: int) -> bytes:
        part = self._data[self._at : self._at + size]
        if len(part) != size:
            msg = "a length in the table map leaves the event"
            raise DecodeError(msg)
        self._at += size
        return part

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "little")

    def packed(self) -> int:
        """Return a length-encoded integer."""
        first = self.number(1)
        if first <= 250:  # the number itself
            return first
        return self.number({252: 2, 253: 3, 254: 8}[first]) if first in (252, 253, 254) else 0

    def text(self) -> bytes:
        return self.take(self.packed())

    @property
    def more(self) -> bool:
        return self._at < len(self._data)


def table_name(body: bytes) -> tuple[str, str]:
    """Return database and table of a TABLE_MAP body (after the event header); what is no text in them is U+FFFD."""
    read = _Bytes(body)
    read.take(8)
    database = read.take(read.number(1)).decode(errors="replace")
    read.take(1)
    return database, read.take(read.number(1)).decode(errors="replace")


History = Callable[[str, str], Definition]
"""Gives the definition that is in force, for events that do not name columns; raises UnknownSchema."""


def parse(
    body: bytes,
    charsets: Mapping[int, str],
    flavor: Flavor,
    history: History | None = None,
    release: tuple[int, ...] = (),
) -> TableLayout:
    """Return the layout that a TABLE_MAP declares.

    Args:
        body: the event after its header and without its checksum.
        charsets: character set name of each collation number of the server.
        flavor: of the server; the two list character sets of different types.
        history: completes what the event leaves out.
        release: version of the server that wrote the event; empty if unknown.

    Raises:
        UnknownSchema: the event does not name columns, and the history does not know them or does not fit.
        UnsupportedValue: nothing is known of a column's type.
        DecodeError: a length is wrong.
    """
    database, table = table_name(body)
    read = _Bytes(body)
    read.take(8)
    for _ in (database, table):
        _text(TableName(database, table), read.take(read.number(1)))
        read.take(1)
    types = list(read.take(read.packed()))
    if not types:
        raise DecodeError("a table map without columns", table=TableName(database, table))
    metas = list(_metas(types, _Bytes(read.text())))
    nulls = read.take((len(types) + 7) // 8)
    optional = dict(_fields(read))
    real = [_real_type(code, meta) for code, meta in zip(types, metas, strict=True)]
    without_years = flavor == "mysql" and () < release <= _LAST_WITHOUT_YEARS
    facts = _OptionalMetadata(real, optional, charsets, _CHARACTER[flavor], without_years=without_years)
    nullable = [bool(nulls[i // 8] >> (i % 8) & 1) for i in range(len(real))]
    definition = None if _COLUMN_NAME in optional else _known(database, table, history)
    known = definition.schema if definition is not None else None
    seen = len(types)
    if known is None or definition is None:
        names = [_text(TableName(database, table), name) for name in _texts(optional[_COLUMN_NAME])]
        keys = _keys(optional)
    else:
        # An ALTER may make another index of a key by hash, so there may be fewer hashes than such keys.
        more = real[len(known.columns) :]
        if len(more) <= sum(key.hashed for key in definition.keys) and all(_INTEGERS.get(code) == 8 for code in more):
            seen -= len(more)
        facts.complete(known, optional)
        _check(known, facts, real[:seen], metas, nullable)
        names = [
            *(column.name for column in known.columns),
            *(f"DB_ROW_HASH_{n + 1}" for n in range(len(types) - seen)),
        ]
        keys = [names.index(name) for name in known.primary_key]
    columns: list[Column] = []
    prefixes: list[int] = []
    widths: list[int] = []
    fills: list[int] = []
    for index, (name, code, meta) in enumerate(zip(names, real, metas, strict=True)):
        try:
            source_type, prefix, width = _column(index, code, meta, facts)
        except UnicodeError as error:
            raise _not_text(TableName(database, table), error) from error
        if known is not None and source_type.family.has_members:
            source_type = replace(source_type, members=known.columns[index].type.members)
        if not source_type.is_supported:  # its bytes cannot even be stepped over
            refuse_unreadable(TableName(database, table), Column(name, source_type))
        columns.append(Column(name, source_type, nullable[index]))
        prefixes.append(prefix)
        widths.append(width)
        fills.append(source_type.width if code == _STRING and source_type.kind == "bytes" else 0)
    if known is None and flavor == "mariadb":
        seen -= hidden(columns)
        refuse_versioned(TableName(database, table), columns[:seen], keys)
    return TableLayout(
        TableSchema(database, table, tuple(columns[:seen]), tuple(names[i] for i in keys)),
        np.array(prefixes, np.int64),
        np.array(widths, np.int64),
        tuple(fills),
        np.array(keys, np.int64),
        tuple(code in _NO_DEFAULT and c.nullable for code, c in zip(real, columns, strict=True)),
    )


def _text(table: TableName, name: bytes) -> str:
    try:
        return name.decode()
    except UnicodeError as error:
        raise _not_text(table, error) from error


def _not_text(table: TableName, error: UnicodeError) -> UnsupportedValue:
    return UnsupportedValue(
        f"a name or label of the table is no text: {error}",
        hint="ALTER TABLE ... CHANGE corrects it; or exclude the table in the source file.",
        table=table,
    )


def refuse_unreadable(table: str, column: Column) -> None:
    """Check that a column can be decoded.

    Raises:
        UnsupportedValue: it cannot.
    """
    if why := unreadable(column.type):
        raise UnsupportedValue(
            f"column {column.name}: {why}", hint="Leave the column or the table out in the source file.", table=table
        )


def _known(database: str, table: str, history: History | None) -> Definition:
    if history is None:
        raise UnknownSchema(
            "the binlog does not name the table's columns",
            hint="Set binlog_row_metadata=FULL at the source: SET PERSIST binlog_row_metadata='FULL'.",
            table=TableName(database, table),
        )
    return history(database, table)


def _check(
    known: TableSchema, facts: _OptionalMetadata, real: list[int], metas: list[int], nullable: list[bool]
) -> None:
    """Check the event against the schema history."""
    declared = [
        Declared(_column(i, code, metas[i], facts)[0], code, metas[i], nullable[i]) for i, code in enumerate(real)
    ]
    if text := disagreement(declared, known):
        raise UnknownSchema(
            f"the binlog and the schema history disagree about a table:\n{text}\n",
            hint="A change of the table is not in the binlog. Set binlog_row_metadata=FULL at the source, so that new rows name "
            "their columns. A new snapshot replaces these rows: cdc snapshot {source} {table}. Where it cannot be "
            "FULL, remove the table's documents under schemas/ in the store before the snapshot.",
            table=known.name,
        )


def _metas(types: list[int], read: _Bytes) -> Iterator[int]:
    """Yield each column's metadata; that of two-byte types little-endian."""
    for code in types:
        yield read.number(1) if code in _META_ONE else read.number(2) if code in _META_TWO else 0


def _fields(read: _Bytes) -> Iterator[tuple[int, bytes]]:
    while read.more:
        kind = read.number(1)
        yield kind, read.text()


def _texts(data: bytes) -> Iterator[bytes]:
    read = _Bytes(data)
    while read.more:
        yield read.text()


def _numbers(data: bytes) -> list[int]:
    read = _Bytes(data)
    numbers = []
    while read.more:
        numbers.append(read.packed())
    return numbers


def _keys(optional: Mapping[int, bytes]) -> list[int]:
    if _SIMPLE_KEY in optional:
        return _numbers(optional[_SIMPLE_KEY])
    return _numbers(optional.get(_KEY_WITH_PREFIX, b""))[::2]


def _real_type(code: int, meta: int) -> int:
    """ENUM and SET hide after STRING; so do the upper two bits of a long CHAR's length."""
    if code != _STRING:
        return code
    low = meta & 0xFF
    return low | 0x30 if low & 0x30 != 0x30 else low  # the two bits


class _OptionalMetadata:
    """The optional metadata, column by column."""

    def __init__(
        self,
        real: list[int],
        optional: Mapping[int, bytes],
        charsets: Mapping[int, str],
        types: set[int],
        *,
        without_years: bool,
    ) -> None:
        numeric = [i for i, code in enumerate(real) if code in _NUMERIC and not (without_years and code == _YEAR)]
        signs = optional.get(_SIGNEDNESS, b"")
        self.unsigned = {c for n, c in enumerate(numeric) if n // 8 < len(signs) and signs[n // 8] >> (7 - n % 8) & 1}
        character = [i for i, code in enumerate(real) if code in types]
        members = [i for i, code in enumerate(real) if code in (_ENUM, _SET)]
        self.charset = _charsets(character, optional, _DEFAULT_CHARSET, _COLUMN_CHARSET, charsets)
        self.charset |= _charsets(members, optional, _MEMBER_DEFAULT_CHARSET, _MEMBER_COLUMN_CHARSET, charsets)
        self.members: dict[int, tuple[bytes, ...]] = {}
        for code, field in ((_ENUM, _ENUM_STRINGS), (_SET, _SET_STRINGS)):
            if field not in optional:
                continue
            read = _Bytes(optional[field])
            for index in (i for i, real_code in enumerate(real) if real_code == code):
                self.members[index] = tuple(read.text() for _ in range(read.packed()))

    def complete(self, known: TableSchema, optional: Mapping[int, bytes]) -> None:
        """Complete the event's columns from the schema history."""
        for index, column in enumerate(known.columns):
            if _SIGNEDNESS not in optional and column.type.unsigned:
                self.unsigned.add(index)
            if column.type.charset:
                self.charset.setdefault(index, column.type.charset)


def _charsets(
    columns: list[int], optional: Mapping[int, bytes], default: int, each: int, charsets: Mapping[int, str]
) -> dict[int, str]:
    if each in optional:
        numbers = dict(enumerate(_numbers(optional[each])))
        standard = 0
    elif default in optional:
        standard, *pairs = _numbers(optional[default])
        numbers = dict(zip(pairs[::2], pairs[1::2], strict=True))
    else:
        return {}
    return {
        column: charsets.get(numbers.get(n, standard), f"of collation {numbers.get(n, standard)}")
        for n, column in enumerate(columns)
    }


def _column(index: int, code: int, meta: int, facts: _OptionalMetadata) -> tuple[SourceType, int, int]:
    """Return a column's type, the bytes of its length prefix and those of its fixed width."""
    charset = facts.charset.get(index, "")
    kind: Kind = "bytes" if charset == _BINARY else "string"
    if code in _META_LIMITS and not _META_LIMITS[code][0] <= meta <= _META_LIMITS[code][1]:
        msg = f"the metadata {meta} of a column of type {code} is not possible"
        raise DecodeError(msg)
    if code in _INTEGERS:
        width = _INTEGERS[code]
        return SourceType("int", width=width, unsigned=index in facts.unsigned), 0, width
    match code:
        case 4 | 5:
            return SourceType("float" if code == _FLOAT else "double"), 0, meta
        case 10:
            return SourceType("date"), 0, 3
        case 13:
            return SourceType("year"), 0, 1
        case 16:
            bits = (meta & 0xFF) + 8 * (meta >> 8)
            if not 1 <= bits <= 64:
                msg = f"a BIT of {bits} bits is not possible"
                raise DecodeError(msg)
            return SourceType("bit", width=bits), 0, (bits + 7) // 8
        case 17:
            return SourceType("timestamp", scale=meta), 0, 4 + fraction_size(meta)
        case 18:
            return SourceType("datetime", scale=meta), 0, 5 + fraction_size(meta)
        case 19:
            return SourceType("time", scale=meta), 0, 3 + fraction_size(meta)
        case 246:
            precision, scale = meta & 0xFF, meta >> 8
            if not 1 <= precision <= 65 or scale > precision:
                msg = f"DECIMAL({precision},{scale}) is not possible"
                raise DecodeError(msg)
            return SourceType("decimal", precision=precision, scale=scale), 0, packed_size(precision, scale)
        case 7 | 12 | 11:
            width = {_OLD_TIMESTAMP: 4, _OLD_DATETIME: 8, _OLD_TIME: 3}[code]
            old: Kind = {_OLD_TIMESTAMP: "timestamp", _OLD_DATETIME: "datetime", _OLD_TIME: "time"}[code]  # type: ignore[assignment]
            return SourceType(old, form="old"), 0, width
        case 245:
            return SourceType("json"), meta, 0
        case 255 | 242:
            return SourceType("bytes", charset=_BINARY), meta, 0
        case 252 | 140:
            return SourceType(kind, charset=charset, form="compressed" if code == _BLOB_COMPRESSED else ""), meta, 0
        case 15 | 253 | 141:
            packed = code == _VARCHAR_COMPRESSED
            form = "compressed" if packed else ""
            return SourceType(kind, width=meta - packed, charset=charset, form=form), 2 if meta > 255 else 1, 0
        case 254:
            low, high = meta & 0xFF, meta >> 8
            length = high | (((low & 0x30) ^ 0x30) << 4)
            text = "char" if kind == "string" else ""  # without which it looks like a VARCHAR
            return SourceType(kind, width=length, charset=charset, text=text), 2 if length > 255 else 1, 0
        case 247 | 248:
            if not 1 <= meta >> 8 <= (2 if code == _ENUM else 8):
                msg = f"an ENUM or SET of {meta >> 8} bytes is not possible"
                raise DecodeError(msg)
            return _members(index, code, charset, facts), 0, meta >> 8
    return SourceType("unsupported", text=f"number {code} of the binlog"), 0, 0


def _members(index: int, code: int, charset: str, facts: _OptionalMetadata) -> SourceType:
    # A set that is not read is refused by its name when the column is looked at.
    labels = decoded(facts.members.get(index, ()), charset) if charset in READABLE else ()
    return SourceType("enum" if code == _ENUM else "set", charset=charset, members=labels)
