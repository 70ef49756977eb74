"""Which tables of a merge are re-selected completely, because the merge lags: pure, and the same for each attempt at a plan.

A merge lags if it ends before the end of the binlog that its run saw. Its lag is how long before that look its last change was
committed. The time that a run waits for its schedule or for Spark is no lag: there was nothing to read then, or nothing was left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from cdc_lib.config.reselect import ReselectRule
from cdc_lib.merge.plan import StoredBatch
from cdc_lib.model.merge_plan import MergePlan
from cdc_lib.model.position import Point


def lag_of(plan: MergePlan, batches: Iterable[StoredBatch]) -> timedelta | None:
    """Return the lag of a merge; zero if it reaches the end that its run saw, None if its windows have no transaction."""
    times = (batch.manifest.last_time for batch in batches if batch.manifest.window is not None)
    last = max(filter(None, times), default=None)
    if last is None:
        return None
    if plan.seen is None or Point.at(plan.epoch, plan.stop) >= plan.seen.point:
        return timedelta()
    return plan.seen.at - last


def reads_all(rule: ReselectRule, lag: timedelta | None) -> bool:
    """Whether every changed row of a table is re-selected, not only rows that are incomplete in the binlog."""
    if rule.mode == "auto":
        return lag is not None and rule.when_lag_exceeds is not None and lag > rule.when_lag_exceeds
    return rule.mode == "always" and lag is not None
