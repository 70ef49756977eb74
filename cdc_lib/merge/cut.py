"""The cut that completes a merge."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from cdc_lib.merge.plan import Batch
from cdc_lib.merge.quarantined import marked
from cdc_lib.model.merge_plan import Cut, MergePlan, TableCut


def make_cut(
    plan: MergePlan, batches: Sequence[Batch], tables: Sequence[TableCut], before: Cut | None, at: datetime
) -> Cut:
    """Return the cut that completes a plan.

    Args:
        plan: the plan.
        batches: its batches.
        tables: all lake tables of the source as they are now.
        before: the cut before.
        at: now (UTC).
    """
    times = [batch.manifest.last_time for batch in batches if batch.manifest.window is not None]
    if before is not None:
        times.append(before.event_time)
    return Cut(
        source=plan.source,
        merge_id=plan.merge_id,
        epoch=plan.epoch,
        position=plan.stop,
        event_time=max((time for time in times if time is not None), default=None),
        at=at,
        tables=tuple(sorted(marked(tables, plan), key=lambda cut: (cut.table, cut.lake_table))),
    )
