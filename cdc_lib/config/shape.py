"""Applies ``columns:``, ``masks:``, ``routes:``, ``filters:`` and ``modes:`` to one table: pure functions of the file."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cdc_lib.config.patterns import is_exact, matches_column
from cdc_lib.errors import ConfigError
from cdc_lib.model.column_types import BOOLEAN
from cdc_lib.model.comments import TableComments
from cdc_lib.model.mask import Mask
from cdc_lib.model.projection import Projection, project, whole, with_distinct_names
from cdc_lib.model.route import Target
from cdc_lib.model.schema import Column, TableSchema

if TYPE_CHECKING:
    from cdc_lib.config.booleans import BooleanRule
    from cdc_lib.config.columns import ColumnsRule, MaskRule
    from cdc_lib.config.source import SourceConfig


@dataclass(frozen=True, slots=True)
class _TableRules:
    """The rules that cover one table.

    A column is stored if every rule of ``columns`` keeps it. The first mask in the file that covers a column wins.
    """

    columns: tuple[ColumnsRule, ...]
    masks: tuple[MaskRule, ...]
    booleans: tuple[BooleanRule, ...]

    @classmethod
    def of(cls, config: SourceConfig, database: str, table: str) -> _TableRules:
        columns = tuple(rule for rule in config.columns if rule.covers(database, table))
        masks = tuple(rule for rule in config.masks if rule.covers(database, table))
        return cls(columns, masks, tuple(rule for rule in config.booleans if rule.covers(database, table)))

    def keeps(self, column: str) -> bool:
        return all(rule.keeps(column) for rule in self.columns)

    def mask_of(self, column: str) -> Mask | None:
        return next((rule.value for rule in self.masks if rule.masks(column)), None)

    def hides(self, column: str) -> bool:
        """Whether no value of a column is stored as it is."""
        return not self.keeps(column) or self.mask_of(column) is not None

    @property
    def hiding(self) -> set[str]:
        """The patterns of columns that are masked or left out; ``* but …`` where the file lists those that are kept."""
        listed = {f"* but {', '.join(rule.include)}" for rule in self.columns if "*" not in rule.include}
        return listed.union(*(rule.columns for rule in self.masks), *(rule.exclude for rule in self.columns))

    def with_booleans(self, schema: TableSchema) -> TableSchema:
        """Return a schema in which unmasked columns are booleans as the rules say."""
        return replace(schema, columns=tuple(map(self._as_stored, schema.columns))) if self.booleans else schema

    def _as_stored(self, column: Column) -> Column:
        rule = next((one for one in self.booleans if one.takes(column)), None)
        if rule is None or self.mask_of(column.name) is not None:
            return column
        return replace(column, type=replace(column.type, as_boolean=rule.other_values))


def is_mapped(config: SourceConfig, database: str, table: str) -> bool:
    """Whether columns of a table are left out, masked, or stored with another type."""
    return is_shaped(config, database, table) or any(rule.covers(database, table) for rule in config.booleans)


def is_shaped(config: SourceConfig, database: str, table: str) -> bool:
    """Whether columns of a table are left out or masked."""
    return any(rule.covers(database, table) for rule in config.columns) or is_masked(config, database, table)


def is_masked(config: SourceConfig, database: str, table: str) -> bool:
    """Whether columns of a table are masked; then no message may show its values."""
    return any(rule.covers(database, table) for rule in config.masks)


def is_hidden(config: SourceConfig, database: str, table: str, column: str) -> bool:
    """Whether no value of a column is stored as it is."""
    return _TableRules.of(config, database, table).hides(column)


def stored_as(config: SourceConfig, database: str, table: str, column: str) -> str | None:
    """Return how a column is stored: None if it is not, its mask as text, BOOLEAN, or an empty text if it is as it is.

    Without its type, a column with the name of a boolean counts as one.
    """
    rules = _TableRules.of(config, database, table)
    if not rules.keeps(column):
        return None
    mask = rules.mask_of(column)
    if mask is not None:
        return repr(mask)
    return BOOLEAN if any(rule.names(column) for rule in rules.booleans) else ""


def masks_column(config: SourceConfig, database: str, table: str, column: str) -> bool:
    """Whether a column is stored, and has a mask."""
    rules = _TableRules.of(config, database, table)
    return rules.keeps(column) and rules.mask_of(column) is not None


def has_every_rule(config: SourceConfig, database: str, table: str) -> bool:
    """Whether all rules about columns cover a table: then it hides what any table hides."""
    return all(rule.covers(database, table) for rule in (*config.masks, *config.columns))


def shown_under(config: SourceConfig, origin: tuple[str, str], name: tuple[str, str]) -> str:
    """Return a column of a table, or a pattern, that is masked or left out, and would be stored as it is under another name.

    It follows from the rules alone: the same pattern covers it, or one of all columns.

    Args:
        config: of the source.
        origin: the table.
        name: under which its rows would be stored.

    Returns:
        An empty text if there is none.
    """
    if origin == name:
        return ""
    before, after = _TableRules.of(config, *origin), _TableRules.of(config, *name)
    if set(before.columns) <= set(after.columns) and set(before.masks) <= set(after.masks):
        return ""
    covered = after.hiding
    open_ = (one for one in sorted(before.hiding) if not {one, "*"} & covered)
    return next((one for one in open_ if not is_exact(one) or (before.hides(one) and not after.hides(one))), "")


def hidden_elsewhere(config: SourceConfig, columns: Collection[str]) -> dict[str, str]:
    """Return those of the columns that some tables mask or leave out by name, each with the pattern of these tables."""
    rules = [(rule.tables, rule.columns) for rule in config.masks] + [
        (rule.tables, rule.exclude) for rule in config.columns
    ]
    return {
        column: tables
        for tables, patterns in reversed(rules)
        for column in columns
        if any(matches_column(pattern, column) for pattern in patterns)
    }


def stored_comments(config: SourceConfig, comments: TableComments) -> TableComments:
    """Return a table's comments without those of columns that are masked or left out: a comment may show values."""
    rules = _TableRules.of(config, *comments.table.pair)
    return replace(comments, columns={name: text for name, text in comments.columns.items() if not rules.hides(name)})


