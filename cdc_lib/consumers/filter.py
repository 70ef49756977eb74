"""The filter of a consumer: checks its patterns, and applies them to tables and columns."""

from __future__ import annotations

from collections.abc import Iterable

from cdc_lib.config.patterns import captured, matches_column, problem, problem_of_column
from cdc_lib.errors import ConfigError
from cdc_lib.model.subscription import Interest
from cdc_lib.model.table_name import TableName


def checked(interest: Interest) -> Interest:
    """Return the interest if it is valid.

    Raises:
        ConfigError: a pattern is not valid.
    """
    tables = [text for text in map(problem, (*interest.tables, *interest.exclude)) if text]
    problems = [*tables, *(text for text in map(problem_of_column, interest.columns) if text)]
    if problems:
        raise ConfigError(
            f"what a consumer asks for is wrong: {'; '.join(problems)}",
            hint='Tables are "shop.orders", "shop.*" or "/^shop_[0-9]+[.]orders$/"; columns are "id" or "*_name".',
        )
    return interest


def wants(interest: Interest, table: str) -> bool:
    """Whether the consumer wants changes of a table."""
    database, name = TableName.parse(table).pair
    if not interest.tables and not interest.exclude:
        return True
    return captured(interest.tables or ("*.*",), interest.exclude, database, name)


def kept(interest: Interest, columns: Iterable[str]) -> tuple[int, ...]:
    """Return the indexes of the columns that the consumer wants."""
    names = list(columns)
    if not interest.columns:
        return tuple(range(len(names)))
    return tuple(
        i for i, name in enumerate(names) if any(matches_column(pattern, name) for pattern in interest.columns)
    )
