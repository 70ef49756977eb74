"""``maintenance:`` compaction and cleanup of the lake tables."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import AfterValidator, Field

from cdc_lib.config.base import Duration, Section


def _a_day_at_least(value: timedelta) -> timedelta:
    """Refuse less than a day: files of a running merge are not in a snapshot yet."""
    if value < timedelta(days=1):
        raise ValueError("must be 1d or longer: a merge that still runs has files that no snapshot names yet")
    return value


def _above_zero(value: timedelta) -> timedelta:
    if not value:
        raise ValueError("must be longer than 0; leave it out to maintain all tables")
    return value


class MaintenanceConfig(Section):
    """What the maintenance of lake tables keeps, and what it rewrites.

    Args:
        keep_snapshots_for: how long snapshots of tables, and so cuts, can be read.
        keep_orphans_for: minimum age of an orphan file before it is removed.
        max_deleted_ratio: ratio of a file's rows that may be deleted before the file is rewritten.
        min_small_files: number of small files that are rewritten as one.
        run_for: how long a run begins with tables, those that need it most first; None for all of them.
    """

    keep_snapshots_for: Duration = Field(
        default=timedelta(days=5), description="a number and m, h or d, such as 5d: older snapshots of tables go"
    )
    keep_orphans_for: Annotated[Duration, AfterValidator(_a_day_at_least)] = Field(
        default=timedelta(days=3), description="a number and d, at least 1d: files that no snapshot names stay so long"
    )
    max_deleted_ratio: float = Field(
        default=0.1,
        gt=0,
        le=1,
        description="above 0, to 1: part of a file's rows that is deleted before it is rewritten",
    )
    min_small_files: int = Field(default=5, ge=2, le=1000, description="2 to 1000: so many small files become one")
    run_for: Annotated[Duration, AfterValidator(_above_zero)] | None = Field(
        default=None,
        description="a number and m or h, such as 2h: no table is begun later in a run, and those that need it most are first; "
        "null: all tables",
    )
