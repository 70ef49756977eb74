"""Column types in DDL, converted to those of information_schema.COLUMNS.

The result goes through the function that reads information_schema, so that both ways give the same type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from cdc_lib.binlog.ddl.history.charsets import keeps_labels, longest
from cdc_lib.binlog.ddl.history.words import CannotFollow, WordReader
from cdc_lib.binlog.ddl.statement import REAL_AS_FLOAT
from cdc_lib.model.column_types import BY_WORD, LONG_BYTES, LONG_TEXTS, ColumnType
from cdc_lib.model.schema import SourceType

TypeOf = Callable[[str, str, int | None, int | None, int | None, str | None, int | None], SourceType]
"""DATA_TYPE, COLUMN_TYPE, precision, scale, fraction, character set and octets of information_schema.COLUMNS in, type out."""

_TEXT_NAMES, _BLOB_NAMES = ({prefix: name for name, prefix in names.items()} for names in (LONG_TEXTS, LONG_BYTES))
_LONGEST_ROW = 65535
_LONGEST_KEY = 3072
"""Bytes of a key of InnoDB at most; a shorter one may be too long for another engine or row format, which the rows then contradict."""
_ESCAPES = str.maketrans({"'": "''", "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\0": "\\0"})
"""Of labels of ENUM and SET in COLUMN_TYPE."""


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

        Raises:
            CannotFollow: the type depends on a character set that is not known, or the server makes another one of it.
        """
        name = self.name
        if self.charset is None:
            shown = f"{name}({self.length})" if name in ("bit", "vector") else name
            if name == "decimal":
                shown = f"decimal({self.length},{self.scale})"
            shown += " unsigned" if self.unsigned else ""
            return typed(name, shown, self.length or None, self.scale, self.scale, None, None)
        charset = self.charset or charset
        octets = self.length * longest(charset)
        if name in ("enum", "set"):
            labels = ",".join("'" + member.translate(_ESCAPES) + "'" for member in self.members)
            return typed(name, f"{name}({labels})", None, None, None, charset, None)
        if self.text:
            return self._long(charset, typed)
        if octets > _LONGEST_ROW:
            raise CannotFollow(f"a {name} of {octets} bytes becomes another type")
        if charset == "binary":
            name = {"char": "binary", "varchar": "varbinary"}[name]
        return typed(name, f"{name}({self.length})", None, None, None, charset, octets)

    def prefix(self, charset: str) -> int:
        """Return the bytes of the length before a value of a TEXT or BLOB; TEXT(n) is the smallest that holds n characters."""
        octets = self.length * longest(charset) if self.length else 0
        return next((n for n in range(1, 5) if octets < 1 << 8 * n), 4) if octets else self.text

    def _long(self, charset: str, typed: TypeOf) -> SourceType:
        size = self.prefix(charset)
        name = (_BLOB_NAMES if charset == "binary" else _TEXT_NAMES)[size]
        return typed(name, name, None, None, None, charset, (1 << 8 * size) - 1)


