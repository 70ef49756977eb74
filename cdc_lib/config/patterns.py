"""Which tables a source captures; pure functions over names.

A pattern is ``database.table``; ``*`` stands for any characters and ``?`` for one, neither of them for the dot between the
two. A database whose name has a dot in it is reached by a wildcard. Names compare with their case, as servers on Linux do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

SYSTEM_DATABASES = frozenset({"information_schema", "mysql", "performance_schema", "sys"})
"""Databases of the server itself, which no pattern captures."""


def matches(pattern: str, database: str, table: str) -> bool:
    """Whether ``database.table`` is one of those that the pattern names."""
    database_like, table_like = _compiled(pattern)
    return database_like.fullmatch(database) is not None and table_like.fullmatch(table) is not None


def captured(include: Iterable[str], exclude: Iterable[str], database: str, table: str) -> bool:
    """Whether a table is included and not excluded; an exclusion always wins."""
    if database.lower() in SYSTEM_DATABASES:
        return False
    if not any(matches(pattern, database, table) for pattern in include):
        return False
    return not any(matches(pattern, database, table) for pattern in exclude)


def select(
    include: Iterable[str], exclude: Iterable[str], tables: Iterable[tuple[str, str]]
) -> Sequence[tuple[str, str]]:
    """Return the captured ones of ``(database, table)`` pairs, in their order."""
    wanted, unwanted = tuple(include), tuple(exclude)
    return [(database, table) for database, table in tables if captured(wanted, unwanted, database, table)]


def problem(pattern: str) -> str | None:
    """Say what is wrong with a pattern, or None."""
    database, dot, table = pattern.partition(".")
    if not (database and dot and table):
        return f"{pattern!r} is not database.table"
    if pattern != pattern.strip() or "`" in pattern:
        return f"{pattern!r} has blanks or backticks around its names; write them bare"
    if database.lower() in SYSTEM_DATABASES:
        return f"{pattern!r} names a database of the server itself, which is never captured"
    return None


@lru_cache(maxsize=4096)
def _compiled(pattern: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    database, _, table = pattern.partition(".")
    return _expression(database), _expression(table)


def _expression(like: str) -> re.Pattern[str]:
    """Translate wildcards; everything else, brackets included, stands for itself."""
    wild = {"*": ".*", "?": "."}
    return re.compile("".join(wild.get(char, re.escape(char)) for char in like), re.DOTALL)
