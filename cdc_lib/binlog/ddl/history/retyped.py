"""Whether an ALTER TABLE that changes column types changes values of existing rows: pure.

Servers rewrite such rows without an event for any of them: a fraction of a second is rounded, BINARY is padded, a TIME is shown
with more digits. Where the lake's column holds the new type as well as the former, nothing else would tell.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from cdc_lib.binlog.ddl.history.charsets import WHOLE, accept_charset, holds, keeps_labels, longest
from cdc_lib.binlog.ddl.history.column import ColumnReader, convert
from cdc_lib.binlog.ddl.history.keys import is_key
from cdc_lib.binlog.ddl.history.types import Spelled, spelled
from cdc_lib.binlog.ddl.history.words import CannotFollow, WordReader, clauses, parted, words
from cdc_lib.binlog.ddl.statement import Statement
from cdc_lib.model import lexer
from cdc_lib.model.column_types import BY_NAME, CAST_FORMS, INTEGERS, Form, Kind
from cdc_lib.model.schema import Column, SourceType
from cdc_lib.model.schema_version import Definition

_STRICT = 3 << 21
"""STRICT_TRANS_TABLES and STRICT_ALL_TABLES: without them servers cut values to fit, and continue."""
_PAD_CHAR = 1 << 31
"""PAD_CHAR_TO_FULL_LENGTH: values of CHAR have blanks up to its length, which another type keeps."""
_FRACTION = 6
_YEAR = 2
"""Bytes of the smallest integer that holds every year."""
_FIXED = {"string": "char", "bytes": "binary"}
"""Kinds with a type of a fixed length."""
_SUSPECTS = re.compile(
    r"\b(AS|TIME|DATETIME|TIMESTAMP|YEAR|DEC|DECIMAL|NUMERIC|FIXED|FLOAT[48]?|DOUBLE|REAL|BINARY|CHAR\s+BYTE|SET|ENUM|JSON|UUID|INET[46]|CONVERT)\b",
    re.IGNORECASE,
)
"""Words of the types that are looked at, for statements of which not every word is known here."""
_ALIKE = {
    ("enum", "string"),
    ("set", "string"),
    ("time", "string"),
    ("json", "string"),
    ("year", "int"),
    ("float", "double"),
}
"""Kinds of which the second shows all values of the first as they are, in the same type of the lake or a wider one."""


def respelled(statement: Statement, known: Definition | None, *, mariadb: bool, as_text: bool) -> str:
    """Return the first column whose values may be others after the statement; empty where all stay as they are.

    A new type that the lake's column cannot hold is meant as well: without a row after the statement nothing else would tell.

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
        if charset is not None and (spoiled := _spoiled(known, charset, strict=strict)):
            return spoiled
        for name, clause in _changed(parts):
            kind = spelled(clause, mariadb=mariadb, sql_mode=statement.sql_mode)
            column = ColumnReader(kind, charset or (known.charset if known is not None else ""))
            while clause.more:
                column.take(clause)
            convert(kind, column.charset, charset or "")
            old = before.get(name.lower())
            if _differs(old, kind, column, strict=strict, as_text=as_text):
                return name
            if (
                statement.sql_mode & _PAD_CHAR
                and kind.name != "char"
                and (old is None or fixed_length(old.type) == "char")
            ):
                return name
    except CannotFollow:
        return name if not strict or _SUSPECTS.search(statement.text) else ""
    return ""


def recomputed(statement: Statement, known: Definition | None, expressions: Mapping[str, str], *, mariadb: bool) -> str:
    """Return the first generated column that is made of one which the statement declares again, or replaces; empty for none.

    Its values follow the type, the character set and the collation of that column, also where the column's own values stay, and those of
    a column that takes the name: servers write them again without an event.

    Args:
        statement: an ALTER TABLE.
        known: the table's definition before the statement; None if that is not known.
        expressions: of the table's generated columns, by their names.
        mariadb: whether the server is MariaDB.
    """
    before = {column.name.lower(): column for column in known.schema.columns} if known is not None else {}
    try:
        parts = clauses(WordReader(words(statement)))
        if _converted(parts) is not None:
            return next(iter(expressions), "")
        declared = {
            name.lower()
            for old, new, clause in _declared_again(parts)
            if not _is_same(before.get(old.lower()), clause, statement, mariadb=mariadb)
            for name in (old, new)
        } | {name.lower() for name in _dropped(parts)}
    except CannotFollow:
        return next(iter(expressions), "")
    made_of = {one: {word.text.lower() for word in lexer.words(text)} for one, text in expressions.items()}
    return next((one for one, names in made_of.items() if names & declared), "")


def _is_same(old: Column | None, clause: WordReader, statement: Statement, *, mariadb: bool) -> bool:
    """Whether a number or a time is declared as it is: with another default, comment or place. ZEROFILL, which is not known, is unsigned."""
    kind = spelled(clause, mariadb=mariadb, sql_mode=statement.sql_mode)
    if old is None or old.type.unsigned or kind.unsigned:
        return False
    of, new = old.type, _type_of(kind, "")
    if of.kind == "int":
        return INTEGERS.get(kind.name) == of.width
    return of.kind == new.kind and of.kind in ("datetime", "timestamp", "time", "date") and of.scale == new.scale