def converted(kind: SourceType, to: str) -> Spelled:
    """Return a type in another character set; it grows to hold as many characters.

    Raises:
        CannotFollow: labels become others.
    """
    old = kind.charset
    if kind.family.has_members:
        if not keeps_labels(kind.members, old, to):
            raise CannotFollow("servers keep the bytes of members when they convert them")
        return Spelled(kind.kind, charset="", members=kind.members)
    if kind.text in LONG_TEXTS:
        # It never shrinks: only a character that may take more bytes asks for more room.
        octets = kind.width // longest(old) * longest(to) if longest(to) > longest(old) else kind.width
        size = next((n for n in range(1, 5) if octets < 1 << 8 * n), 4)
        return Spelled("", text=size, charset="")
    name = "varchar" if kind.text.startswith("varchar") else "char"
    return Spelled(name, length=kind.width // longest(old), charset="")


def is_too_long(parts: Iterable[SourceType]) -> bool:
    """Whether whole columns of these types are too long for an index."""
    texts = [part for part in parts if part.kind in ("string", "bytes")]
    return any(part.text in {*LONG_TEXTS, *LONG_BYTES} for part in texts) or sum(t.width for t in texts) > _LONGEST_KEY


def spelled(read: WordReader, *, mariadb: bool, sql_mode: int) -> Spelled:
    """Step over a type and the words that belong to it.

    Raises:
        CannotFollow: it is not a type that is known here.
    """
    national = read.accept_any("NATIONAL", "NCHAR", "NVARCHAR")
    charset = "utf8mb3" if national else ""
    key = {"NCHAR": "CHAR", "NVARCHAR": "VARCHAR"}.get(national) or read.take().key
    known = BY_WORD.get(key)
    if known is None:
        raise CannotFollow(f"the type {key or '?'} is not known here")
    if known.kind == "int":
        _length(read)
        boolean = key == "SERIAL"
        return Spelled(known.name, unsigned=_unsigned(read) or boolean, own_key=boolean, not_null=boolean)
    if (found := _text_or_bytes(known, key, read, charset, varying=bool(national), mariadb=mariadb)) is not None:
        return found
    if known.kind == "decimal":
        precision, scale = _pair(read)
        return Spelled("decimal", length=precision or 10, scale=scale or 0, unsigned=_unsigned(read))
    if known.kind in ("float", "double"):
        return _floating(key, read, sql_mode)
    if known.kind == "json":
        return Spelled("", text=4, charset="utf8mb4") if mariadb else Spelled("json")
    if known.kind in ("date", "year"):
        _length(read)
        _unsigned(read)
        return Spelled(known.name)
    if known.kind in ("time", "datetime", "timestamp"):
        return Spelled(known.name, scale=_length(read) or 0)
    if known.kind == "bit":
        return Spelled("bit", length=_length(read) or 1)
    if known.kind in ("enum", "set"):
        return Spelled(known.name, charset="", members=_members(read))
    length = _length(read)
    if known.name == "vector" and not mariadb and length is None:
        length = 2048
    return Spelled(known.name, length=length or 0)


def _text_or_bytes(
    known: ColumnType, key: str, read: WordReader, charset: str, *, varying: bool, mariadb: bool
) -> Spelled | None:
    """Step over the rest of a type of texts or bytes; None for others. NATIONAL may stand before VARCHAR."""
    if known.name in ("char", "varchar"):
        varying = known.name == "varchar" or read.accept("VARYING") or (varying and read.accept("VARCHAR"))
        length = _length(read)
        byte = read.accept("BYTE")
        return Spelled(
            "varchar" if varying else "char",
            length=1 if length is None else length,
            charset="binary" if byte else charset,
        )
    if known.name in ("binary", "varbinary"):
        length = _length(read)
        name = "varchar" if known.name == "varbinary" else "char"
        return Spelled(name, length=1 if length is None else length, charset="binary")
    if key == "LONG" and read.accept("VARBINARY"):
        return Spelled("", text=3, charset="binary")
    if known.name in LONG_TEXTS:
        if key == "LONG" and not read.accept("CHAR", "VARYING"):
            read.accept_any("VARCHAR", "VARCHARACTER")
        length = _length(read)
        byte = read.accept("BYTE")
        return Spelled(
            "", length=length or 0, text=_prefix(known, length, mariadb=mariadb), charset="binary" if byte else ""
        )
    if known.name in LONG_BYTES:
        length = _length(read)
        return Spelled("", length=length or 0, text=_prefix(known, length, mariadb=mariadb), charset="binary")
    return None


def _prefix(known: ColumnType, length: int | None, *, mariadb: bool) -> int:
    """Return the bytes of the length of a TEXT or BLOB; TEXT(0) is the smallest one in MySQL, and as without a length in MariaDB."""
    return 1 if length == 0 and not mariadb else known.prefix


def _floating(key: str, read: WordReader, sql_mode: int) -> Spelled:
    read.accept("PRECISION")
    precision, scale = _pair(read)
    single = key in ("FLOAT", "FLOAT4") and not (scale is None and (precision or 0) > 24)  # digits of a FLOAT
    single = single or (key == "REAL" and bool(sql_mode & REAL_AS_FLOAT))
    digits = precision or 0 if scale is not None else 0
    return Spelled("float" if single else "double", length=digits, scale=scale or 0, unsigned=_unsigned(read))


def _length(read: WordReader) -> int | None:
    if read.key() != "(":
        return None
    inner = WordReader(read.inner())
    length = inner.number()
    if inner.more:
        raise CannotFollow("a type has more than a length")
    return length


def _pair(read: WordReader) -> tuple[int | None, int | None]:
    if read.key() != "(":
        return None, None
    inner = WordReader(read.inner())
    precision = inner.number()
    scale = inner.number() if inner.accept(",") else None
    return precision, scale


def _unsigned(read: WordReader) -> bool:
    unsigned = False
    while word := read.accept_any("UNSIGNED", "SIGNED", "ZEROFILL"):
        unsigned = unsigned or word != "SIGNED"
    return unsigned


def _members(read: WordReader) -> tuple[str, ...]:
    inner = WordReader(read.inner())
    members = [inner.string().rstrip(" ")]
    while inner.accept(","):
        members.append(inner.string().rstrip(" "))
    if inner.more:
        raise CannotFollow("the members are not plain strings")
    return tuple(members)
