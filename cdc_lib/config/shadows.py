"""The tables that gh-ost and pt-online-schema-change make beside a table while they change it, by their names: pure.

gh-ost names them ``_<table>_gho`` (the new one), ``_<table>_ghc`` (its log) and ``_<table>_del`` (the old one, with a timestamp
before the ending where it was asked for); pt-online-schema-change ``_<table>_new`` and ``_<table>_old``, with more underscores
in front when such a table is there already (``go/base/context.go`` of gh-ost; ``bin/pt-online-schema-change`` of percona-toolkit).
"""

from __future__ import annotations

import re

_ALL = re.compile(r"_+[^_].*_(gho|ghc|del|new|old)", re.DOTALL)
_NEW = re.compile(r"(_+)(.+)_(gho|new)", re.DOTALL)
_OLD = re.compile(r"(_+)(.+?)(_\d{14})?_(del|old)", re.DOTALL)


def is_beside(table: str) -> bool:
    """Whether a table has the name of one that such a tool makes, uses and drops."""
    return _ALL.fullmatch(table) is not None


def bases(shadow: str) -> tuple[str, ...]:
    """Return the names of the tables that a shadow table may take the place of; none when it has no name of one."""
    match = _NEW.fullmatch(shadow)
    return _bases(match) if match is not None else ()


def is_swap(table: str, moved_to: str, shadow: str) -> bool:
    """Whether a table that moved away and the one that took its place are those of such a tool.

    Args:
        table: whose rows they are before and after.
        moved_to: the new name of what was there.
        shadow: the former name of what is there now.
    """
    match = _OLD.fullmatch(moved_to)
    return match is not None and table in _bases(match) and table in bases(shadow)


def _bases(match: re.Match[str]) -> tuple[str, ...]:
    """Leave at least one of the underscores in front to the tool; the others may be the table's own."""
    front, name = match[1], match[2]
    return tuple(front[:kept] + name for kept in range(len(front)))