def undecided(statement: Statement, known: Definition | None, *, mariadb: bool) -> tuple[Column, ...]:
    """Return the columns that a statement declares again whose former types are not known: the former names, the new types.

    A conversion of all texts of a table is a column without a name: see :func:`converts_to_others`.

    Args:
        statement: an ALTER TABLE in which :func:`respelled` found no column.
        known: the table's definition before the statement; None if that is not known.
        mariadb: whether the server is MariaDB.
    """
    before = {column.name.lower() for column in known.schema.columns} if known is not None else set()
    try:
        parts = clauses(WordReader(words(statement)))
        charset = _converted(parts)
        changed = [one for one in _changed(parts) if one[0].lower() not in before]
    except CannotFollow:
        return ()
    declared = (Column(name, _declared(clause, statement, charset or "", mariadb=mariadb)) for name, clause in changed)
    converted = [Column("", SourceType("string", charset=charset))] if charset is not None and known is None else []
    return (*declared, *converted)


def declares(statement: Statement, *, mariadb: bool) -> tuple[Column, ...]:
    """Return the columns that a CREATE TABLE lists, with their types as :func:`undecided` gives them.

    Raises:
        CannotFollow: it lists none, is made like another table, or has the rows of a query.
    """
    read = WordReader(words(statement))
    read.accept("CREATE")
    read.accept("OR", "REPLACE")
    if not read.accept("TABLE"):
        raise CannotFollow("it is no CREATE TABLE")
    read.accept("IF", "NOT", "EXISTS")
    read.table(statement.database)
    if "LIKE" in (read.key(), read.key(1)):
        raise CannotFollow("it is made like another table")
    elements = [WordReader(part) for part in parted(read.inner())]
    if any(word.key == "SELECT" for word in read.left()):
        raise CannotFollow("its rows come from a query")
    return tuple(
        Column(one.column(), _declared(one, statement, "", mariadb=mariadb)) for one in elements if not is_key(one)
    )


def _declared(clause: WordReader, statement: Statement, charset: str, *, mariadb: bool) -> SourceType:
    """Return the type that a column gets; one that is not known here counts as unlike all others."""
    try:
        kind = spelled(clause, mariadb=mariadb, sql_mode=statement.sql_mode)
    except CannotFollow:
        return SourceType("unsupported")
    column = ColumnReader(kind, charset)
    with suppress(CannotFollow):  # words after the type that are not known here do not change its kind
        while clause.more:
            column.take(clause)
    convert(kind, column.charset, charset)
    return _type_of(kind, column.charset)


def _converted(parts: Sequence[WordReader]) -> str | None:
    """Return the character set to which all texts of a table are converted; empty if it is not named, None without such a clause."""
    for clause in parts:
        if clause.accept("CONVERT", "TO"):
            charset = accept_charset(clause, "")
            return accept_charset(clause, charset or "") or charset or ""
    return None


def _spoiled(known: Definition | None, charset: str, *, strict: bool) -> str:
    """Return the first column whose values may be others in a character set."""
    if known is None:
        return "" if strict or charset in WHOLE else "?"
    return next((one.name for one in known.schema.columns if converts_to_others(one.type, charset, strict=strict)), "")


def converts_to_others(old: SourceType, charset: str, *, strict: bool = True) -> bool:
    """Whether values may be others after ``CONVERT TO CHARACTER SET``.

    Servers keep the bytes of labels of ENUM and SET, which may be other characters in the new character set.

    Args:
        old: the former type.
        charset: the new character set; empty if it is not known.
        strict: whether the statement fails if a text has a character that the character set lacks.
    """
    if old.kind in ("enum", "set"):
        return not keeps_labels(old.members, old.charset, charset)
    if old.kind != "string":
        return False
    return charset in ("", "binary") or not (strict or holds(charset, old.charset))


def _changed(parts: Sequence[WordReader]) -> Iterator[tuple[str, WordReader]]:
    """Yield the columns that are declared again, by their names before the statement, and the words from the type on."""
    return ((old, clause) for old, _, clause in _declared_again(parts))


def _declared_again(parts: Sequence[WordReader]) -> Iterator[tuple[str, str, WordReader]]:
    """Yield the same with the names after the statement."""
    for clause in parts:
        if key := clause.accept_any("MODIFY", "CHANGE"):
            clause.accept("COLUMN")
            clause.accept("IF", "EXISTS")
            name = clause.column()
            yield name, clause.column() if key == "CHANGE" else name, clause


def _dropped(parts: Sequence[WordReader]) -> Iterator[str]:
    """Yield the columns that are dropped: servers refuse that of one which a generated column needs, unless another takes its name."""
    for clause in parts:
        if clause.accept("DROP"):
            clause.accept("COLUMN")
            clause.accept("IF", "EXISTS")
            yield clause.column()  # of a dropped key its first word, which is no column


