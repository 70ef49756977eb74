"""Recognizes the shadow tables of gh-ost and pt-online-schema-change by their names. Pure.

gh-ost names them ``_<table>_gho`` (the new table), ``_<table>_ghc`` (its log) and ``_<table>_del`` (the old table, with an optional
timestamp before the suffix); pt-online-schema-change ``_<table>_new`` and ``_<table>_old``, with more underscores in front
if such a table exists (``go/base/context.go`` of gh-ost; ``bin/pt-online-schema-change`` of percona-toolkit).
"""

from __future__ import annotations

import re

_ALL = re.compile(r"_+[^_].*_(gho|ghc|del|new|old)", re.DOTALL)
_NEW = re.compile(r"(_+)(.+)_(gho|new)", re.DOTALL)
_OLD = re.compile(r"(_+)(.+?)(_\d{14})?_(del|old)", re.DOTALL)


def is_beside(table: str) -> bool:
    """Whether a table has the name of a tool's table."""
    return _ALL.fullmatch(table) is not None


def bases(shadow: str) -> tuple[str, ...]:
    """Return the names of the tables that a shadow table may replace; empty if it has no shadow table's name."""
    match = _NEW.fullmatch(shadow)
    return _bases(match) if match is not None else ()


def named_after(table: str) -> tuple[str, ...]:
    """Return the names of the tables that a tool's table, new or old, may hold rows of; empty for other tables."""
    match = _NEW.fullmatch(table) or _OLD.fullmatch(table)
    return _bases(match) if match is not None else ()


def is_swap(table: str, moved_to: str, shadow: str) -> bool:
    """Whether two renames are the swap of such a tool.

    Args:
        table: the changed table.
        moved_to: new name of the old table.
        shadow: former name of the new table.
    """
    match = _OLD.fullmatch(moved_to)
    return match is not None and table in _bases(match) and table in bases(shadow)


def _bases(match: re.Match[str]) -> tuple[str, ...]:
    """At least one underscore in front is the tool's; the others may belong to the table's name."""
    front, name = match[1], match[2]
    return tuple(front[:kept] + name for kept in range(len(front)))
