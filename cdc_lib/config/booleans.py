"""``booleans:`` TINYINT columns that the lake holds as booleans."""

from __future__ import annotations

from pydantic import Field, field_validator

from cdc_lib.config.patterns import matches_column
from cdc_lib.config.rules import TableRule, checked_columns
from cdc_lib.model.column_types import AsBoolean
from cdc_lib.model.schema import Column

ALLOWED = "error or as_true"


class BooleanRule(TableRule):
    """TINYINT columns of some tables that are booleans in the lake; the first rule that covers a column wins.

    Args:
        columns: their names, also those of MySQL's BOOL and BOOLEAN. The binlog does not say TINYINT(1), so TINYINT columns of
            every display width count; a column of another type stays as it is.
        other_values: a value other than 0 and 1 is an error, or is true, as for MySQL's IF and for Debezium.
    """

    columns: tuple[str, ...] = Field(min_length=1, description='list of columns, for example ["is_*", "active"]')
    other_values: AsBoolean = Field(default="error", description=ALLOWED)

    _columns = field_validator("columns")(checked_columns)

    def names(self, column: str) -> bool:
        """Whether the rule covers a column, by its name, of a covered table."""
        return any(matches_column(pattern, column) for pattern in self.columns)

    def takes(self, column: Column) -> bool:
        """Whether the rule makes a boolean of a column of a covered table."""
        return column.type.may_be_boolean and self.names(column.name)
