"""A type as DDL spells it, in the words of information_schema.COLUMNS.

What comes out goes through the same function that reads information_schema, so that both ways end in the same type.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cdc_lib.decode.history.charsets import longest
from cdc_lib.decode.history.words import CannotFollow, Reader
from cdc_lib.decode.statement import REAL_AS_FLOAT
from cdc_lib.model.schema import SourceType

TypeOf = Callable[[str, str, int | None, int | None, int | None, str | None, int | None], SourceType]
"""DATA_TYPE, COLUMN_TYPE, precision, scale, fraction, character set and octets of information_schema.COLUMNS in, type out."""

_INTEGERS = {
    "TINYINT": "tinyint", "INT1": "tinyint", "BOOL": "tinyint", "BOOLEAN": "tinyint", "SMALLINT": "smallint",
    "INT2": "smallint", "MEDIUMINT": "mediumint", "INT3": "mediumint", "MIDDLEINT": "mediumint", "INT": "int",
    "INTEGER": "int", "INT4": "int", "BIGINT": "bigint", "INT8": "bigint", "SERIAL": "bigint",
}  # fmt: skip
_TEXTS = {"TINYTEXT": 1, "TEXT": 2, "MEDIUMTEXT": 3, "LONGTEXT": 4, "LONG": 3}
_BLOBS = {"TINYBLOB": 1, "BLOB": 2, "MEDIUMBLOB": 3, "LONGBLOB": 4}
_TEXT_NAMES = ("", "tinytext", "text", "mediumtext", "longtext")
_BLOB_NAMES = ("", "tinyblob", "blob", "mediumblob", "longblob")
_LONGEST_ROW = 65535
_ESCAPES = str.maketrans({"'": "''", "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\0": "\\0"})
"""Of labels of ENUM and SET in COLUMN_TYPE."""
_PLAIN = {
    "GEOMETRY", "POINT", "LINESTRING", "POLYGON", "MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON", "GEOMETRYCOLLECTION",
    "GEOMCOLLECTION", "UUID", "INET4", "INET6", "VECTOR", "XMLTYPE",
}  # fmt: skip


@dataclass(slots=True)
class Spelled:
    """A type without its character set yet.

    Args:
        name: DATA_TYPE, when it does not depend on the character set.
        length: declared length; characters for texts.
        text: 1 to 4: a TEXT or BLOB with so many bytes of length; else 0.
        charset: what the type itself says (NATIONAL, BINARY types); empty to inherit, None for types without one.
    """

    name: str
    length: int = 0
    scale: int = 0
    text: int = 0
    charset: str | None = None
    members: tuple[str, ...] = ()
    unsigned: bool = False
    own_key: bool = False
    not_null: bool = False

    def resolve(self, charset: str, typed: TypeOf) -> SourceType:
        """Return the type in a character set.

        Args:
            charset: of the column; counts only for types that have one.
            typed: see :data:`TypeOf`.
        """
        name = self.name
        if self.charset is None:
            shown = f"{name}({self.length})" if name in ("bit", "vector") else name
            if name == "decimal":
                shown = f"decimal({self.length},{self.scale})"
            shown += " unsigned" if self.unsigned else ""
            return typed(name, shown, self.length or None, self.scale, self.scale, None, None)
        charset = self.charset or charset
        if name in ("enum", "set"):
            labels = ",".join("'" + member.translate(_ESCAPES) + "'" for member in self.members)
            return typed(name, f"{name}({labels})", None, None, None, charset, None)
        if self.text:
            return self._long(charset, typed)
        octets = self.length * longest(charset)
        if octets > _LONGEST_ROW:
            raise CannotFollow(f"a {name} of {octets} bytes becomes another type")
        if charset == "binary":
            name = {"char": "binary", "varchar": "varbinary"}[name]
        return typed(name, f"{name}({self.length})", None, None, None, charset, octets)

    def _long(self, charset: str, typed: TypeOf) -> SourceType:
        size = self.text
        if self.length:  # TEXT(n): the smallest that holds n characters
            octets = self.length * longest(charset)
            size = next((n for n in range(1, 5) if octets < 1 << 8 * n), 4)
        name = (_BLOB_NAMES if charset == "binary" else _TEXT_NAMES)[size]
        return typed(name, name, None, None, None, charset, (1 << 8 * size) - 1)


def spelled(read: Reader, *, mariadb: bool, sql_mode: int) -> Spelled:
    """Step over a type and the words that belong to it.

    Raises:
        CannotFollow: it is not a type that is known here.
    """
    national = read.accept_any("NATIONAL", "NCHAR", "NVARCHAR")
    charset = "utf8mb3" if national else ""
    key = {"NCHAR": "CHAR", "NVARCHAR": "VARCHAR"}.get(national) or read.take().key
    if key in _INTEGERS:
        _length(read)
        boolean = key == "SERIAL"
        return Spelled(_INTEGERS[key], unsigned=_unsigned(read) or boolean, own_key=boolean, not_null=boolean)
    if (found := _text_or_bytes(key, read, charset, varying=bool(national))) is not None:
        return found
    if key in ("DECIMAL", "DEC", "NUMERIC", "FIXED"):
        precision, scale = _pair(read)
        return Spelled("decimal", length=precision or 10, scale=scale or 0, unsigned=_unsigned(read))
    if key in ("FLOAT", "DOUBLE", "REAL", "FLOAT4", "FLOAT8"):
        return _floating(key, read, sql_mode)
    if key == "JSON":
        return Spelled("", text=4, charset="utf8mb4") if mariadb else Spelled("json")
    if key in ("DATE", "YEAR"):
        _length(read)
        _unsigned(read)
        return Spelled(key.lower())
    if key in ("TIME", "DATETIME", "TIMESTAMP"):
        return Spelled(key.lower(), scale=_length(read) or 0)
    if key == "BIT":
        return Spelled("bit", length=_length(read) or 1)
    if key in ("ENUM", "SET"):
        return Spelled(key.lower(), charset="", members=_members(read))
    if key in _PLAIN:
        length = _length(read)
        if key == "VECTOR" and not mariadb and length is None:
            length = 2048
        return Spelled({"GEOMETRYCOLLECTION": "geomcollection"}.get(key, key.lower()), length=length or 0)
    raise CannotFollow(f"the type {key or '?'} is not known here")


def _text_or_bytes(key: str, read: Reader, charset: str, *, varying: bool) -> Spelled | None:
    """Step over the rest of a type of texts or bytes; None for others. NATIONAL may stand in front of VARCHAR."""
    if key in ("CHAR", "CHARACTER", "VARCHAR", "VARCHARACTER"):
        varying = key.startswith("VAR") or read.accept("VARYING") or (varying and read.accept("VARCHAR"))
        length = _length(read)
        byte = read.accept("BYTE")
        return Spelled(
            "varchar" if varying else "char",
            length=1 if length is None else length,
            charset="binary" if byte else charset,
        )
    if key in ("BINARY", "VARBINARY"):
        length = _length(read)
        name = "varchar" if key == "VARBINARY" else "char"
        return Spelled(name, length=1 if length is None else length, charset="binary")
    if key == "LONG" and read.accept("VARBINARY"):
        return Spelled("", text=3, charset="binary")
    if key in _TEXTS:
        if key == "LONG" and not read.accept("CHAR", "VARYING"):
            read.accept_any("VARCHAR", "VARCHARACTER")
        length = _length(read)
        byte = read.accept("BYTE")
        return Spelled("", length=length or 0, text=_TEXTS[key], charset="binary" if byte else "")
    if key in _BLOBS:
        length = _length(read)
        return Spelled("", length=length or 0, text=_BLOBS[key], charset="binary")
    return None


def _floating(key: str, read: Reader, sql_mode: int) -> Spelled:
    read.accept("PRECISION")
    precision, scale = _pair(read)
    single = key in ("FLOAT", "FLOAT4") and not (scale is None and (precision or 0) > 24)  # digits of a FLOAT
    single = single or (key == "REAL" and bool(sql_mode & REAL_AS_FLOAT))
    _unsigned(read)
    return Spelled("float" if single else "double")


def _length(read: Reader) -> int | None:
    if read.key() != "(":
        return None
    inner = Reader(read.inner())
    length = inner.number()
    if inner.more:
        raise CannotFollow("a type has more than a length")
    return length


def _pair(read: Reader) -> tuple[int | None, int | None]:
    if read.key() != "(":
        return None, None
    inner = Reader(read.inner())
    precision = inner.number()
    scale = inner.number() if inner.accept(",") else None
    return precision, scale


def _unsigned(read: Reader) -> bool:
    unsigned = False
    while word := read.accept_any("UNSIGNED", "SIGNED", "ZEROFILL"):
        unsigned = unsigned or word != "SIGNED"
    return unsigned


def _members(read: Reader) -> tuple[str, ...]:
    inner = Reader(read.inner())
    members = [inner.string().rstrip(" ")]
    while inner.accept(","):
        members.append(inner.string().rstrip(" "))
    if inner.more:
        raise CannotFollow("the members are not plain strings")
    return tuple(members)
