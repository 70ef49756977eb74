"""Whether an ALTER TABLE that changes column types changes values of existing rows: pure.

Servers rewrite such rows without an event for any of them: a fraction of a second is rounded, BINARY is padded, a TIME is shown
with more digits. Where the lake's column holds the new type as well as the former, nothing else would tell.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from cdc_lib.binlog.ddl.history.charsets import WHOLE, accept_charset, holds, longest
from cdc_lib.binlog.ddl.history.column import ColumnReader
from cdc_lib.binlog.ddl.history.types import Spelled, spelled
from cdc_lib.binlog.ddl.history.words import CannotFollow, WordReader, clauses, words
from cdc_lib.binlog.ddl.statement import Statement
from cdc_lib.model.column_types import INTEGERS
from cdc_lib.model.schema import Column, SourceType
from cdc_lib.model.schema_version import Definition

_STRICT = 3 << 21
"""STRICT_TRANS_TABLES and STRICT_ALL_TABLES: without them servers cut values to fit, and continue."""
_FRACTION = 6
_SUSPECTS = re.compile(
    r"\b(AS|TIME|DATETIME|TIMESTAMP|DEC|DECIMAL|NUMERIC|FIXED|FLOAT4?|REAL|BINARY|CHAR\s+BYTE|SET)\b", re.IGNORECASE
)
"""Words of the types that are looked at, for statements of which not every word is known here."""


def respelled(statement: Statement, known: Definition | None, *, mariadb: bool, as_text: bool) -> str:
    """Return the first column whose values may be others after the statement; empty where all stay as they are.

    Only such are meant as the lake cannot see by its own column's type.

    Args:
        statement: an ALTER TABLE.
        known: the table's definition before the statement; None if that is not known.
        mariadb: whether the server is MariaDB.
        as_text: whether the lake keeps dates as text.
    """
    before = {column.name.lower(): column for column in known.schema.columns} if known is not None else {}
    strict = bool(statement.sql_mode & _STRICT)
    name = "?"
    try:
        parts = clauses(WordReader(words(statement)))
        charset = _converted(parts)
        if charset is not None and not strict and (spoiled := _spoiled(known, charset)):
            return spoiled
        for name, clause in _changed(parts):
            kind = spelled(clause, mariadb=mariadb, sql_mode=statement.sql_mode)
            column = ColumnReader(kind, charset or (known.charset if known is not None else ""))
            while clause.more:
                column.take(clause)
            if _differs(before.get(name.lower()), kind, column, strict=strict, as_text=as_text):
                return name
    except CannotFollow:
        return name if not strict or _SUSPECTS.search(statement.text) else ""
    return ""


def _converted(parts: Sequence[WordReader]) -> str | None:
    """Return the character set to which all texts of a table are converted; empty if it is not named, None without such a clause."""
    for clause in parts:
        if clause.accept("CONVERT", "TO"):
            charset = accept_charset(clause, "")
            return accept_charset(clause, charset or "") or charset or ""
    return None


def _spoiled(known: Definition | None, charset: str) -> str:
    """Return the first column that may have characters that a character set lacks; they become question marks."""
    if known is None:
        return "" if charset in WHOLE else "?"
    texts = (one for one in known.schema.columns if one.type.charset not in ("", "binary"))
    return next((one.name for one in texts if not holds(charset, one.type.charset)), "")


def _changed(parts: Sequence[WordReader]) -> Iterator[tuple[str, WordReader]]:
    """Yield the columns that are declared again, by their names before the statement, and the words from the type on."""
    for clause in parts:
        if key := clause.accept_any("MODIFY", "CHANGE"):
            clause.accept("COLUMN")
            clause.accept("IF", "EXISTS")
            name = clause.column()
            if key == "CHANGE":
                clause.column()
            yield name, clause


def _differs(before: Column | None, kind: Spelled, column: ColumnReader, *, strict: bool, as_text: bool) -> bool:
    if column.expression:
        return True
    if before is None:
        if not strict:
            return True  # any value may be cut
        shown = kind.name in ("time", "decimal", "float") or _is_padded(kind)
        return shown or (kind.name in ("datetime", "timestamp") and (as_text or kind.scale < _FRACTION))
    old = before.type
    if not strict and (_is_cut(old, kind, column.charset) or (before.nullable and column.not_null)):
        return True
    if kind.name == "time":
        return old.kind == "time" and old.scale != kind.scale
    if kind.name in ("datetime", "timestamp"):
        return old.kind == kind.name and (kind.scale < old.scale or (as_text and kind.scale != old.scale))
    if kind.name == "decimal":
        shown = old.lake_type == "string" and kind.scale != old.scale
        return old.kind == "decimal" and (kind.scale < old.scale or shown)
    if kind.name == "float":
        return old.kind == "double"
    if kind.name == "set":
        return old.kind == "set" and kind.members[: len(old.members)] != old.members
    return _is_padded(kind) and old.kind == "bytes" and old.width != kind.length


def _is_padded(kind: Spelled) -> bool:
    return kind.name == "char" and kind.charset == "binary"


def _is_cut(old: SourceType, kind: Spelled, charset: str) -> bool:
    """Whether values of the former type may not fit."""
    if old.kind == "int":
        return kind.name not in INTEGERS or INTEGERS[kind.name] < old.width or kind.unsigned != old.unsigned
    if old.kind == "decimal":
        return kind.name != "decimal" or kind.length - kind.scale < old.precision - old.scale
    if old.kind in ("enum", "set"):
        return kind.name != old.kind or not {*old.members} <= {*kind.members}
    if old.kind == "string" and kind.charset != "binary" and not holds(kind.charset or charset, old.charset):
        return True
    if old.kind in ("string", "bytes"):
        return not kind.text and kind.length * longest(old.charset) < old.width
    return False
