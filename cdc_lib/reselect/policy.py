"""Which tables of a merge are re-selected completely, because the windows lag behind the source: pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from cdc_lib.config.reselect import ReselectRule
from cdc_lib.merge.plan import StoredBatch


def lag_of(batches: Iterable[StoredBatch], now: datetime) -> timedelta | None:
    """Return how long ago the last transaction of a merge's windows was committed; None if there is none."""
    times = (batch.manifest.last_time for batch in batches if batch.manifest.window is not None)
    last = max(filter(None, times), default=None)
    return None if last is None else now - last


def reads_all(rule: ReselectRule, lag: timedelta | None) -> bool:
    """Whether every changed row of a table is re-selected, not only rows that are incomplete in the binlog.

    The result depends on the clock, so two attempts at one plan may differ. That is harmless: after a commit, the marker
    shows that the table is merged; before it nothing was written, and both results lead to the same table once the marker
    has passed the watermark.
    """
    if rule.mode == "auto":
        return lag is not None and rule.when_lag_exceeds is not None and lag > rule.when_lag_exceeds
    return rule.mode == "always" and lag is not None
