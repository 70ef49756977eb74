"""``tables:`` which tables are captured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pydantic import Field, field_validator

from cdc_lib.config.base import Section
from cdc_lib.config.patterns import captured, is_exact, matches, problem, reaches, unmatched
from cdc_lib.config.shadows import bases, is_beside
from cdc_lib.model.table_name import EVERY_TABLE


class TablesConfig(Section):
    """Patterns of ``database.table``; see :mod:`cdc_lib.config.patterns`. A bare list in the file means ``include``."""

    include: tuple[str, ...] = Field(
        min_length=1, description='list of patterns such as "shop.*" or "/^shop_[0-9]+[.]orders$/"'
    )
    exclude: tuple[str, ...] = Field(default=(), description='list of patterns, for example ["shop.tmp_*"]')
    online_schema_change: bool = Field(
        default=True,
        description="true or false: whether the tables that gh-ost and pt-online-schema-change make are left out, and their "
        "swaps followed as the ALTER that they are",
    )

    @field_validator("include", "exclude")
    @classmethod
    def _patterns(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        problems = [text for text in map(problem, patterns) if text]
        if problems:
            raise ValueError("; ".join(problems))
        return patterns

    def captures(self, database: str, table: str) -> bool:
        """Whether this table is captured; with EVERY_TABLE, whether any table of the database may be."""
        if table == EVERY_TABLE:
            return reaches(self.include, database)
        if self.leaves_to_tools(database, table):
            return False
        return captured(self.include, self.exclude, database, table)

    def leaves_to_tools(self, database: str, table: str) -> bool:
        """Whether a table matches the patterns but is left out, because its name is that of a tool's table."""
        if not (self.online_schema_change and is_beside(table)):
            return False
        named = any(is_exact(one) and matches(one, database, table) for one in self.include)
        return not named and captured(self.include, self.exclude, database, table)

    def select(self, tables: Iterable[tuple[str, str]]) -> Sequence[tuple[str, str]]:
        """Return the captured tables of ``(database, table)`` pairs."""
        return [(database, table) for database, table in tables if self.captures(database, table)]

    def unmatched(self, tables: Iterable[tuple[str, str]]) -> list[str]:
        """Return the patterns under ``include`` that match no table of a server."""
        return unmatched(self.include, tables)

    def may_become_captured(self, database: str, table: str) -> bool:
        """Whether a table has the name of a shadow table that will replace a captured table."""
        return self.online_schema_change and any(self.captures(database, base) for base in bases(table))
