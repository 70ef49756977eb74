"""Which lake tables a merge writes, and which source tables go into each: pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from cdc_lib.config.shape import targets_of
from cdc_lib.config.source import SourceConfig
from cdc_lib.errors import ConfigError
from cdc_lib.lake.modes import one_mode
from cdc_lib.model.lake_table import LakeName
from cdc_lib.model.route import Target
from cdc_lib.model.table_mode import Mode
from cdc_lib.model.table_name import TableName


@dataclass(frozen=True, slots=True)
class RoutedTable:
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
    def table(self) -> TableName:
        """``database.table`` at the source."""
        return TableName(self.database, self.name)

    def constants(self, source: str) -> dict[str, str]:
        """Return the columns that say where a row comes from, and their values."""
        return self.target.constants(source, self.database, self.name)


@dataclass(frozen=True, slots=True)
class LakeMerge:
    """One lake table and the source tables whose rows go into it, in the order of their names.

    They are merged together, in one commit, so that a lake table has one writer at a time within a job.
    """

    name: LakeName
    shares: tuple[RoutedTable, ...]

    @property
    def tables(self) -> tuple[TableName, ...]:
        """``database.table`` of each source table."""
        return tuple(share.table for share in self.shares)

    @property
    def mode(self) -> Mode | None:
        """How it keeps rows; None where the source file does not say it. Raises ConfigError where it says two."""
        return one_mode(str(self.name), ((share.table, share.target.mode) for share in self.shares))


def lake_name(config: SourceConfig, target: Target) -> LakeName:
    """Return the full name of a lake table; dots in ``lake.namespace`` divide its levels, those in names do not."""
    namespace = config.lake.namespace_of(config.source, target.database)
    return LakeName(config.lake.catalog, namespace, target.table)


def lake_merges(config: SourceConfig, tables: Iterable[str]) -> tuple[LakeMerge, ...]:
    """Return the lake tables that rows of these source tables go into, in the order of their first source table.

    Args:
        config: the source.
        tables: ``database.table`` of each.
    """
    found: dict[LakeName, list[RoutedTable]] = {}
    for table in sorted({TableName.parse(table) for table in tables}):
        database, name = TableName.parse(table).pair
        for target in targets_of(config, database, name):
            found.setdefault(lake_name(config, target), []).append(RoutedTable(database, name, target))
    return tuple(LakeMerge(name, tuple(shares)) for name, shares in found.items())


def refuse_collisions(config: SourceConfig, tables: Iterable[tuple[str, str]]) -> None:
    """Refuse source tables that would become one lake table though no route sends them there together.

    A jdbc catalog joins the levels of a namespace by dots; hive and glue take capital letters for small ones.

    Raises:
        ConfigError: there are such tables; names them.
    """
    found: dict[LakeName, list[LakeMerge]] = {}
    for lake in lake_merges(config, (TableName(*table) for table in tables)):
        found.setdefault(_as_the_catalog_has_it(config.lake.type, lake.name), []).append(lake)
    for lakes in found.values():
        alone = [share.table for lake in lakes for share in lake.shares if _is_meant_alone(config, share)]
        if len(lakes) > 1 or len(alone) > 1:
            shown = ", ".join(share.table for lake in lakes for share in lake.shares)
            raise ConfigError(
                f"{shown} would be one lake table, {lakes[0].name}",
                hint="Put {database} into lake.namespace, send one of them to another name under routes, or exclude it under "
                "tables. A route sends tables into one lake table on purpose.",
                source=config.source,
            )


def _is_meant_alone(config: SourceConfig, share: RoutedTable) -> bool:
    """Whether nothing in the source file says that other tables may share the lake table."""
    if not share.target.routed:
        return True
    into = (share.target.database, share.target.table)
    rules = [rule for rule in config.routes if rule.covers(share.database, share.name)]
    return all(rule.separates for rule in rules if rule.lake_table(config.source, share.database, share.name) == into)


def _as_the_catalog_has_it(catalog: str, name: LakeName) -> LakeName:
    if catalog == "jdbc":
        return replace(name, namespace=(".".join(name.namespace),))
    if catalog in ("hive", "glue"):
        return LakeName(name.catalog, tuple(level.lower() for level in name.namespace), name.name.lower())
    return name


def indistinct(source: str, table: TableName, lakes: Iterable[LakeMerge]) -> dict[LakeName, tuple[str, ...]]:
    """Return the lake tables in which rows of a table cannot be distinguished from those of others, and these others.

    Args:
        source: its name.
        table: ``database.table``.
        lakes: the lake tables of all captured tables of the source.
    """
    found = {}
    for lake in lakes:
        mine = next((share for share in lake.shares if share.table == table), None)
        if mine is None:
            continue
        others = [(source, share.table) for share in lake.shares if share.table != table]
        if same := alike(source, mine, others):
            found[lake.name] = tuple(name for _, name in same)
    return found


def alike(source: str, share: RoutedTable, others: Iterable[tuple[str, str]]) -> Sequence[tuple[str, str]]:
    """Return those of other tables, given with their sources, whose rows have the same constants in a lake table."""
    mine = share.constants(source)

    def constants(of: str, table: str) -> dict[str, str]:
        # A marker of before there were routes does not name its table.
        database, name = TableName.parse(table).pair if table else ("", "")
        return share.target.constants(of, database, name)

    return [(of, table) for of, table in others if constants(of, table) == mine]
