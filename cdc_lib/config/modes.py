"""``modes:`` the modes of lake tables."""

from __future__ import annotations

from pydantic import Field

from cdc_lib.config.rules import TableRule
from cdc_lib.model.table_mode import Mode

ALLOWED = "mirror, soft_delete, append or scd2"


class ModeRule(TableRule):
    """The mode of some tables; the first rule that covers a table wins."""

    mode: Mode = Field(description=ALLOWED)
