"""Applies ``columns:``, ``masks:``, ``routes:``, ``filters:`` and ``modes:`` to one table: pure functions of the file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cdc_lib.model.comments import TableComments
from cdc_lib.model.mask import Mask
from cdc_lib.model.projection import Projection, project, whole, without_reserved
from cdc_lib.model.route import Target
from cdc_lib.model.schema import TableSchema

if TYPE_CHECKING:
    from cdc_lib.config.columns import ColumnsRule, MaskRule
    from cdc_lib.config.source import SourceConfig


@dataclass(frozen=True, slots=True)
class _TableRules:
    """The rules that cover one table.

    A column is stored if every rule of ``columns`` keeps it. The first mask in the file that covers a column wins.
    """

    columns: tuple[ColumnsRule, ...]
    masks: tuple[MaskRule, ...]

    @classmethod
    def of(cls, config: SourceConfig, database: str, table: str) -> _TableRules:
        columns = tuple(rule for rule in config.columns if rule.covers(database, table))
        return cls(columns, tuple(rule for rule in config.masks if rule.covers(database, table)))

    def keeps(self, column: str) -> bool:
        return all(rule.keeps(column) for rule in self.columns)

    def mask_of(self, column: str) -> Mask | None:
        return next((rule.value for rule in self.masks if rule.masks(column)), None)


def is_shaped(config: SourceConfig, database: str, table: str) -> bool:
    """Whether columns of a table are left out or masked."""
    return any(rule.covers(database, table) for rule in config.columns) or is_masked(config, database, table)


def is_masked(config: SourceConfig, database: str, table: str) -> bool:
    """Whether columns of a table are masked; then no message may show its values."""
    return any(rule.covers(database, table) for rule in config.masks)


def stored_as(config: SourceConfig, database: str, table: str, column: str) -> str | None:
    """Return how a column is stored: None if it is not, its mask as text, or an empty text if it is unmasked."""
    rules = _TableRules.of(config, database, table)
    if not rules.keeps(column):
        return None
    mask = rules.mask_of(column)
    return "" if mask is None else repr(mask)


def stored_comments(config: SourceConfig, comments: TableComments) -> TableComments:
    """Return a table's comments without those of columns that are left out."""
    rules = _TableRules.of(config, *comments.table.pair)
    return replace(comments, columns={name: text for name, text in comments.columns.items() if rules.keeps(name)})


def projection_of(config: SourceConfig, schema: TableSchema) -> Projection:
    """Return which columns of a table are stored, and with which masks.

    Raises:
        ConfigError: a rule cannot be applied to this table; see :func:`cdc_lib.model.projection.project`.
    """
    rules = _TableRules.of(config, schema.database, schema.table)
    if not rules.columns and not rules.masks:
        return without_reserved(whole(schema))
    return project(schema, rules.keeps, rules.mask_of, [name for rule in rules.masks for name in rule.required])


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
