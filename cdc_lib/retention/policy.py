"""Which batches may go, and why the others stay. Pure.

Rule 1: what somebody may still have to read stays: the drain, the lake and every other consumer have acknowledged it.
Rule 2: what is left is the end of the stream without a gap: where one window stays, those after it stay.
Rule 3: where a window stays that commits an XA transaction, the batch with its rows stays; so does that of one still open.
Rule 4: a snapshot that is not merged whole may need to be merged with the windows after its low watermark.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from cdc_lib.model.cursor import DRAIN, LAKE, Cursor
from cdc_lib.model.manifest import Manifest
from cdc_lib.model.position import Point
from cdc_lib.model.window import SnapshotTask
from cdc_lib.model.xa_settlement import opened_before, settle
from cdc_lib.store.windows import StoredWindow


@dataclass(frozen=True, slots=True)
class Facts:
    """What the decision rests on.

    Args:
        windows: all that are stored, in the stream's order.
        manifests: of each window, by its key.
        cursors: of all consumers of the source, drain and lake included.
        watermark: low watermark of a chunk of a snapshot task, None when the chunk is not stored.
        older_than: what was written before this is old enough to go.
    """

    windows: Sequence[StoredWindow]
    manifests: Mapping[str, Manifest]
    cursors: Sequence[Cursor]
    watermark: Callable[[SnapshotTask, int], Point | None]
    older_than: datetime


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of one window; ``why`` it stays, empty when it may go."""

    window: StoredWindow
    why: str = ""


def judge_windows(facts: Facts) -> tuple[Verdict, ...]:
    """Decide about every window."""
    floor = snapshot_floor(facts.cursors, facts.watermark)
    verdicts: list[Verdict] = []
    behind = ""
    for window in facts.windows:
        why = _why_it_stays(window, facts, floor) or behind
        behind = behind or (why and "it lies after one that stays")
        verdicts.append(Verdict(window, why))
    return _with_xa(verdicts, facts)


def laggards(windows: Sequence[StoredWindow], cursors: Iterable[Cursor], older_than: datetime) -> dict[str, int]:
    """Return how many windows that are old enough to go each consumer still has to read, where there are any."""
    old = [window for window in windows if window.modified < older_than]
    counts = {c.consumer: sum(window.stop > _point(c) for window in old) for c in cursors if c.consumer != DRAIN}
    return {name: count for name, count in counts.items() if count}


def snapshot_floor(cursors: Sequence[Cursor], watermark: Callable[[SnapshotTask, int], Point | None]) -> Point | None:
    """Return the point after which snapshots may still need windows; None when there is none.

    Watermarks of one snapshot grow: its first chunk that is not merged has the least. Where that chunk is not stored yet,
    nothing is known, and everything stays: the least point is returned.
    """
    named = {cursor.consumer: cursor for cursor in cursors}
    drain, lake = named.get(DRAIN), named.get(LAKE)
    merged = {task.id: task for task in lake.snapshots} if lake else {}
    planned = {task.id: task for task in lake.in_flight_snapshots} if lake else {}
    tasks = {task.id: task for task in drain.snapshots if not task.given_up} if drain else {}
    floors = []
    for task in {**planned, **tasks}.values():
        known = merged.get(task.id)
        if known is None or not known.complete:
            floors.append(watermark(task, known.chunks if known else 0) or Point(0, 0, 0))
    return min(floors, default=None)


def ended_snapshots(cursors: Iterable[Cursor], found: Iterable[str]) -> frozenset[str]:
    """Return which of the ids of snapshot tasks are merged whole, given up or forgotten: their chunks are not read again.

    One that was given up while the lake had it in flight is still read: a merge does what was planned.
    """
    named = {cursor.consumer: cursor for cursor in cursors}
    drain, lake = named.get(DRAIN), named.get(LAKE)
    merged = {task.id for task in lake.snapshots if task.complete} if lake else set()
    planned = {task.id for task in lake.in_flight_snapshots} if lake else set()
    if drain is None:
        return frozenset(merged - planned)
    # The drain cursor names a snapshot before its first chunk is written, and until it is over.
    open_ = {task.id for task in drain.snapshots if not task.given_up} - merged
    return frozenset(found) - open_ - planned


def _why_it_stays(window: StoredWindow, facts: Facts, floor: Point | None) -> str:
    names = {cursor.consumer for cursor in facts.cursors}
    if not {DRAIN, LAKE} <= names:
        return "there is no drain or no lake cursor"
    waiting = sorted(cursor.consumer for cursor in facts.cursors if _point(cursor) < window.stop)
    if waiting:
        return f"not acknowledged by {', '.join(waiting)}"
    if floor is not None and window.stop > floor:
        return "a snapshot that is not merged whole may need it"
    return "" if window.modified < facts.older_than else "younger than store.keep_batches_for"


def _with_xa(verdicts: Sequence[Verdict], facts: Facts) -> tuple[Verdict, ...]:
    """Keep what holds rows of XA transactions that a window which stays commits, or that nobody has decided."""
    needed = _xa_holders(facts, {verdict.window.key for verdict in verdicts if verdict.why})
    return tuple(Verdict(verdict.window, verdict.why or needed.get(verdict.window.key, "")) for verdict in verdicts)


def _xa_holders(facts: Facts, kept: Collection[str]) -> dict[str, str]:
    """Return by manifest key why the rows of XA transactions in it are still needed."""
    in_order = [(window.key, facts.manifests[window.key]) for window in facts.windows]
    settled = settle((), in_order)
    open_ = [*(one for cursor in facts.cursors for one in cursor.prepared), *settled.open]
    needed = {one.manifest: f"it prepares the XA transaction {one.prepared.xid}, which is open" for one in open_}
    # From the newest: what holds rows is read by a consumer that comes later, and may itself commit rows of older ones.
    for place, (key, manifest) in reversed(list(enumerate(in_order))):
        if key not in kept and key not in needed:
            continue
        # As whoever reads the window would look for them: windows overlap where a rewound drain cut the stream again.
        wanted = {decision.xid for _, decision in settle((), [(key, manifest)]).unknown}
        for one in opened_before(reversed(in_order[:place]), wanted, manifest):
            needed[one.manifest] = f"it prepares an XA transaction that {key.split('/')[-2]} commits"
        for commit in settled.commits.get(key, ()):
            needed[commit.manifest] = f"it prepares an XA transaction that {key.split('/')[-2]} commits"
    return needed


def _point(cursor: Cursor) -> Point:
    return Point.at(cursor.epoch, cursor.position)
