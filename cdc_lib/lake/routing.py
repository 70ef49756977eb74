"""Which lake tables a merge writes, and which source tables go into each: pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from cdc_lib.config.shape import targets_of
from cdc_lib.config.source import SourceConfig
from cdc_lib.errors import LakeTableShared
from cdc_lib.lake.modes import one_mode
from cdc_lib.model.lake_table import LakeName
from cdc_lib.model.route import SourceKey, Target
from cdc_lib.model.table_mode import Mode
from cdc_lib.model.table_name import TableName


@dataclass(frozen=True, slots=True)
class RoutedTable:
    """A source table and the lake table that its rows go into.

    Args:
        database: of the source table.
        name: of the source table.
        target: the lake table and the changes to rows on the way there.
    """

    database: str
    name: str
    target: Target

    @property
    def table(self) -> TableName:
        """``database.table`` at the source."""
        return TableName(self.database, self.name)

    def constants(self, source: str) -> dict[str, str]:
        """Return the columns that show the origin of a row, and their values."""
        return self.target.constants(source, self.database, self.name)


@dataclass(frozen=True, slots=True)
class LakeMerge:
    """One lake table and the source tables whose rows go into it, in the order of their names.

    They are merged together, in one commit, so that a lake table has one writer at a time within a job.
    """

    name: LakeName
    routed_tables: tuple[RoutedTable, ...]

    @property
    def tables(self) -> tuple[TableName, ...]:
        """``database.table`` of each source table."""
        return tuple(routed.table for routed in self.routed_tables)

    @property
    def is_routed(self) -> dict[TableName, bool]:
        """The source tables, and whether a route sends each here."""
        return {routed.table: routed.target.routed for routed in self.routed_tables}

    @property
    def mode(self) -> Mode | None:
        """How it keeps rows; None if the source file does not set it. Raises ConfigError if it sets two modes."""
        return one_mode(str(self.name), ((routed.table, routed.target.mode) for routed in self.routed_tables))


def lake_name(config: SourceConfig, target: Target) -> LakeName:
    """Return the full name of a lake table; dots in ``lake.namespace`` separate levels, dots in names do not."""
    namespace = config.lake.namespace_of(config.source, target.database)
    return LakeName(config.lake.catalog, namespace, target.table)


def lake_merges(config: SourceConfig, tables: Iterable[str]) -> tuple[LakeMerge, ...]:
    """Return the lake tables that rows of these source tables go into, in the order of their first source table.

    Args:
        config: the source.
        tables: ``database.table`` of each.
    """
    lakes: dict[LakeName, list[RoutedTable]] = {}
    for table in sorted({TableName.parse(table) for table in tables}):
        database, name = TableName.parse(table).pair
        for target in targets_of(config, database, name):
            lakes.setdefault(lake_name(config, target), []).append(RoutedTable(database, name, target))
    return tuple(LakeMerge(name, tuple(routed)) for name, routed in lakes.items())


@dataclass(frozen=True, slots=True)
class Collision:
    """Source tables that would share a lake table although no route says so.

    Args:
        lake_table: its name, as one of them spells it.
        tables: ``database.table`` of each.
    """

    lake_table: LakeName
    tables: tuple[TableName, ...]

    def error(self, source: str) -> LakeTableShared:
        """Return the error, which names all of them."""
        return LakeTableShared(
            f"{', '.join(self.tables)} would be one lake table, {self.lake_table}",
            hint="Put {database} into lake.namespace, send one of them to another name under routes, or exclude it under "
            "tables. A route sends tables into one lake table on purpose.",
            source=source,
        )


def collisions(config: SourceConfig, tables: Iterable[TableName]) -> Iterator[Collision]:
    """Yield the tables that would share a lake table although no route says so.

    A jdbc catalog joins the levels of a namespace by dots; hive and glue ignore case.
    """
    by_name: dict[LakeName, list[LakeMerge]] = {}
    for lake in lake_merges(config, tables):
        by_name.setdefault(_catalog_spelling(config.lake.type, lake.name), []).append(lake)
    for lakes in by_name.values():
        routed_tables = [routed for lake in lakes for routed in lake.routed_tables]
        if len(lakes) > 1 or sum(_is_meant_alone(config, routed) for routed in routed_tables) > 1:
            yield Collision(lakes[0].name, tuple(routed.table for routed in routed_tables))


def refuse_collisions(config: SourceConfig, tables: Iterable[TableName]) -> None:
    """Refuse tables that would share a lake table although no route says so.

    Raises:
        LakeTableShared: names such tables.
    """
    for one in collisions(config, tables):
        raise one.error(config.source)


def colliding(
    config: SourceConfig, tables: Iterable[TableName], merged: frozenset[TableName], begun: frozenset[TableName]
) -> dict[TableName, LakeTableShared]:
    """Return the tables that would share the lake table of another one, and the error of each.

    The one that the lake has, or whose snapshot is read, keeps its lake table. Of several new ones none gets it.

    Args:
        config: the source.
        tables: ``database.table`` of each.
        merged: those that the lake has.
        begun: those whose snapshots are read.

    Raises:
        LakeTableShared: the lake has several of them: the source file changed, and no table is at fault.
    """
    refused: dict[TableName, LakeTableShared] = {}
    for one in collisions(config, tables):
        first = merged.intersection(one.tables)
        refuse_collisions(config, first)
        if not first:
            first = begun.intersection(one.tables)
            first = frozenset() if any(collisions(config, first)) else first
        refused |= dict.fromkeys(set(one.tables) - first, one.error(config.source))
    return refused


def _is_meant_alone(config: SourceConfig, routed: RoutedTable) -> bool:
    """Whether no route lets other tables share the lake table."""
    if not routed.target.routed:
        return True
    into = (routed.target.database, routed.target.table)
    rules = [rule for rule in config.routes if rule.covers(routed.database, routed.name)]
    return all(rule.separates for rule in rules if rule.lake_table(config.source, routed.database, routed.name) == into)


def _catalog_spelling(catalog: str, name: LakeName) -> LakeName:
    if catalog == "jdbc":
        return replace(name, namespace=(".".join(name.namespace),))
    if catalog in ("hive", "glue"):
        return LakeName(name.catalog, tuple(level.lower() for level in name.namespace), name.name.lower())
    return name


def indistinct(source: str, table: TableName, lakes: Iterable[LakeMerge]) -> dict[LakeName, tuple[str, ...]]:
    """Return the lake tables in which rows of a table cannot be distinguished from those of other tables, with these.

    Args:
        source: its name.
        table: ``database.table``.
        lakes: the lake tables of all captured tables of the source.
    """
    shared = {}
    for lake in lakes:
        this = next((routed for routed in lake.routed_tables if routed.table == table), None)
        if this is None:
            continue
        others = [(source, routed.table) for routed in lake.routed_tables if routed.table != table]
        if same := same_constants(source, this, others):
            shared[lake.name] = tuple(name for _, name in same)
    return shared


def indistinct_tables(source: str, lakes: Iterable[LakeMerge]) -> frozenset[TableName]:
    """Return the tables of which :func:`indistinct` names a lake table; many tables are visited once, and not once for each of them.

    Args:
        source: its name.
        lakes: the lake tables of all captured tables of the source.
    """
    found: set[TableName] = set()
    for lake in lakes:
        named = [(routed.table, routed) for routed in lake.routed_tables]
        tables = {table for table, _ in named}
        if len(tables) == 1:
            continue
        of_keys: dict[tuple[SourceKey, ...], list[tuple[TableName, RoutedTable]]] = {}
        for table, routed in named:
            of_keys.setdefault(routed.target.keys, []).append((table, routed))
        for alike in of_keys.values():
            target = alike[0][1].target
            rows = {table: tuple(target.constants(source, *table.pair).items()) for table in tables}
            shared = Counter(rows.values())
            found.update(table for table, _ in alike if shared[rows[table]] > 1)
    return frozenset(found)


def same_constants(source: str, routed: RoutedTable, others: Iterable[tuple[str, str]]) -> Sequence[tuple[str, str]]:
    """Return the other tables, as (source, table), whose rows have the same constants in a lake table."""
    expected = routed.constants(source)

    def constants(of: str, table: str) -> dict[str, str]:
        # A marker without a table belongs to a table that no route named.
        database, name = TableName.parse(table).pair if table else ("", "")
        return routed.target.constants(of, database, name)

    return [(of, table) for of, table in others if constants(of, table) == expected]
