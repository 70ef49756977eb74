"""``modes:`` how lake tables keep the rows of their source tables."""

from __future__ import annotations

from pydantic import Field

from cdc_lib.config.rules import TableRule
from cdc_lib.model.table_mode import Mode

ALLOWED = "mirror, soft_delete, append or scd2"


class ModeRule(TableRule):
    """The mode of some tables; of several rules for a table the first one counts."""

    mode: Mode = Field(description=ALLOWED)
