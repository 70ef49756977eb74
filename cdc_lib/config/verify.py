"""``verify:`` how tables are compared with their source, and when."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from cdc_lib.config.base import Duration, Section, at_most
from cdc_lib.config.patterns import matches, problem
from cdc_lib.config.schedule import longest_gap
from cdc_lib.config.schedule import problem as problem_of_schedule

_TIME = r"([01]\d|2[0-3]):[0-5]\d"
_HOURS = re.compile(rf"{_TIME}-{_TIME}")


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

    cover_every: Duration | None = Field(
        default=None,
        description="a duration such as 7d, or null: each key range of each table is compared within it, a part in each "
        "run; null compares none",
    )
    cover_schedule: str = Field(
        default="37 * * * *",
        description="cron expression: when the DAG compares the ranges that are due; with cover_every",
    )
    cover_hours: str | None = Field(
        default=None,
        description='hours of the day in UTC such as "22:00-06:00", or null for the whole day: ranges are compared then only',
    )
    on_difference: Literal["report", "fail"] = Field(
        default="report",
        description="report or fail: what the task that compares ranges does when rows are wrong; both store and log them",
    )

    daily_windows: int = Field(
        default=0,
        ge=0,
        le=1000,
        description="0 to 1000: drained windows of each day that the maintenance DAG decodes again with mysql-replication and compares with "
        "their batches, at random; 0 compares none",
    )

    @model_validator(mode="after")
    def _often_enough(self) -> VerifyConfig:
        gap = longest_gap(self.cover_schedule)
        if self.cover_every is not None and (gap is None or self.cover_every < 2 * gap):
            raise ValueError("cover_every must be at least twice the longest time between two runs of cover_schedule")
        if self.cover_every is not None and self.cover_hours is not None and self.cover_every < timedelta(days=2):
            raise ValueError("cover_every must be at least 2d with cover_hours")
        return self

    @property
    def cover_gap(self) -> timedelta:
        """The longest time between two runs that compare ranges."""
        return longest_gap(self.cover_schedule) or timedelta(days=366)

    @field_validator("cover_hours")
    @classmethod
    def _hours(cls, text: str | None) -> str | None:
        if text is not None and not _HOURS.fullmatch(text):
            raise ValueError("two times of the day in UTC, such as 22:00-06:00")
        return text

    @field_validator("schedule", "cover_schedule")
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
