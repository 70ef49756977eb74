"""Which tables a merge leaves out because their snapshots are not complete or a statement is not decided, and which catch up: pure.

Law: a table that is held misses all changes from its place on. The merge that brings its snapshot brings them as well, in the
same commit. So the table gets what it would get if the whole lake had waited for the snapshot, and no other table waits.
The same holds for a table that stopped at a statement: the merge after the decision brings its changes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from cdc_lib.model.cursor import Cursor
from cdc_lib.model.held_table import HeldTable
from cdc_lib.model.position import Point
from cdc_lib.model.quarantine import QuarantineRecord, to_reach
from cdc_lib.model.table_name import TableName
from cdc_lib.model.window import SnapshotTask, Window


@dataclass(frozen=True, slots=True)
class NextMerge:
    """What a merge takes.

    Args:
        chunks: the snapshots whose chunks it brings.
        windows: the windows, in order.
        held: the tables that it leaves out, each from a place on.
        catching_up: the tables for which it also takes the windows from a place up to its start.
    """

    chunks: tuple[SnapshotTask, ...] = ()
    windows: tuple[Window, ...] = ()
    held: tuple[HeldTable, ...] = ()
    catching_up: tuple[HeldTable, ...] = ()


def next_merge(
    drain: Cursor,
    lake: Cursor,
    new: Iterable[SnapshotTask],
    unready: Collection[SnapshotTask],
    windows: Sequence[Window],
    undecided: Collection[TableName] = (),
) -> NextMerge:
    """Decide what the next merge takes, so that no change is merged after a snapshot that includes it.

    Args:
        drain: the drain cursor.
        lake: the lake cursor, with nothing in flight.
        new: snapshots with chunks that the lake does not have.
        unready: snapshots that cannot be merged yet: they are being read, or a window may still make them useless.
        windows: windows to merge, in order.
        undecided: the held tables that wait for a decision about a statement.
    """
    records = _by_table(drain.quarantine)
    places = {table: _moved(one, records.get(table, ())) for table, one in lake.places.items()}
    not_yet = {task.id for task in unready}
    ready = [task for task in new if task.complete and task.id not in not_yet]
    ahead = _ahead(lake, ready, places, records)
    waiting = {task.name: task for task in (*ahead.values(), *unready) if task.selection is None}
    starts = [Point.at(window.epoch, window.start) for window in windows]
    held, catching_up, staying = [], [], set()
    for table in sorted({*places, *waiting}):
        place = places.get(table)
        start = _held_from(lake, place, waiting.get(table), records.get(table, ()))
        if place is not None and (start == place or place.epoch < lake.epoch or _asks(place, undecided)):
            held.append(place)
            staying.add(table)
            continue
        if place is not None and place.point < _here(lake):
            catching_up.append(place)
        if start is not None and (start.point < _here(lake) or any(start.point <= one for one in starts)):
            held.append(start)
    chunks = tuple(task for task in ready if task.id not in ahead and task.name not in staying)
    return NextMerge(chunks, tuple(windows), tuple(held), tuple(catching_up))


def held_too_long(drain: Cursor, lake: Cursor, undecided: Collection[TableName] = ()) -> list[TableName]:
    """Return the tables whose place is in an earlier epoch than the drain cursor: they need a new snapshot.

    A snapshot that is being read when an epoch ends begins again in the next one, and no merge takes changes of two epochs.

    Args:
        drain: the drain cursor.
        lake: the lake cursor.
        undecided: the held tables that wait for a decision about a statement: no snapshot replaces their rows before.
    """
    records = _by_table(drain.quarantine)
    others = {one.table for one in lake.catching_up} | {one.table for one in drain.quarantine if one.is_open}
    places = (_moved(one, records.get(one.table, ())) for one in lake.held if one.table not in others)
    return sorted(one.table for one in places if one.epoch < drain.epoch and not _asks(one, undecided))


def _ahead(
    lake: Cursor,
    ready: Iterable[SnapshotTask],
    places: Mapping[TableName, HeldTable],
    records: Mapping[TableName, Sequence[QuarantineRecord]],
) -> dict[str, SnapshotTask]:
    """Return, by id, the snapshots that replace excluded changes before whose start the lake has not arrived."""
    ahead = {}
    for task in ready:
        at = lake.of_table(places.get(task.name))
        if to_reach(records.get(task.name, ()), task.name, task.snapshot_id, at.epoch, at.position) is not None:
            ahead[task.id] = task
    return ahead


def _held_from(
    lake: Cursor, place: HeldTable | None, task: SnapshotTask | None, records: Iterable[QuarantineRecord]
) -> HeldTable | None:
    """Return from where on the changes of a table wait for a snapshot; None if it waits for none.

    Changes before the snapshot was requested are not its own: they are merged before, or a record excludes them.
    """
    if task is None:
        return None
    first = place or HeldTable(task.name, lake.epoch, lake.position)
    for one in records:
        if one.snapshot_id == task.snapshot_id and one.released_position is not None:
            released = HeldTable(task.name, one.released_epoch, one.released_position)
            return max(first, released, key=lambda each: each.point)
    return first


def _moved(held: HeldTable, records: Iterable[QuarantineRecord]) -> HeldTable:
    """Return the place of a table after the exclusions that cover it: a new snapshot replaces these changes.

    The table still waits for a decision about a statement that comes after them.
    """
    for one in records:
        if one.released_position is not None and one.covers_point(held.point):
            moved = HeldTable(held.table, one.released_epoch, one.released_position)
            stays = held.stopped is not None and held.stopped.question.point >= moved.point
            held = replace(moved, stopped=held.stopped) if stays else moved
    return held


def _asks(place: HeldTable, undecided: Collection[TableName]) -> bool:
    """Whether a table waits for a decision; if its place moved over the statement, it waits no longer."""
    return place.stopped is not None and place.table in undecided


def _by_table(records: Iterable[QuarantineRecord]) -> dict[TableName, list[QuarantineRecord]]:
    found: dict[TableName, list[QuarantineRecord]] = {}
    for one in records:
        found.setdefault(one.table, []).append(one)
    return found


def _here(lake: Cursor) -> Point:
    return Point.at(lake.epoch, lake.position)
