"""Which snapshots of a lake table may be expired, decided without Spark.

The markers of merged batches are in the summaries of merges' commits; maintenance commits have none. So all snapshots from
the current one back to the newest one with a marker are kept.
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
        id: snapshot ID.
        parent: the snapshot before it; None for the first.
        at: when it was committed.
        marked: whether its summary has a marker.
    """

    id: int
    parent: int | None
    at: datetime
    marked: bool


def expirable(
    snapshots: Iterable[LakeSnapshot], current: int | None, referenced: Collection[int], before: datetime
) -> tuple[int, ...]:
    """Return the IDs of the snapshots that may be expired, oldest first.

    Args:
        snapshots: all snapshots of the table.
        current: the table's current snapshot.
        referenced: those that cuts, tags or branches name.
        before: newer ones are kept.
    """
    known = {snapshot.id: snapshot for snapshot in snapshots}
    kept = set(referenced) | _back_to_marker(known, current)
    old = sorted((one for one in known.values() if one.at < before and one.id not in kept), key=lambda one: one.at)
    return tuple(one.id for one in old)


def thin(
    snapshots: Iterable[LakeSnapshot],
    current: int | None,
    referenced: Collection[int],
    cuts: Collection[int],
    now: datetime,
) -> tuple[int, ...]:
    """Return the snapshots of a lake table that may be expired between two maintenance runs, oldest first.

    Args:
        snapshots: all snapshots of the table.
        current: the table's current snapshot.
        referenced: those that tags and branches need.
        cuts: those that cuts name; all snapshots after the newest of them are kept too, because the next merge reads them.
        now: the time (UTC).
    """
    known = {one.id: one for one in snapshots}
    kept = thinned({one.id: one.at for one in known.values()}, now)
    last = max((known[cut].at for cut in cuts if cut in known), default=None)
    kept |= {one.id for one in known.values() if last is not None and one.at >= last}
    return expirable(known.values(), current, kept | set(referenced) | set(cuts), now)


def branch_snapshots(snapshots: Iterable[LakeSnapshot], current: int | None, heads: Iterable[int]) -> set[int]:
    """Return the snapshots of branches and tags: each head, and its ancestors that the current snapshot does not share.

    Without them, a job that writes to a branch could not verify that the branch is still its own.

    Args:
        snapshots: all snapshots of the table.
        current: the table's current snapshot.
        heads: of the branches and tags.
    """
    known = {snapshot.id: snapshot for snapshot in snapshots}
    line = _ancestors(known, current, set())
    return {one for head in heads for one in _ancestors(known, head, line)} | set(heads)


def _ancestors(known: dict[int, LakeSnapshot], head: int | None, until: Collection[int]) -> set[int]:
    """Return a snapshot and its known ancestors, up to the first one in ``until``."""
    line: set[int] = set()
    while head is not None and head in known and head not in until and head not in line:
        line.add(head)
        head = known[head].parent
    return line


def _back_to_marker(known: dict[int, LakeSnapshot], current: int | None) -> set[int]:
    """Return the current snapshot and its ancestors, back to the newest one with a marker."""
    line: set[int] = set()
    at = known.get(current) if current is not None else None
    while at is not None:
        line.add(at.id)
        if at.marked:
            break
        at = known.get(at.parent) if at.parent is not None else None
    return line
