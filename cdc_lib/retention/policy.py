"""Which batches can be removed, and why the others are kept. Pure.

Rule 1: a window is kept until the drain, the lake and every other consumer have acknowledged it.
Rule 2: kept windows have no gap: if a window is kept, all later windows are kept.
Rule 3: if a kept window commits an XA transaction, or a transaction is open, the batch with its rows is kept.
Rule 4: windows after the low watermark of a snapshot are kept until the snapshot is completely merged, and so are windows
that were merged without its table.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from cdc_lib.model.cursor import DRAIN, LAKE, Cursor
from cdc_lib.model.manifest import Manifest
from cdc_lib.model.position import Point
from cdc_lib.model.stored_window import StoredWindow
from cdc_lib.model.window import SnapshotTask
from cdc_lib.model.xa_settlement import opened_before, settle


@dataclass(frozen=True, slots=True)
class RetentionFacts:
    """The inputs of the decision.

    Args:
        windows: all stored windows, in the stream's order.
        manifests: manifests of the windows, by key.
        cursors: cursors of all consumers, including drain and lake.
        watermark: low watermark of a chunk of a snapshot task, None if the chunk is not stored; a point before all chunks of a
            divided one.
        older_than: batches that were written before this time are old enough for removal.
    """

    windows: Sequence[StoredWindow]
    manifests: Mapping[str, Manifest]
    cursors: Sequence[Cursor]
    watermark: Callable[[SnapshotTask, int], Point | None]
    older_than: datetime


@dataclass(frozen=True, slots=True)
class RetentionDecision:
    """The decision on one window; ``why`` it is kept, empty if it can be removed."""

    window: StoredWindow
    why: str = ""


def judge_windows(facts: RetentionFacts) -> tuple[RetentionDecision, ...]:
    """Return the decision on every window."""
    floor = snapshot_floor(facts.cursors, facts.watermark)
    needed = {cursor.consumer: needed_from(cursor) for cursor in facts.cursors}
    verdicts: list[RetentionDecision] = []
    after_kept = ""
    for window in facts.windows:
        why = _why_kept(window, facts, needed, floor) or after_kept
        after_kept = after_kept or (why and "it lies after one that stays")
        verdicts.append(RetentionDecision(window, why))
    return _with_xa(verdicts, facts)


def laggards(windows: Sequence[StoredWindow], cursors: Iterable[Cursor], older_than: datetime) -> dict[str, int]:
    """Return how many windows past their retention each consumer still has to read; without consumers that have none."""
    old = [window for window in windows if window.modified < older_than]
    needed = {c.consumer: needed_from(c) for c in cursors if c.consumer != DRAIN}
    counts = {name: sum(window.stop > point for window in old) for name, point in needed.items()}
    return {name: count for name, count in counts.items() if count}


def snapshot_floor(cursors: Sequence[Cursor], watermark: Callable[[SnapshotTask, int], Point | None]) -> Point | None:
    """Return the point from which on snapshots may still need windows; None if none does.

    Watermarks of one snapshot grow: its first unmerged chunk has the least one; a divided snapshot counts from its request. If
    that chunk is not stored yet, it is unknown, and all windows are kept: the least point is returned.
    """
    named = {cursor.consumer: cursor for cursor in cursors}
    drain, lake = named.get(DRAIN), named.get(LAKE)
    merged = {task.id: task for task in lake.snapshots} if lake else {}
    planned = {task.id: task for task in lake.in_flight_snapshots} if lake else {}
    tasks = {task.id: task for task in drain.snapshots if not task.cancelled} if drain else {}
    floors = []
    for task in {**planned, **tasks}.values():
        known = merged.get(task.id)
        if known is None or not known.complete:
            floors.append(watermark(task, known.chunks if known else 0) or Point(0, 0, 0))
    return min(floors, default=None)


def ended_snapshots(cursors: Iterable[Cursor], found: Iterable[str]) -> frozenset[str]:
    """Return the ids of snapshot tasks that are completely merged, dropped or pruned: their chunks are not read again.

    A task that was dropped while the lake had it in flight is still read: a merge follows its plan.
    """
    named = {cursor.consumer: cursor for cursor in cursors}
    drain, lake = named.get(DRAIN), named.get(LAKE)
    merged = {task.id for task in lake.snapshots if task.complete} if lake else set()
    planned = {task.id for task in lake.in_flight_snapshots} if lake else set()
    if drain is None:
        return frozenset(merged - planned)
    # The drain cursor has a snapshot from before its first chunk is written until it is done.
    open_ = {task.id for task in drain.snapshots if not task.cancelled} - merged
    return frozenset(found) - open_ - planned


def _why_kept(window: StoredWindow, facts: RetentionFacts, needed: Mapping[str, Point], floor: Point | None) -> str:
    if not {DRAIN, LAKE} <= needed.keys():
        return "there is no drain or no lake cursor"
    waiting = sorted(name for name, point in needed.items() if point < window.stop)
    if waiting:
        return f"not acknowledged by {', '.join(waiting)}"
    if floor is not None and window.stop > floor:
        return "a snapshot that is not merged whole may need it"
    return "" if window.modified < facts.older_than else "younger than store.keep_batches_for"


def _with_xa(verdicts: Sequence[RetentionDecision], facts: RetentionFacts) -> tuple[RetentionDecision, ...]:
    """Keep windows with rows of XA transactions that are open, or that a kept window commits."""
    needed = _xa_holders(facts, {verdict.window.key for verdict in verdicts if verdict.why})
    return tuple(
        RetentionDecision(verdict.window, verdict.why or needed.get(verdict.window.key, "")) for verdict in verdicts
    )


def _xa_holders(facts: RetentionFacts, kept: Collection[str]) -> dict[str, str]:
    """Return why the XA rows of a batch are still needed, by manifest key."""
    in_order = [(window.key, facts.manifests[window.key]) for window in facts.windows]
    settled = settle((), in_order)
    epoch_changes = next((cursor.epoch_changes for cursor in facts.cursors if cursor.consumer == DRAIN), ())
    open_ = [*(one for cursor in facts.cursors for one in cursor.prepared), *settled.open]
    needed = {one.manifest: f"it prepares the XA transaction {one.prepared.xid}, which is open" for one in open_}
    # Newest first: a batch that is kept for its rows may itself commit rows of older batches.
    for index, (key, manifest) in reversed(list(enumerate(in_order))):
        if key not in kept and key not in needed:
            continue
        # With the search that readers use: windows overlap where a rewound drain cut the stream differently.
        xids = {decision.xid for _, decision in settle((), [(key, manifest)]).unknown}
        for one in opened_before(reversed(in_order[:index]), xids, manifest, epoch_changes):
            needed[one.manifest] = f"it prepares an XA transaction that {key.split('/')[-2]} commits"
        for commit in settled.commits.get(key, ()):
            needed[commit.manifest] = f"it prepares an XA transaction that {key.split('/')[-2]} commits"
    return needed


def needed_from(cursor: Cursor) -> Point:
    """Return the point after which a consumer still needs windows: of the lake, also for tables that it lacks changes of."""
    return min([Point.at(cursor.epoch, cursor.position), *(one.point for one in cursor.places.values())])
