r"""Which tables and columns are meant; pure functions over names.

A pattern is ``database.table``; ``*`` stands for any characters and ``?`` for one, neither of them for the dot between the
two. A name in backticks is taken literally, with its dots and wildcards: ``w.`y.z` ``. Between slashes a pattern is a regular
expression that is looked for in ``database.table``, anywhere unless ``^`` and ``$`` hold it to the ends:
``/^shop_\d+\.orders$/``; a name that holds a dot or a backtick is in backticks there. Names of tables compare with their
case, as servers on Linux do.

A pattern of a column has the same wildcards and slashes; columns compare without their case, as all servers do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from cdc_lib.errors import ConfigError
from cdc_lib.model.table_name import TableName, parts_of

SYSTEM_DATABASES = frozenset({"information_schema", "mysql", "performance_schema", "sys"})
"""Databases of the server itself, which no pattern captures. ``SYS`` is another one where case counts."""


def matches(pattern: str, database: str, table: str) -> bool:
    """Whether ``database.table`` matches the pattern."""
    if is_expression(pattern):
        return _regular(pattern, 0).search(f"{_unambiguous(database)}.{_unambiguous(table)}") is not None
    database_like, table_like = _compiled(pattern)
    return database_like.fullmatch(database) is not None and table_like.fullmatch(table) is not None


def matches_column(pattern: str, column: str) -> bool:
    """Whether a column matches the pattern."""
    if is_expression(pattern):
        return _regular(pattern, re.IGNORECASE).search(column) is not None
    return _expression(_lower(pattern)).fullmatch(_lower(column)) is not None


def _lower(name: str) -> str:
    """Return a name in lower case, character by character as servers compare: ``re.IGNORECASE`` takes two of their letters for one."""
    return "".join(character.lower()[0] for character in name)


def captured(include: Iterable[str], exclude: Iterable[str], database: str, table: str) -> bool:
    """Whether a table is included and not excluded; an exclusion always wins."""
    return _captured(tuple(include), tuple(exclude), database, table)


@lru_cache(maxsize=65536)
def _captured(include: tuple[str, ...], exclude: tuple[str, ...], database: str, table: str) -> bool:
    if database in SYSTEM_DATABASES:
        return False
    if not any(matches(pattern, database, table) for pattern in include):
        return False
    return not any(matches(pattern, database, table) for pattern in exclude)


def reaches(include: Iterable[str], database: str) -> bool:
    """Whether some table of a database may be captured; true in doubt, as for many regular expressions."""
    if database in SYSTEM_DATABASES:
        return False
    return any(_reaches(pattern, database) for pattern in include)


def _reaches(pattern: str, database: str) -> bool:
    if not is_expression(pattern):
        return _compiled(pattern)[0].fullmatch(database) is not None
    front, dot, _ = pattern[1:-1].partition(r"\.")
    if not dot or "|" in pattern or "(" in front:
        return True
    try:
        return re.search(f"(?:{front})$", database) is not None
    except re.error:  # a class of characters was cut in two
        return True


def is_expression(pattern: str) -> bool:
    """Whether a pattern is a regular expression between slashes."""
    return len(pattern) > 1 and pattern.startswith("/") and pattern.endswith("/")


def is_exact(pattern: str) -> bool:
    """Whether a pattern matches exactly one name."""
    unquoted = (
        pattern if "`" not in pattern else "".join(name for name, in_backticks in _parts(pattern) if not in_backticks)
    )
    return not is_expression(pattern) and "*" not in unquoted and "?" not in unquoted


def exact_table(pattern: str) -> TableName | None:
    """Return the only table that a pattern matches, or None if there may be several."""
    if is_expression(pattern) or not is_exact(pattern):
        return None
    (database, _), (table, _) = _parts(pattern)
    return TableName(database, table)


def exact_parts(pattern: str) -> tuple[bool, bool]:
    """Whether a pattern matches one database only, and whether it matches one table name only."""
    if is_expression(pattern):
        return False, False
    database, table = (in_backticks or not {"*", "?"} & set(name) for name, in_backticks in _parts(pattern))
    return database, table


def database_of(pattern: str) -> str | None:
    """Return the only database that a pattern matches, or None if there may be several."""
    return _parts(pattern)[0][0] if exact_parts(pattern)[0] else None


def unmatched(patterns: Iterable[str], tables: Iterable[tuple[str, str]]) -> list[str]:
    """Return the patterns that match none of the tables, in order."""
    known = dict.fromkeys(tables)

    def names_one(pattern: str) -> bool:
        one = exact_table(pattern)  # many of these are looked up, where wildcards are tried on table after table
        return one.pair in known if one is not None else any(matches(pattern, *table) for table in known)

    return [pattern for pattern in patterns if not names_one(pattern)]


def problem(pattern: str) -> str | None:
    """Return what is wrong with a table pattern, or None."""
    if pattern.startswith("/"):
        return _problem_of_expression(pattern)
    parts = parts_of(pattern)
    if parts is None and pattern.count(".") > 1:
        return f"{pattern!r} has several dots; write a name that holds one in backticks: `a.b`.c"
    if parts is None or not (parts[0][0] and parts[1][0]):
        return f"{pattern!r} is not database.table"
    if pattern != pattern.strip():
        return f"{pattern!r} has blanks around its names"
    database = parts[0][0]
    if database in SYSTEM_DATABASES:
        return f"{pattern!r} names a database of the server itself, which is never captured"
    return None


def problem_of_column(pattern: str) -> str | None:
    """Return what is wrong with a column pattern, or None."""
    if pattern.startswith("/"):
        return _problem_of_expression(pattern)
    if not pattern or pattern != pattern.strip() or "`" in pattern:
        return f"{pattern!r} is not the name of a column; write it without the table's name"
    return None


def _problem_of_expression(pattern: str) -> str | None:
    if len(pattern) < 3 or not pattern.endswith("/"):
        return f"{pattern!r} begins as a regular expression and has no end; write it as /^shop_\\d+\\.orders$/"
    try:
        re.compile(pattern[1:-1])
    except re.error as error:
        return f"{pattern!r} is not a regular expression: {error}"
    return None


@lru_cache(maxsize=4096)
def _regular(pattern: str, flags: int) -> re.Pattern[str]:
    return re.compile(pattern[1:-1], flags)


@lru_cache(maxsize=4096)
def _compiled(pattern: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    database, table = (re.compile(re.escape(name)) if quoted else _expression(name) for name, quoted in _parts(pattern))
    return database, table


@lru_cache(maxsize=4096)
def _parts(pattern: str) -> tuple[tuple[str, bool], tuple[str, bool]]:
    """Return the names of a wildcard pattern, each with whether it is literal."""
    parts = parts_of(pattern)
    if parts is None:
        raise ConfigError(f"not a pattern of tables: {problem(pattern)}", hint="For example shop.orders or shop.*")
    return parts


def _unambiguous(name: str) -> str:
    """Return a name as regular expressions match it."""
    return f"`{name.replace('`', '``')}`" if {".", "`"} & set(name) else name


@lru_cache(maxsize=4096)
def _expression(like: str) -> re.Pattern[str]:
    """Translate wildcards; all other characters are literal, brackets too."""
    wild = {"*": ".*", "?": "."}
    return re.compile("".join(wild.get(char, re.escape(char)) for char in like), re.DOTALL)
