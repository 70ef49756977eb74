"""Removes obsolete records from drain and lake cursors. Pure.

Always kept for each table: the last closed quarantine record and all later ones; the last full snapshot; snapshots that are
not merged.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from cdc_lib.model.cursor import Cursor
from cdc_lib.model.position import Point
from cdc_lib.model.quarantine import QuarantineRecord


def pruned_drain(drain: Cursor, lake: Cursor, floor: Point) -> Cursor:
    """Return the drain cursor without obsolete records.

    Args:
        drain: the drain cursor.
        lake: the lake cursor.
        floor: no window before this point is stored or still read.
    """
    merged = {task.id for task in lake.snapshots if task.complete}
    ended = {task.id for task in drain.snapshots if task.cancelled or (task.complete and task.id in merged)}
    planned = {
        task.id for task in lake.in_flight_snapshots
    }  # a dropped task shows that its merge in flight is outdated
    quarantined = tuple(
        _records(drain.quarantine, {task.snapshot_id for task in drain.snapshots if task.id not in ended}, floor)
    )
    named = {one.snapshot_id for one in quarantined}
    last = {task.name: task.id for task in drain.snapshots if task.selection is None and not task.cancelled}
    stay = (
        task
        for task in drain.snapshots
        if task.id not in ended - planned or task.snapshot_id in named or last.get(task.name) == task.id
    )
    return replace(drain, quarantine=quarantined, snapshots=tuple(stay))


def pruned_lake(lake: Cursor, drain: Cursor) -> Cursor:
    """Return the lake cursor without snapshots that the drain cursor no longer has: they cannot be merged again."""
    known = {task.id for task in drain.snapshots}
    return replace(lake, snapshots=tuple(task for task in lake.snapshots if task.id in known))


def _records(records: tuple[QuarantineRecord, ...], waiting: Iterable[str], floor: Point) -> Iterable[QuarantineRecord]:
    """Return the last settled record of each table and all later ones, in order."""
    waiting = set(waiting)
    last = {one.table: index for index, one in enumerate(records) if _is_settled(one, waiting, floor)}
    return (one for index, one in enumerate(records) if index >= last.get(one.table, 0))


def _is_settled(one: QuarantineRecord, waiting: set[str], floor: Point) -> bool:
    ends = Point.at(one.released_epoch, one.released_position) if one.released_position is not None else None
    return ends is not None and ends <= floor and one.snapshot_id not in waiting
