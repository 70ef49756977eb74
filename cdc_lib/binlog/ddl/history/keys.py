"""Keys in DDL; only primary and unique keys are kept, because they identify rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cdc_lib.binlog.ddl.history.words import CannotFollow, WordReader, parted
from cdc_lib.model.lexer import Word
from cdc_lib.model.schema_version import PRIMARY, Key

_OTHERS = {"INDEX", "KEY", "FULLTEXT", "SPATIAL", "FOREIGN", "CHECK"}


def is_secondary_key_or_check(read: WordReader) -> bool:
    """Whether a non-unique key or a constraint is next."""
    if read.key() == "CONSTRAINT":
        return bool({read.key(1), read.key(2)} & {"CHECK", "FOREIGN"})
    return read.key() in _OTHERS or (read.key() == "VECTOR" and read.key(1) in ("INDEX", "KEY"))


def is_key(read: WordReader) -> bool:
    """Whether a key or a constraint is next, not a column."""
    return read.key() in ("PRIMARY", "UNIQUE", "CONSTRAINT") or is_secondary_key_or_check(read)


def accept_key(read: WordReader, taken: Sequence[Key]) -> Key | None:
    """Read ``[CONSTRAINT [name]] PRIMARY KEY | UNIQUE ...``; None, and nothing read, for anything else.

    Args:
        read: words of one element of a definition.
        taken: existing keys; a key without a name gets that of its first column, and a number if needed.
    """
    ahead = 0
    if read.key() == "CONSTRAINT":
        ahead = 1 if read.key(1) in ("PRIMARY", "UNIQUE") else 2
    if read.key(ahead) not in ("PRIMARY", "UNIQUE"):
        return None
    constraint = ""
    if read.accept("CONSTRAINT") and ahead == 2:
        constraint = read.name()
    if read.accept("PRIMARY", "KEY"):
        return _key(read, PRIMARY, taken, stops=("(", "USING"))
    read.accept("UNIQUE")
    read.accept_any("KEY", "INDEX")
    read.accept("IF", "NOT", "EXISTS")
    return _key(read, constraint, taken, stops=("(", "USING", "TYPE"))


def _key(read: WordReader, name: str, taken: Sequence[Key], stops: tuple[str, ...]) -> Key:
    if read.key() not in stops:
        own = read.name()
        name = name if name == PRIMARY else own
    if "HASH" in {word.key for word in read.left()} and name != PRIMARY:
        raise CannotFollow("whether a key is a hash depends on the engine")
    if read.accept_any("USING", "TYPE"):
        read.take()
    return key_of(name, read.inner(), taken)


def key_of(name: str, parts: Sequence[Word], taken: Sequence[Key]) -> Key:
    """Return a key by the words between its parentheses."""
    columns: list[str] = []
    whole = True
    for part in parted(parts):
        read = WordReader(part)
        if read.key() == "(":
            columns.append("")
            whole = False
            continue
        columns.append(read.name())
        if read.key() == "(":
            read.inner()
            whole = False
        read.accept_any("ASC", "DESC")
        if read.more:
            raise CannotFollow("a key's part is not known here")
    return Key(name or _free_name(columns[0] or "functional_index", taken), tuple(columns), whole)


def _free_name(base: str, taken: Sequence[Key]) -> str:
    names = {key.name.lower() for key in taken}
    name, number = base, 1
    while name.lower() in names:
        number += 1
        name = f"{base}_{number}"
    return name


def without_column(keys: Sequence[Key], column: str) -> list[Key]:
    """Return the keys that are left when a column goes."""
    left = []
    for key in keys:
        columns = tuple(c for c in key.columns if c.lower() != column.lower())
        if columns:
            left.append(replace(key, columns=columns))
    return left


def with_renamed(keys: Sequence[Key], names: dict[str, str]) -> list[Key]:
    """Return the keys with new names of columns, given by the old ones in lower case."""
    return [replace(key, columns=tuple(names.get(c.lower(), c) for c in key.columns)) for key in keys]
