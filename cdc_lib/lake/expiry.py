"""Which snapshots of a lake table may go, decided without Spark.

The markers that say what a table holds travel in the summaries of merges' commits; commits of the maintenance itself have
none. So the way from the current snapshot back to the newest one with a marker must stay whole.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime

from cdc_lib.model.thinning import thinned


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


def thin(
    snapshots: Iterable[LakeSnapshot],
    current: int | None,
    wanted: Collection[int],
    cuts: Collection[int],
    now: datetime,
) -> tuple[int, ...]:
    """Return the snapshots of a lake table that may go between two runs of the maintenance, oldest first.

    Args:
        snapshots: all that the table has.
        current: the one that the table shows.
        wanted: those that tags and branches need.
        cuts: those that cuts name; what came after the newest of these stays as well, because the next merge looks back to it.
        now: the time (UTC).
    """
    found = {one.id: one for one in snapshots}
    kept = thinned({one.id: one.at for one in found.values()}, now)
    last = max((found[one].at for one in cuts if one in found), default=None)
    kept |= {one.id for one in found.values() if last is not None and one.at >= last}
    return expirable(found.values(), current, kept | set(wanted) | set(cuts), now)


def beside(snapshots: Iterable[LakeSnapshot], current: int | None, heads: Iterable[int]) -> set[int]:
    """Return what branches and tags need that the table does not show: each head, and those before it down to the table's line.

    Without them a job that works on a branch could not tell that the branch is still its own.

    Args:
        snapshots: all that the table has.
        current: the one that the table shows.
        heads: of the branches and tags.
    """
    known = {snapshot.id: snapshot for snapshot in snapshots}
    line = _line(known, current, set())
    return {one for head in heads for one in _line(known, head, line)} | set(heads)


def _line(known: dict[int, LakeSnapshot], head: int | None, until: Collection[int]) -> set[int]:
    """Return a snapshot and those before it, as far as they are known and not among others."""
    way: set[int] = set()
    while head is not None and head in known and head not in until and head not in way:
        way.add(head)
        head = known[head].parent
    return way


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
