"""The work that waits between the drain cursor and the lake cursor."""

from __future__ import annotations

from cdc_lib.model.cursor import Cursor
from cdc_lib.model.window import SnapshotTask


def is_waiting(drain: Cursor, lake: Cursor) -> bool:
    """Whether the lake lacks windows or snapshots that are planned or acknowledged."""
    return (drain.epoch, drain.position) != (lake.epoch, lake.position) or bool(
        drain.in_flight or unmerged(drain, lake) or lake.held
    )


def is_idle(drain: Cursor | None, lake: Cursor | None) -> bool:
    """Whether the lake has all that is planned or acknowledged, and no merge is in flight; not before the first plan."""
    return drain is not None and lake is not None and not (is_waiting(drain, lake) or lake.is_merging)


def unmerged(drain: Cursor, lake: Cursor | None) -> list[SnapshotTask]:
    """Return the snapshots of the drain cursor that are not completely merged; all of them without a lake cursor."""
    merged = {task.id: task.chunks for task in lake.snapshots} if lake is not None else {}
    tasks = (task for task in drain.snapshots if not task.cancelled)
    return [task for task in tasks if not task.complete or task.chunks > merged.get(task.id, 0)]
