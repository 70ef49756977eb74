"""Which windows to read next: pure decisions from server facts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cdc_lib.model.cursor import Cursor
from cdc_lib.model.position import FIRST_EVENT_OFFSET, Position, file_number
from cdc_lib.model.window import Window


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one plan takes.

    Args:
        window_bytes: a window over several files ends with the file that reaches this many bytes.
        windows: maximum number of windows in flight.
    """

    window_bytes: int
    windows: int


def plan_windows(
    cursor: Cursor, files: Sequence[tuple[str, int]], binlog_end: Position, limits: Limits
) -> tuple[Window, ...]:
    """Cut the binlog between the cursor and its end into windows.

    Files end on transaction boundaries, so a backlog is cut there; the last window ends at the end of the binlog.

    Args:
        cursor: without windows in flight.
        files: binlog files and their sizes, oldest first; not read later than the end of the binlog.
        binlog_end: end of the binlog.
        limits: of the plan.
    """
    windows: list[Window] = []
    start = cursor.position
    taken = 0
    for name, size in files:
        number = file_number(name)
        if number < start.file_number or number > binlog_end.file_number or len(windows) == limits.windows:
            continue
        taken += (size if number < binlog_end.file_number else binlog_end.offset) - (
            start.offset if number == start.file_number else 0
        )
        follower = _name_of(name, number + 1)
        stop = binlog_end if number == binlog_end.file_number else Position(follower, FIRST_EVENT_OFFSET)
        if stop > start and (taken >= limits.window_bytes or number == binlog_end.file_number):
            windows.append(Window(cursor.source, cursor.epoch, start, stop))
            start, taken = stop, 0
    return tuple(windows)


def _name_of(name: str, number: int) -> str:
    """Return the name of the file with another number, zero-padded as the server does."""
    base, _, digits = name.rpartition(".")
    return f"{base}.{number:0{len(digits)}d}"


def bytes_between(start: Position, files: Sequence[tuple[str, int]], binlog_end: Position) -> int:
    """Return the bytes of binlog between two positions."""
    total = 0
    for name, size in files:
        number = file_number(name)
        if start.file_number <= number <= binlog_end.file_number:
            total += binlog_end.offset if number == binlog_end.file_number else size
            total -= start.offset if number == start.file_number else 0
    return max(total, 0)
