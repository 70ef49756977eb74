"""The windows of a source one after another, each with what became of it: pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from cdc_lib.model.cursor import Cursor, Move
from cdc_lib.model.failed_table import Stopped
from cdc_lib.model.manifest import Manifest
from cdc_lib.model.position import Point, Position
from cdc_lib.model.window import Window
from cdc_lib.status.cut_facts import CutFacts

WindowState = Literal["planned", "drained", "acked", "merging", "failed", "merged", "rolled_back"]
"""Fixed; its batch is stored; the drain cursor went over it; in the merge in flight; in a merge that stopped, or its batch is
missing; in the lake; the epoch ended before it."""

_NEW_EPOCH = frozenset({"failover", "rewind"})


@dataclass(frozen=True, slots=True)
class WindowFacts:
    """What the manifest of a window says about its batch.

    Args:
        rows: rows in its files.
        bytes: of its files.
        transactions: in the window.
        tables: source tables with rows in it.
        statements: DDL statements on captured tables.
        partial_rows: rows that lack cells, which the merge completes or re-selects.
        quarantined: tables that are at fault in it.
        first_time: earliest commit time of its events (UTC).
        last_time: latest commit time.
    """

    rows: int
    bytes: int
    transactions: int
    tables: int
    statements: int
    partial_rows: int
    quarantined: int
    first_time: datetime | None
    last_time: datetime | None


def facts_of_window(manifest: Manifest) -> WindowFacts:
    """Return what is shown of a window's batch."""
    return WindowFacts(
        rows=manifest.rows,
        bytes=manifest.bytes,
        transactions=manifest.transactions,
        tables=len({file.table for file in manifest.files}),
        statements=len(manifest.ddl),
        partial_rows=sum(file.partial_rows for file in manifest.files),
        quarantined=len(manifest.quarantined),
        first_time=manifest.first_time,
        last_time=manifest.last_time,
    )


@dataclass(frozen=True, slots=True)
class WindowRow:
    """One window.

    Args:
        window: its bounds.
        state: what became of it.
        facts: of its batch; None where none is stored.
        acked_at: when the drain cursor went over it; None while it is in flight.
        merged_at: when the lake cursor went over it; None while it is not in the lake, or where nobody remembers.
        reselected: whether the cut that it came with has rows that were re-selected from the source.
    """

    window: Window
    state: WindowState
    facts: WindowFacts | None
    acked_at: datetime | None
    merged_at: datetime | None
    reselected: bool


def windows_of(drain: Cursor) -> list[tuple[Window, datetime | None]]:
    """Return the windows that a drain cursor remembers, in the stream's order, with the time of their ack if they have one.

    That is its last hundred moves, and what is in flight.
    """
    acked = [*drain.acked_windows][::-1]
    return [*acked, *((window, None) for window in drain.in_flight)]


def timeline(
    drain: Cursor,
    lake: Cursor | None,
    facts: Mapping[str, WindowFacts],
    stopped: Stopped | None = None,
    cuts: Sequence[CutFacts] = (),
) -> list[WindowRow]:
    """Return what became of each window that a drain cursor remembers, latest first.

    Args:
        drain: the drain cursor.
        lake: the lake cursor; None before the first plan.
        facts: of the windows whose manifests are stored, by window id.
        stopped: what the last merge could not merge.
        cuts: the last ones, in order.
    """
    merges = _merges(lake)
    ends = {epoch_change.epoch - 1: epoch_change.previous_end.position for epoch_change in drain.epoch_changes}
    rows = []
    for window, acked_at in windows_of(drain):
        found, stop = facts.get(window.id), Point.at(window.epoch, window.stop)
        state = _state(window, acked_at, found, lake, ends.get(window.epoch), failed=stopped is not None)
        merged_at = next((at for point, at in merges if stop <= point), None) if state == "merged" else None
        cut = next((cut for cut in cuts if stop <= Point.at(cut.epoch, cut.position)), None)
        reselected = state == "merged" and cut is not None and cut.reselected > 0
        rows.append(WindowRow(window, state, found, acked_at, merged_at, reselected))
    return rows[::-1]


def _state(
    window: Window,
    acked_at: datetime | None,
    facts: WindowFacts | None,
    lake: Cursor | None,
    end: Position | None,
    *,
    failed: bool,
) -> WindowState:
    if acked_at is None:
        return "planned" if facts is None else "drained"
    if end is not None and end < window.stop:
        return "rolled_back"
    at = Point.at(window.epoch, window.stop)
    if lake is not None and at <= Point.at(lake.epoch, lake.position):
        return "merged"
    if facts is None:
        return "failed"
    if lake is not None and any(one.id == window.id for one in lake.in_flight):
        return "failed" if failed else "merging"
    return "acked"


def _merges(lake: Cursor | None) -> list[tuple[Point, datetime]]:
    """Return how far the lake cursor came and when, in order."""
    moves = _moves(lake) if lake is not None else ()
    return [(Point.at(epoch, move.stop), move.at) for epoch, move in moves if move.kind == "ack"]


def _moves(cursor: Cursor) -> Iterator[tuple[int, Move]]:
    """Yield the moves of a cursor with the epoch that each leads to, oldest first: a move does not say its epoch."""
    epoch, found = cursor.epoch, []
    for move in reversed(cursor.moves):
        found.append((epoch, move))
        epoch -= move.kind in _NEW_EPOCH
    yield from reversed(found)
