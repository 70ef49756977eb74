"""``verify:`` how tables are compared with their source, and when."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import Field, field_validator

from cdc_lib.config.base import Duration, Section, at_most
from cdc_lib.config.patterns import matches, problem
from cdc_lib.config.schedule import problem as problem_of_schedule


class VerifyConfig(Section):
    """Defaults of ``cdc verify`` and of the DAG of the comparison."""

    schedule: str | None = Field(
        default=None, description='cron expression such as "0 4 * * *", or null: no DAG compares automatically'
    )
    tables: tuple[str, ...] = Field(
        default=("*.*",), min_length=1, description='list of patterns such as "shop.*": those of the captured tables'
    )
    chunk_rows: int = Field(
        default=20_000, ge=1, description="rows that one statement at the source goes through, at least 1"
    )
    statement_delay: Annotated[Duration, at_most(timedelta(minutes=1))] = Field(
        default=timedelta(0),
        description="a duration such as 100ms, up to 1m: time between two statements at the source",
    )
    wait: Annotated[Duration, at_most(timedelta(days=1))] = Field(
        default=timedelta(seconds=60),
        description="a duration such as 60s, up to 1d: how long rows in flight are waited for, per table",
    )
    max_rows: int = Field(
        default=10_000, ge=1, le=1_000_000, description="1 to 1000000: rows of one table that are looked at one by one"
    )

    after_merge: int = Field(
        default=0,
        ge=0,
        le=100_000,
        description="0 to 100000: rows of each table that a merge changed and that are compared with the source after it, at "
        "random where there are more; 0 compares none",
    )

    @field_validator("schedule")
    @classmethod
    def _cron(cls, expression: str | None) -> str | None:
        wrong = problem_of_schedule(expression) if expression is not None else None
        if wrong:
            raise ValueError(wrong)
        return expression

    @field_validator("tables")
    @classmethod
    def _patterns(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in patterns:
            if wrong := problem(pattern):
                raise ValueError(wrong)
        return patterns

    def names(self, database: str, table: str) -> bool:
        """Whether a captured table is compared."""
        return any(matches(pattern, database, table) for pattern in self.tables)
