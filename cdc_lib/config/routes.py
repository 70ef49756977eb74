"""``routes:`` and ``filters:`` which rows go into which lake tables."""

from __future__ import annotations

import string
from typing import Literal

from pydantic import Field, field_validator

from cdc_lib.config.brackets import unended
from cdc_lib.config.modes import ALLOWED
from cdc_lib.config.rules import ColumnChoice, TablePattern, TableRule
from cdc_lib.model.route import SourceKey
from cdc_lib.model.table_mode import Mode

_PLACEHOLDERS = frozenset({"source", "database", "table"})


def checked_predicate(predicate: str) -> str:
    """Return a predicate without surrounding blanks; `cdc doctor` checks more, and Spark parses it finally.

    Raises:
        ValueError: it is empty, has unbalanced brackets or quotes, or is more than one predicate.
    """
    stripped = predicate.strip()
    if not stripped:
        raise ValueError("a predicate is Spark SQL over the row's columns, for example \"status <> 'test'\"")
    if stripped.lower().startswith("where "):
        raise ValueError("a predicate is written without WHERE")
    if wrong := unended(stripped):
        raise ValueError(f"is not one predicate of Spark SQL: {wrong}")
    return stripped


class RouteColumns(ColumnChoice):
    """Stored columns that go into one lake table."""

    exclude: tuple[str, ...] = Field(default=(), description='list of columns, for example ["note*"]')


class RouteRule(TableRule):
    """Tables whose rows go into one lake table; a table with several routes goes into all of them."""

    tables: TablePattern = Field(description='a pattern of tables, for example "shop_*.orders"')
    into: str = Field(description="database.table in the lake; {database}, {table} and {source} are filled in")
    keys: tuple[Literal["server", "schema", "table"], ...] = Field(
        default=(), description="list of server, schema and table: added to the key as _source_server and so on"
    )
    columns: RouteColumns = Field(default=RouteColumns(), description="include and exclude: columns that go there")
    where: str | None = Field(default=None, description="Spark SQL over the row's columns")
    mode: Mode | None = Field(default=None, description=f"{ALLOWED}: of this lake table; wins over modes")

    @field_validator("into")
    @classmethod
    def _into(cls, into: str) -> str:
        try:
            placeholders = {name for _, name, _, _ in string.Formatter().parse(into) if name is not None}
            filled = into.format(source="s", database="d", table="t") if placeholders <= _PLACEHOLDERS else ""
        except (ValueError, IndexError) as error:
            raise ValueError(f"not a name: {error}") from None
        database, _, table = filled.partition(".")
        if not (database and table) or filled != filled.strip() or "`" in filled or "/" in filled or "*" in filled:
            raise ValueError("a lake table is database.table; {database}, {table} and {source} may be used in it")
        return into

    @field_validator("where")
    @classmethod
    def _where(cls, where: str | None) -> str | None:
        return None if where is None else checked_predicate(where)

    def lake_table(self, source: str, database: str, table: str) -> tuple[str, str]:
        """Return database and name of the lake table of one source table."""
        lake_database, name = (part.format(source=source, database=database, table=table) for part in self.into_parts)
        return lake_database, name

    @property
    def separates(self) -> bool:
        """Whether each covered table gets its own lake table."""
        return {"database", "table"} <= {name for _, name, _, _ in string.Formatter().parse(self.into)}

    @property
    def into_parts(self) -> tuple[str, str]:
        """The templates of database and name, split at the first dot; dots in names that are filled in do not count."""
        database, _, name = self.into.partition(".")
        return database, name

    @property
    def source_keys(self) -> tuple[SourceKey, ...]:
        """The keys, without duplicates."""
        return tuple(dict.fromkeys(self.keys))


class FilterRule(TableRule):
    """Rows of some tables that the lake keeps; a row that no longer matches is deleted."""

    where: str = Field(description="Spark SQL over the row's columns, for example \"status <> 'test'\"")

    _where = field_validator("where")(checked_predicate)
