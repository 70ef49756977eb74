"""``reselect:`` rows that a merge re-selects from the source."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from pydantic import Field

from cdc_lib.config.base import Duration, Section
from cdc_lib.config.rules import TablePattern, TableRule

ReselectMode = Literal["auto", "always", "never"]
_MODES = "auto, always or never"
_LAG = "a number and s, m, h or d such as 60s, or null: lag never matters"
_KEYS = "at least 1: keys of one table that one merge looks up"


@dataclass(frozen=True, slots=True)
class ReselectRule:
    """The settings of one table; see :class:`ReselectConfig`."""

    mode: ReselectMode
    when_lag_exceeds: timedelta | None
    max_keys: int


class ReselectTable(TableRule):
    """Other settings for some tables; unset keys are as for all tables."""

    tables: TablePattern = Field(description='a pattern of tables, for example "shop.events"')
    mode: ReselectMode | None = Field(default=None, description=_MODES)
    when_lag_exceeds: Duration | None = Field(default=None, description=_LAG)
    max_keys: int | None = Field(default=None, ge=1, description=_KEYS)


class ReselectConfig(Section):
    """When the merge takes the source's current row, by its primary key, instead of the row from the binlog.

    Args:
        mode: ``auto``: rows that are incomplete in the binlog, and all changed rows if the merge lags; ``always``: all changed rows;
            ``never``: none.
        when_lag_exceeds: auto: the lag above which all changed rows are re-selected; a merge that reaches the end of the binlog that
            its run saw has none.
        max_keys: maximum keys of a table that one merge looks up.
        connections: maximum connections to the source.
        tables: exceptions; the first one that covers a table wins.
    """

    mode: ReselectMode = Field(default="auto", description=_MODES)
    when_lag_exceeds: Duration | None = Field(default=timedelta(seconds=60), description=_LAG)
    max_keys: int = Field(default=1_000_000, ge=1, description=_KEYS)
    connections: int = Field(default=2, ge=1, le=64, description="1 to 64: connections to the source at the same time")
    tables: tuple[ReselectTable, ...] = Field(
        default=(), description="list of tables, mode, when_lag_exceeds, max_keys"
    )

    def rule(self, database: str, table: str) -> ReselectRule:
        """Return the settings of a table."""
        one = next((one for one in self.tables if one.covers(database, table)), None)
        if one is None:
            return ReselectRule(self.mode, self.when_lag_exceeds, self.max_keys)
        lag = one.when_lag_exceeds if "when_lag_exceeds" in one.model_fields_set else self.when_lag_exceeds
        return ReselectRule(one.mode or self.mode, lag, one.max_keys or self.max_keys)

    @property
    def is_on(self) -> bool:
        """Whether any table may be re-selected."""
        return self.mode != "never" or any(one.mode not in (None, "never") for one in self.tables)
