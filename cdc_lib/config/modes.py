"""``modes:`` how lake tables keep the rows of their source tables."""

from __future__ import annotations

from pydantic import Field, field_validator

from cdc_lib.config.base import Section
from cdc_lib.config.columns import checked_tables
from cdc_lib.config.patterns import matches
from cdc_lib.model.table_mode import Mode

ALLOWED = "mirror, soft_delete, append or history"


class ModeRule(Section):
    """The mode of some tables; of several rules for a table the first one counts."""

    tables: str = Field(description='a pattern of tables, for example "shop.orders"')
    mode: Mode = Field(description=ALLOWED)

    _tables = field_validator("tables")(checked_tables)

    def covers(self, database: str, table: str) -> bool:
        """Whether the rule is for a table."""
        return matches(self.tables, database, table)
