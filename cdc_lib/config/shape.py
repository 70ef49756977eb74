"""The decisions of ``columns:``, ``masks:``, ``routes:``, ``filters:`` and ``modes:`` for one table: pure functions of the file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdc_lib.model.mask import Mask
from cdc_lib.model.projection import Projection, project, whole
from cdc_lib.model.route import Target
from cdc_lib.model.schema import TableSchema

if TYPE_CHECKING:
    from cdc_lib.config.source import SourceConfig


def is_shaped(config: SourceConfig, database: str, table: str) -> bool:
    """Whether columns of a table are left out or masked."""
    return any(rule.covers(database, table) for rule in config.columns) or is_masked(config, database, table)


def is_masked(config: SourceConfig, database: str, table: str) -> bool:
    """Whether columns of a table are masked, so that no message may show a value of it."""
    return any(rule.covers(database, table) for rule in config.masks)


def stored_as(config: SourceConfig, database: str, table: str, column: str) -> str | None:
    """Return how a column of a table is stored: None for not at all, its mask as text, or an empty text for as it is."""
    if not all(rule.keeps(column) for rule in config.columns if rule.covers(database, table)):
        return None
    masks = (rule.value for rule in config.masks if rule.covers(database, table) and rule.masks(column))
    mask = next(masks, None)
    return "" if mask is None else repr(mask)


def projection_of(config: SourceConfig, schema: TableSchema) -> Projection:
    """Return which columns of a table are stored, and behind which masks.

    A column is stored when every rule of ``columns`` that covers the table keeps it. Of several masks for a column the
    first one in the file counts.

    Raises:
        ConfigError: a rule cannot be followed on this table; see :func:`cdc_lib.model.projection.project`.
    """
    table = (schema.database, schema.table)
    columns = [rule for rule in config.columns if rule.covers(*table)]
    masks = [rule for rule in config.masks if rule.covers(*table)]
    if not columns and not masks:
        return whole(schema)

    def keeps(column: str) -> bool:
        return all(rule.keeps(column) for rule in columns)

    def mask_of(column: str) -> Mask | None:
        return next((rule.value for rule in masks if rule.masks(column)), None)

    return project(schema, keeps, mask_of, [name for rule in masks for name in rule.required])


def targets_of(config: SourceConfig, database: str, table: str) -> tuple[Target, ...]:
    """Return the lake tables of a source table: those of its routes, else the one of its own name."""
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
