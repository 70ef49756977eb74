"""Which waiting changes can be shown before they are merged; pure. What a merge does about their rows is in :mod:`cdc_lib.apply`."""

from __future__ import annotations

from cdc_lib.errors import MergeError
from cdc_lib.model.merge_plan import MergePlan


def not_fresh(why: str, table: str) -> MergeError:
    """Return the error of waiting changes that only a merge can apply.

    Args:
        why: the reason.
        table: ``database.table``.
    """
    return MergeError(
        f"the batches that wait cannot be shown before they are merged: {why}",
        hint="Read the table without them, or after the next merge.",
        table=table,
    )


def why_lagging(plan: MergePlan, table: str) -> str:
    """Return why a table's changes are not in the plan; empty if they are."""
    if any(one.table == table for one in plan.lagging):
        return "the table is quarantined, or waits for a new snapshot"
    return ""
