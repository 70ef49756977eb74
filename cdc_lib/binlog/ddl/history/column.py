"""A column as DDL defines it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cdc_lib.binlog.ddl.history.charsets import accept_charset
from cdc_lib.binlog.ddl.history.types import Spelled, TypeOf, spelled
from cdc_lib.binlog.ddl.history.words import CannotFollow, WordReader
from cdc_lib.model.lexer import Word
from cdc_lib.model.schema import Column


@dataclass(frozen=True, slots=True)
class Rules:
    """What decides about a definition beside its own words.

    Args:
        typed: see :data:`cdc_lib.binlog.ddl.history.types.TypeOf`.
        mariadb: whether the server is MariaDB.
        sql_mode: bits of the session.
        fold: whether the server keeps names of databases and tables in lower case, however they are typed.
        unclear_utf8: whether utf8 may also be utf8mb4: a session's ``old_mode`` of MariaDB decides, which the binlog does not have.
        converted: the character set to which the statement converts all texts of the table; empty for none.
    """

    typed: TypeOf
    mariadb: bool
    sql_mode: int = 0
    fold: bool = False
    unclear_utf8: bool = False
    converted: str = ""


@dataclass(frozen=True, slots=True)
class NewColumn:
    """A column and where it goes.

    Args:
        column: as it is from now on.
        order: ``FIRST``, ``AFTER`` or empty.
        after: with ``AFTER``: the column that it follows.
        primary: whether it is the primary key.
        unique: whether it has a unique key of its own.
    """

    column: Column
    order: str = ""
    after: str = ""
    primary: bool = False
    unique: bool = False


_FOLLOWED_BY_WORD = {"COLUMN_FORMAT", "STORAGE"}
_FOLLOWED_BY_VALUE = {"COMMENT", "ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE", "SRID", "REF_SYSTEM_ID"}
_ALONE = {"VISIBLE", "INVISIBLE", "VIRTUAL", "STORED", "PERSISTENT", "ENFORCED"}


def new_column(read: WordReader, charset: str, rules: Rules) -> NewColumn:
    """Read a column's name, type and attributes to their end.

    Args:
        read: words of this column alone.
        charset: the table's default.
        rules: see there.

    Raises:
        CannotFollow: something in it is not known.
    """
    name = read.column()
    kind = spelled(read, mariadb=rules.mariadb, sql_mode=rules.sql_mode)
    attributes = ColumnReader(kind, charset)
    while read.more:
        attributes.take(read)
    convert(kind, attributes.charset, rules.converted)
    nullable = not (attributes.not_null or attributes.primary)
    return NewColumn(
        Column(name, kind.resolve(attributes.charset, rules.typed), nullable),
        attributes.order,
        attributes.after,
        attributes.primary,
        attributes.unique,
    )


def convert(kind: Spelled, declared: str, charset: str) -> None:
    """Give a type the character set to which the statement converts its table, also if it declares another one; bytes stay bytes."""
    if charset and kind.charset is not None and (kind.charset or declared) != "binary":
        kind.charset = charset


class ColumnReader:
    """What is after a column's type.

    Args:
        kind: the type.
        charset: the table's default.
    """

    def __init__(self, kind: Spelled, charset: str) -> None:
        """Begin after the type."""
        self.default: Sequence[Word] = ()
        self.computed = False
        self.expression = False
        self.nullable = False  # because it says so
        self.charset = self._inherited = charset
        self.not_null = kind.not_null
        self.unique = kind.own_key
        self.primary = False
        self.order = self.after = ""
        self._explicit = False

    def take(self, read: WordReader) -> None:
        """Step over one attribute."""
        if (charset := self._charset(read)) is not None:
            # COLLATE after CHARACTER SET says nothing new, and one that fits several sets leaves it.
            self.charset, self._explicit = charset, True
            return
        if self._key(read):
            return
        key = read.take().key
        match key:
            case "NOT" if read.accept("NULL"):
                self.not_null = True
            case "NOT" if read.accept("ENFORCED"):
                pass
            case "NULL":
                self.not_null, self.nullable = False, True
            case "DEFAULT":
                before = read.left()
                _value(read)
                self.default = before[: len(before) - len(read.left())]
            case "ON" if read.accept("UPDATE"):
                _value(read)
            case "AUTO_INCREMENT":
                self.not_null = self.computed = True
            case "FIRST":
                self.order = key
            case "AFTER":
                self.order, self.after = key, read.name()
            case _:
                self._rest(key, read)

    def _charset(self, read: WordReader) -> str | None:
        if read.accept("ASCII"):
            return "latin1"
        if read.accept("UNICODE"):
            return "ucs2"
        if read.accept("BINARY"):  # the binary collation of the character set
            return self.charset
        return accept_charset(read, self.charset if self._explicit else self._inherited)

    def _key(self, read: WordReader) -> bool:
        if read.accept("PRIMARY", "KEY") or read.accept("PRIMARY") or read.accept("KEY"):
            self.primary = True
        elif read.accept("UNIQUE"):
            read.accept("KEY")
            self.unique = True
        else:
            return False
        return True

    def _rest(self, key: str, read: WordReader) -> None:
        if key in _ALONE:
            return
        if key in _FOLLOWED_BY_WORD or key in _FOLLOWED_BY_VALUE:
            read.accept("=")
            read.take()
        elif key == "GENERATED":
            self.computed = self.expression = True
            read.accept("ALWAYS")
            if read.key() != "AS" or read.key(1) != "(":
                raise CannotFollow("a column is generated in a way that is not known here")
        elif key in ("AS", "CHECK"):
            self.expression = self.expression or key == "AS"
            self.computed = self.computed or self.expression
            read.inner()
        elif key == "CONSTRAINT":
            if read.key() != "CHECK":
                read.name()
        elif key == "REFERENCES":
            _reference(read)
        elif key == "COMPRESSED":  # MariaDB, with or without a method
            if read.accept("="):
                read.take()
        else:
            raise CannotFollow(f"the word {key or '?'} in a column's definition is not known here")


def _value(read: WordReader) -> None:
    """Step over a default: a literal, an expression in parentheses, or a function with its arguments."""
    if read.key() == "(":
        read.inner()
        return
    read.accept_any("+", "-")
    first = read.take()
    # _utf8mb4'x', b'1' and DATE '2024-01-01' are two words.
    if first.kind == "word" and read.more and read.key() == "":
        read.take()
    if read.key() == "(":
        read.inner()


def _reference(read: WordReader) -> None:
    read.table("")
    if read.key() == "(":
        read.inner()
    while read.key() in ("MATCH", "ON"):
        if read.take().key == "MATCH":
            read.take()
            continue
        read.take()
        if not (read.accept("SET") or read.accept("NO")):
            read.take()
            continue
        read.take()
