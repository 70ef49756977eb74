"""Whether the lake has merged what the source had done to erased rows: pure."""

from __future__ import annotations

from cdc_lib.errors import MergeConflict
from cdc_lib.model.cursor import Cursor
from cdc_lib.model.erasure import Erasure
from cdc_lib.model.merge_plan import Cut
from cdc_lib.model.position import Point


def refuse_unreached(cut: Cut | None, erasure: Erasure) -> None:
    """Refuse to erase rows before the lake has everything up to the erasure: a batch in between may have them.

    Args:
        cut: the last one; None before the first.
        erasure: what is erased.

    Raises:
        MergeConflict: the lake is at an earlier position.
    """
    if cut is None:
        return
    reached = [
        Point.at(cut.epoch, one.as_of or cut.position)
        for one in cut.tables
        if one.table == erasure.table and one.dropped is None
    ]
    if reached and min(reached) < erasure.point:
        raise MergeConflict(
            f"the lake table is not merged up to {erasure.position} yet, where the source no longer had the rows",
            hint=f"Run cdc run {erasure.source}, then the same command again; cdc status {erasure.source} says if the table waits for something.",
            source=erasure.source,
            table=erasure.table,
        )


def refuse_snapshot(drain: Cursor, erasure: Erasure) -> None:
    """Refuse to erase rows while a snapshot of their table is read: its chunks may have them.

    Raises:
        MergeConflict: one is.
    """
    open_tables = {task.name for task in drain.open_snapshots} | {*drain.tables_to_resnapshot}
    if erasure.table in open_tables:
        raise MergeConflict(
            "a snapshot of the table is being read",
            hint=f"Run cdc run {erasure.source} until it is merged, then the same command again.",
            source=erasure.source,
            table=erasure.table,
        )
