"""The base of all rules of a source file: the tables that they cover, and the columns that they choose."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, field_validator

from cdc_lib.config.base import Section
from cdc_lib.config.patterns import matches, matches_column, problem, problem_of_column


def _checked_tables(pattern: str) -> str:
    if wrong := problem(pattern):
        raise ValueError(wrong)
    return pattern


def checked_columns(patterns: tuple[str, ...]) -> tuple[str, ...]:
    """Return the column patterns if they are valid.

    Raises:
        ValueError: a pattern is not valid.
    """
    if wrong := [text for text in map(problem_of_column, patterns) if text]:
        raise ValueError("; ".join(wrong))
    return patterns


TablePattern = Annotated[str, AfterValidator(_checked_tables)]
"""A pattern of tables."""


class TableRule(Section):
    """A rule for some tables."""

    tables: TablePattern = Field(description='a pattern of tables, for example "shop.orders"')

    def covers(self, database: str, table: str) -> bool:
        """Whether the rule applies to a table."""
        return matches(self.tables, database, table)


class ColumnChoice(Section):
    """Some columns of a table; an exclusion always wins."""

    include: tuple[str, ...] = Field(default=("*",), min_length=1, description='list of columns, for example ["id"]')
    exclude: tuple[str, ...] = Field(default=(), description='list of columns, for example ["password*"]')

    _columns = field_validator("include", "exclude")(checked_columns)

    def keeps(self, column: str) -> bool:
        """Whether a column is kept."""
        if not any(matches_column(pattern, column) for pattern in self.include):
            return False
        return not any(matches_column(pattern, column) for pattern in self.exclude)
