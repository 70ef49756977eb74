"""Which lake tables a merge writes, and which source tables go into each: pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cdc_lib.config.shape import targets_of
from cdc_lib.config.source import SourceConfig
from cdc_lib.merge.modes import one_mode
from cdc_lib.model.lake import LakeName
from cdc_lib.model.mode import Mode
from cdc_lib.model.route import Target


@dataclass(frozen=True, slots=True)
class Share:
    """What one source table gives to a lake table.

    Args:
        database: of the source table.
        name: of the source table.
        target: the lake table and what rows get on their way there.
    """

    database: str
    name: str
    target: Target

    @property
    def table(self) -> str:
        """``database.table`` at the source."""
        return f"{self.database}.{self.name}"

    def constants(self, source: str) -> dict[str, str]:
        """Return the columns that say where a row comes from, and their values."""
        return self.target.constants(source, self.database, self.name)


@dataclass(frozen=True, slots=True)
class LakeMerge:
    """One lake table and the source tables whose rows go into it, in the order of their names.

    They are merged together, in one commit, so that a lake table has one writer at a time within a job.
    """

    name: LakeName
    shares: tuple[Share, ...]

    @property
    def tables(self) -> tuple[str, ...]:
        """``database.table`` of each source table."""
        return tuple(share.table for share in self.shares)

    @property
    def mode(self) -> Mode | None:
        """How it keeps rows; None where the source file does not say it. Raises ConfigError where it says two."""
        return one_mode(str(self.name), ((share.table, share.target.mode) for share in self.shares))


def lake_name(config: SourceConfig, target: Target) -> LakeName:
    """Return the full name of a lake table; dots in ``lake.namespace`` divide its levels."""
    namespace = config.lake.namespace_of(config.source, target.database)
    return LakeName(config.lake.catalog, tuple(namespace.split(".")), target.table)


def lake_merges(config: SourceConfig, tables: Iterable[str]) -> tuple[LakeMerge, ...]:
    """Return the lake tables that rows of these source tables go into, in the order of their first source table.

    Args:
        config: the source.
        tables: ``database.table`` of each.
    """
    found: dict[LakeName, list[Share]] = {}
    for table in sorted(set(tables)):
        database, _, name = table.partition(".")
        for target in targets_of(config, database, name):
            found.setdefault(lake_name(config, target), []).append(Share(database, name, target))
    return tuple(LakeMerge(name, tuple(shares)) for name, shares in found.items())


def indistinct(config: SourceConfig, table: str, captured: Iterable[str]) -> dict[LakeName, tuple[str, ...]]:
    """Return the lake tables in which rows of a table cannot be told from those of others, and these others.

    Args:
        config: the source.
        table: ``database.table``.
        captured: all tables of the source.
    """
    found = {}
    for lake in lake_merges(config, {table, *captured}):
        mine = next((share for share in lake.shares if share.table == table), None)
        if mine is None:
            continue
        others = [(config.source, share.table) for share in lake.shares if share.table != table]
        if same := alike(config.source, mine, others):
            found[lake.name] = tuple(name for _, name in same)
    return found


def alike(source: str, share: Share, others: Iterable[tuple[str, str]]) -> Sequence[tuple[str, str]]:
    """Return those of other tables, given with their sources, whose rows have the same constants in a lake table."""
    mine = share.constants(source)

    def constants(of: str, table: str) -> dict[str, str]:
        database, _, name = table.partition(".")
        return share.target.constants(of, database, name)

    return [(of, table) for of, table in others if constants(of, table) == mine]