def projection_of(config: SourceConfig, schema: TableSchema) -> Projection:
    """Return which columns of a table are stored, and with which masks.

    Raises:
        ConfigError: a rule cannot be applied to this table; see :func:`cdc_lib.model.projection.project`.
    """
    rules = _TableRules.of(config, schema.database, schema.table)
    schema = rules.with_booleans(schema)
    _refuse_keys(schema)
    if not rules.columns and not rules.masks:
        return with_distinct_names(whole(schema))
    return project(schema, rules.keeps, rules.mask_of, [name for rule in rules.masks for name in rule.required])


def _refuse_keys(schema: TableSchema) -> None:
    for column in schema.columns:
        if column.type.as_boolean is not None and column.name in schema.primary_key:
            raise ConfigError(
                f"column {column.name} belongs to the primary key and cannot be a boolean",
                hint="Name the other columns under booleans in the source file.",
                table=schema.name,
                column=column.name,
            )
        if column.type.is_short_year and column.name in schema.primary_key:
            raise ConfigError(
                f"column {column.name} belongs to the primary key, and is YEAR(2): years of two centuries look like one key",
                hint=f"ALTER TABLE {schema.name} MODIFY {column.name} YEAR(4) NOT NULL at the source, or exclude the table.",
                table=schema.name,
                column=column.name,
            )


def targets_of(config: SourceConfig, database: str, table: str) -> tuple[Target, ...]:
    """Return the lake tables of a source table: those of its routes, else the one of the same name."""
    where = tuple(rule.where for rule in config.filters if rule.covers(database, table))
    mode = next((rule.mode for rule in config.modes if rule.covers(database, table)), None)
    routes = [rule for rule in config.routes if rule.covers(database, table)]
    if not routes:
        return (Target(database, table, where=where, mode=mode),)
    found: dict[tuple[str, str], Target] = {}
    for rule in routes:
        name = rule.lake_table(config.source, database, table)
        own = (*where, rule.where) if rule.where is not None else where
        found.setdefault(name, Target(*name, True, rule.source_keys, own, rule.columns.keeps, rule.mode or mode))
    return tuple(found.values())
