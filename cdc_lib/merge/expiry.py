"""Which snapshots of a lake table may go, decided without Spark.

The markers that say what a table holds travel in the summaries of merges' commits; commits of the maintenance itself have
none. So the way from the current snapshot back to the newest one with a marker must stay whole.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class LakeSnapshot:
    """One snapshot of a lake table.

    Args:
        id: its number.
        parent: the snapshot before it; None for the first.
        at: when it was committed.
        marked: whether its summary says what the table holds.
    """

    id: int
    parent: int | None
    at: datetime
    marked: bool


def expirable(
    snapshots: Iterable[LakeSnapshot], current: int | None, wanted: Collection[int], before: datetime
) -> tuple[int, ...]:
    """Return the ids of the snapshots that may go, oldest first.

    Args:
        snapshots: all that the table has.
        current: the one that the table shows.
        wanted: those that cuts, tags or branches name.
        before: younger ones stay.
    """
    known = {snapshot.id: snapshot for snapshot in snapshots}
    kept = set(wanted) | _to_the_marker(known, current)
    old = sorted((one for one in known.values() if one.at < before and one.id not in kept), key=lambda one: one.at)
    return tuple(one.id for one in old)


def _to_the_marker(known: dict[int, LakeSnapshot], current: int | None) -> set[int]:
    """Return the current snapshot and those before it, down to the newest one with a marker."""
    way: set[int] = set()
    at = known.get(current) if current is not None else None
    while at is not None:
        way.add(at.id)
        if at.marked:
            break
        at = known.get(at.parent) if at.parent is not None else None
    return way
