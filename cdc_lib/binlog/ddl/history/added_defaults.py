"""The values that an ADD COLUMN gives to existing rows: pure, and only if certain.

Servers fill a new column without row events. A value is taken from the statement only if it is the same in every row, and its
text is certainly what SELECT shows. In all other cases the table must be read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from cdc_lib.binlog.ddl.history.column import ColumnReader
from cdc_lib.binlog.ddl.history.keys import is_key, is_secondary_key_or_check
from cdc_lib.binlog.ddl.history.types import Spelled, spelled
from cdc_lib.binlog.ddl.history.words import CannotFollow, WordReader, clauses, parted, words
from cdc_lib.binlog.ddl.statement import Statement
from cdc_lib.model.column_types import INTEGERS
from cdc_lib.model.ddl_effect import AddedDefault
from cdc_lib.model.lexer import Word

_DATE = re.compile(r"[1-9]\d{3}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])")
_TIME = re.compile(r"([01]\d|2[0-3]):[0-5]\d:[0-5]\d")
_EVERY_DAY = 28
"""Every month has so many days: whether a later one exists is left to the server."""


def added_defaults(statement: Statement, *, mariadb: bool) -> tuple[AddedDefault, ...]:
    """Return the values that an ALTER TABLE gives to existing rows.

    A column that is added only if it is not there, and is NULL then, is left out.

    Args:
        statement: an ALTER TABLE.
        mariadb: whether the server is MariaDB.

    Raises:
        CannotFollow: a column gets values that the statement does not show.
    """
    found = (_fill(WordReader(part), statement, mariadb=mariadb) for part in _added(WordReader(words(statement))))
    fills = tuple(fill for fill in found if fill is not None)
    altered = set(_altered(WordReader(words(statement)))) if fills else set()
    if any(fill.column.lower() in altered for fill in fills):
        raise CannotFollow("a column is added and gets another default at once")
    return fills


def _altered(read: WordReader) -> Iterator[str]:
    """Yield the columns whose default a statement sets or drops, in lower case."""
    for clause in clauses(read):
        if clause.accept("ALTER") and clause.key() not in ("INDEX", "KEY", "CHECK", "CONSTRAINT"):
            clause.accept("COLUMN")
            clause.accept("IF", "EXISTS")
            yield clause.column().lower()


def _added(read: WordReader) -> Iterator[Sequence[Word]]:
    """Yield the words of each column that is added."""
    for clause in clauses(read):
        if (
            not clause.accept("ADD")
            or clause.key() == "PARTITION"
            or is_key(clause)
            or is_secondary_key_or_check(clause)
        ):
            continue
        if (clause.key(), clause.key(1)) in (("PERIOD", "FOR"), ("SYSTEM", "VERSIONING")):
            continue  # their columns are not shown
        clause.accept("COLUMN")
        some = clause.accept("IF", "NOT", "EXISTS")
        columns = parted(clause.inner()) if clause.key() == "(" else [clause.rest()]
        for column in columns:
            if column and not is_key(WordReader(column)) and not is_secondary_key_or_check(WordReader(column)):
                # A column that was there keeps what it has: what a new one has instead must be NULL.
                yield [*column, Word("", "sign", "IF NOT EXISTS")] if some else column


def _fill(read: WordReader, statement: Statement, *, mariadb: bool) -> AddedDefault | None:
    name = read.column()
    kind = spelled(read, mariadb=mariadb, sql_mode=statement.sql_mode)
    column = ColumnReader(kind, "")
    some = False
    while read.more:
        if read.accept("IF NOT EXISTS"):
            some = True
        else:
            column.take(read)
    value = _value(kind, column)
    if mariadb and kind.name == "timestamp" and not (column.default or column.nullable):
        raise CannotFollow("whether a TIMESTAMP is NULL automatically depends on explicit_defaults_for_timestamp")
    if some:
        if value is not None:
            raise CannotFollow("a column is added only if it is not there")
        return None
    return AddedDefault(name, value)


def _value(kind: Spelled, column: ColumnReader) -> str | None:
    """Return the text of the value in every row; None for NULL."""
    if column.computed or kind.own_key:
        raise CannotFollow(f"rows get values of their own in a new {kind.name or 'text'}")
    default = column.default
    if not default or (len(default) == 1 and default[0].key == "NULL"):
        if not column.not_null:
            return None
        return _empty(kind)
    sign = default[0].text if default[0].key in ("+", "-") else ""
    literal = default[1:] if sign else default
    if len(literal) != 1:
        raise CannotFollow("a default is no plain literal")
    (word,) = literal
    if word.kind == "word" and word.key in ("TRUE", "FALSE") and not sign:
        word = Word("1" if word.key == "TRUE" else "0", "word", "")
    text = _text(kind, sign.replace("+", "") + word.text, quoted=word.kind == "string")
    if text is None:
        raise CannotFollow("a default may be shown in another way than it is written")
    return text


def _empty(kind: Spelled) -> str:
    """Return what servers put into a column that is not to be NULL and has no default."""
    if kind.name in INTEGERS:
        return "0"
    if kind.name == "decimal":
        return _decimal("0", "", kind.scale)
    if (kind.name in ("varchar", "char") or kind.text) and kind.charset not in (None, "binary"):
        return ""
    raise CannotFollow("a new column is NOT NULL and has no default")


def _decimal(whole: str, fraction: str, scale: int) -> str:
    """Return a decimal with all digits of its scale: the lake may have it as text."""
    digits = f"{whole.removeprefix('-').lstrip('0') or '0'}{'.' if scale else ''}{fraction:0<{scale}}"
    return f"-{digits}" if whole.startswith("-") and digits.strip("0.") else digits


def _text(kind: Spelled, text: str, *, quoted: bool) -> str | None:
    """Return a literal as SELECT shows it in a column; None where that is not sure."""
    name = kind.name
    if name in INTEGERS:
        return text if re.fullmatch(r"-?(0|[1-9]\d*)", text) else None
    if name == "decimal":
        match = re.fullmatch(r"(-?\d+)(?:\.(\d+))?", text)
        return _decimal(match[1], match[2] or "", kind.scale) if match and len(match[2] or "") <= kind.scale else None
    if name in ("float", "double"):
        return text if re.fullmatch(r"-?[1-9]\d{0,6}|0|0\.0+", text) else None
    if not quoted:
        return None
    if name == "enum":
        return text if text in kind.members else None
    if name in ("varchar", "char") and kind.charset != "binary":
        return text if len(text) <= kind.length and text == text.rstrip(" ") else None
    if name == "date":
        return text if _DATE.fullmatch(text) and int(text[-2:]) <= _EVERY_DAY else None
    if name == "datetime":
        day, _, time = text.partition(" ")
        plain = _DATE.fullmatch(day) and int(day[-2:]) <= _EVERY_DAY and _TIME.fullmatch(time)
        return text if plain and not kind.scale else None
    return None
