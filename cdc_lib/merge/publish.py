"""Publishes the cut that completes a merge."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from cdc_lib.merge.cut import make_cut, origin_of
from cdc_lib.merge.plan import StoredBatch
from cdc_lib.merge.planner import refuse_withdrawn
from cdc_lib.model.comments import TableComments
from cdc_lib.model.cursor import DRAIN, LAKE
from cdc_lib.model.merge_plan import Cut, MergePlan, TableCut
from cdc_lib.ports import ObjectStore
from cdc_lib.store.cursors import ObjectCursorStore
from cdc_lib.store.cuts import cut_of, publish, thin_cuts


def publish_cut(
    store: ObjectStore,
    plan: MergePlan,
    batches: Sequence[StoredBatch],
    tables: Sequence[TableCut],
    before: Cut | None,
    now: datetime,
    seconds: float,
    uncommented: Sequence[TableComments] | None = None,
) -> Cut:
    """Publish the cut of a plan, and remove old cuts; return the one of an earlier attempt if there is one.

    Args:
        store: holds the cuts.
        plan: the merge plan.
        batches: its batches.
        tables: all lake tables of the source as they are now.
        before: the previous cut.
        now: current time (UTC).
        seconds: how long the merge took.
        uncommented: comments that could not be carried over; None for those of the previous cut.

    Raises:
        MergeConflict: the plan was withdrawn during the merge; nothing is published.
    """
    existing = cut_of(store, plan.source, plan.merge_id)
    if existing is not None:
        return existing
    cursors = ObjectCursorStore(store)
    refuse_withdrawn(cursors, plan)
    origin = origin_of(plan, cursors.load(plan.source, DRAIN), cursors.load(plan.source, LAKE))
    published = publish(store, make_cut(plan, batches, tables, before, now, seconds, origin, uncommented))
    thin_cuts(store, plan.source, now)
    return published
