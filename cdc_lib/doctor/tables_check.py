"""Finds patterns of the source file that match no table, and tables without a key or without rows of their own. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from cdc_lib.config import TablesConfig
from cdc_lib.config.patterns import database_of, is_exact
from cdc_lib.model.finding import Finding

_SHOWN = 5
ROWS_ELSEWHERE = ("MRG_MYISAM", "FEDERATED", "CONNECT", "SPIDER", "BLACKHOLE")
"""Engines whose tables show rows that other tables, files or servers have, or keep none; as both servers spell them, in capitals."""


def pattern_findings(config: TablesConfig, tables: Sequence[tuple[str, str]]) -> Iterator[Finding]:
    """Yield a finding for each pattern without tables: an error for an exact name, a warning for others.

    Args:
        config: ``tables:`` of the source file.
        tables: every table that the user can see at the source.
    """
    for pattern in config.unmatched(tables):
        database = database_of(pattern)
        see = f"GRANT SELECT ON `{database}`.* TO the user" if database else "GRANT SELECT on them"
        hint = f"Correct it, or make the table; where it is there: {see}."
        if is_exact(pattern):
            yield Finding("error", f"the table {pattern} under tables.include does not exist, or cannot be seen", hint)
        else:
            yield Finding("warning", f"the pattern {pattern} under tables.include names no table", hint)


def key_findings(without: Collection[str], appended: Collection[str]) -> Iterator[Finding]:
    """Return findings for tables without a key.

    Args:
        without: names of captured tables without a primary or usable unique key.
        appended: those of them with ``mode: append`` in the source file.
    """
    names = sorted(set(without) - set(appended))
    if names:
        yield Finding(
            "warning",
            f"without a key the lake keeps the list of changes, not the rows: {_shown(names)}",
            f"ALTER TABLE {names[0]} ADD PRIMARY KEY (...); or say mode: append for it under modes.",
        )


def engine_findings(engines: Mapping[str, str]) -> Iterator[Finding]:
    """Return a finding for tables whose rows are not their own.

    Args:
        engines: of captured tables with one of :data:`ROWS_ELSEWHERE`, by name.
    """
    if engines:
        named = [f"{table} ({engine})" for table, engine in sorted(engines.items())]
        yield Finding(
            "warning",
            "the binlog does not show all changes of tables whose engine keeps no rows of their own, because other tables, files "
            f"or servers have them, or nobody: {_shown(named)}",
            "Name them under tables.exclude in the source file, and capture the tables that have the rows.",
        )


def _shown(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