def _differs(before: Column | None, kind: Spelled, column: ColumnReader, *, strict: bool, as_text: bool) -> bool:
    if column.expression:
        return True
    if before is None:
        return not strict or _may_show_others(kind, as_text=as_text)  # without it any value may be cut
    old = before.type
    if not strict and (_is_cut(old, kind, column.charset) or (before.nullable and column.not_null)):
        return True
    return shows_others(old, _type_of(kind, column.charset), as_text=as_text)


def shows_others(old: SourceType, new: SourceType, *, as_text: bool = False) -> bool:
    """Whether values may be others under a new type, in strict mode.

    Args:
        old: the former type.
        new: the type, as :func:`undecided` gives it.
        as_text: whether the lake keeps dates as text; the former type may say so too.
    """
    # FLOAT(M,D) and DOUBLE(M,D): values are rounded if the statement copies the table, which it does not say.
    if new.precision:
        return True
    if new.kind != old.kind:
        return (old.kind, new.kind) not in _ALIKE
    match old.kind:
        case "time":
            return old.scale != new.scale
        case "datetime" | "timestamp":
            return new.scale < old.scale or ((as_text or old.as_text) and new.scale != old.scale)
        case "decimal":
            return new.scale < old.scale or (old.lake_type == "string" and new.scale != old.scale)
        case "set":
            return new.members[: len(old.members)] != old.members
        case "enum":  # a label that is missing may be another one under the collation
            return not ({*old.members} <= {*new.members} or {*new.members} <= {*old.members})
        case "string":  # CHAR has no blanks at the end
            return new.text == "char" and not fixed_length(old)
        case "bytes":  # VARBINARY is filled with zeros; one that only the binlog describes may be either
            form = old.form if old.form in CAST_FORMS else ""
            return new.form != form or (new.text == "binary" and not (fixed_length(old) and old.width == new.width))
    return False


def fixed_length(kind: SourceType) -> str:
    """Return ``char`` or ``binary`` for these types, also as :func:`compared` returns them; empty for others."""
    return _FIXED.get(kind.kind, "") if kind.text.startswith(("char", "binary")) else ""


def compared(kind: SourceType) -> SourceType:
    """Return a former type with only what :func:`shows_others` and :func:`converts_to_others` look at: the same of snapshots and windows, and of a longer VARCHAR."""
    return SourceType(
        kind.kind,
        kind.width if kind.kind == "bytes" else 0,
        precision=kind.precision,
        scale=kind.scale,
        members=kind.members,
        charset=kind.charset if kind.kind in ("enum", "set") else "",
        text=fixed_length(kind),
        form=kind.form if kind.form in CAST_FORMS else "",
        as_text=kind.as_text,
    )


def _type_of(kind: Spelled, charset: str) -> SourceType:
    """Return a type, as far as values depend on it."""
    of, form = _kind_of(kind, charset), _form(kind)
    digits = kind.length if of in ("float", "double") else 0
    return SourceType(
        of,
        kind.length,
        precision=digits,
        scale=kind.scale,
        members=kind.members,
        text=_FIXED.get(of, "") if kind.name == "char" else "",
        form=form,
    )


def _may_show_others(kind: Spelled, *, as_text: bool) -> bool:
    """Whether a type shows values of a former one that is not known as others; not those of which most changes are harmless."""
    if kind.name in ("datetime", "timestamp"):
        return as_text or kind.scale < _FRACTION
    return kind.name in ("time", "decimal", "float", "year", "json") or bool(_form(kind)) or _is_padded(kind)


def _kind_of(kind: Spelled, charset: str) -> Kind:
    if kind.text or kind.name in ("char", "varchar"):
        return "bytes" if (kind.charset or charset) == "binary" else "string"
    return BY_NAME[kind.name].kind


def _form(kind: Spelled) -> Form:
    return BY_NAME[kind.name].form if kind.name in BY_NAME else ""


def _is_padded(kind: Spelled) -> bool:
    return kind.name == "char" and kind.charset == "binary"


def _is_cut(old: SourceType, kind: Spelled, charset: str) -> bool:
    """Whether values of the former type may not fit."""
    match old.kind:
        case "int":
            return kind.name not in INTEGERS or INTEGERS[kind.name] < old.width or kind.unsigned != old.unsigned
        case "decimal":
            fits = kind.name == "decimal" and kind.length - kind.scale >= old.precision - old.scale
            return not fits or kind.unsigned > old.unsigned
        case "float" | "double":
            return kind.unsigned > old.unsigned
        case "bit":
            return kind.length < old.width
        case "year":
            return INTEGERS.get(kind.name, _YEAR) < _YEAR
        case "time" | "json" | "enum" | "set":
            return kind.name != old.kind or not {*old.members} <= {*kind.members}
        case "string" if kind.charset != "binary" and not holds(kind.charset or charset, old.charset):
            return True
        case "string" | "bytes" if kind.text:
            own = kind.charset or charset
            growth = longest(own) if own not in ("binary", old.charset) else 1
            return old.width * growth >= 1 << 8 * kind.prefix(own)
    return old.kind in ("string", "bytes") and kind.length * longest(old.charset) < old.width
