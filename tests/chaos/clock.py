"""A wrong wall clock: by hours, and differently in every process."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, tzinfo
from types import ModuleType
from typing import Any, Self

import cdc_lib.drain.window
import cdc_lib.merge.planner
import cdc_lib.plan.start
import cdc_lib.requests
import cdc_lib.steps.ack
import cdc_lib.steps.drain
import cdc_lib.steps.plan
import spark_jobs.merging.faulty_tables

CLOCKED = (
    cdc_lib.drain.window,
    cdc_lib.merge.planner,
    cdc_lib.requests,
    cdc_lib.steps.ack,
    cdc_lib.steps.drain,
    cdc_lib.steps.plan,
    cdc_lib.plan.start,
    spark_jobs.merging.faulty_tables,
)
"""The modules that read the clock."""


def jump(seconds: int, put: Callable[[ModuleType, str, Any], None] = setattr) -> None:
    """Shift this process's clock.

    Args:
        seconds: shift, positive or negative.
        put: sets an attribute of a module; a test passes pytest's ``setattr``, which restores the clock.
    """
    shift = timedelta(seconds=seconds)

    class Wrong(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            right = datetime.now(tz) + shift
            return cls(*right.timetuple()[:6], right.microsecond, right.tzinfo)

    for module in CLOCKED:
        put(module, "datetime", Wrong)
