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
    cursor: Cursor,
    files: Sequence[tuple[str, int]],
    binlog_end: Position,
    limits: Limits,
    releases: Sequence[Position] = (),
) -> tuple[Window, ...]:
    """Cut the binlog between the cursor and its end into windows.

    Files end on transaction boundaries, so a backlog is cut there; the last window ends at the end of the binlog.

    Args:
        cursor: without windows in flight.
        files: binlog files and their sizes, oldest first; not read later than the end of the binlog.
        binlog_end: end of the binlog.
        limits: of the plan.
        releases: where a window ends in any case, in order, on transaction boundaries.
    """
    windows: list[Window] = []
    start = cursor.position
    taken = 0
    for name, size in files:
        number = file_number(name)
        if number < start.file_number or number > binlog_end.file_number:
            continue
        is_last = number == binlog_end.file_number
        end = binlog_end if is_last else Position(_name_of(name, number + 1), FIRST_EVENT_OFFSET)
        cuts = [one for one in releases if one.file_number == number and start < one < end]
        for stop in (*cuts, end):
            if len(windows) == limits.windows:
                return tuple(windows)
            taken += (stop.offset if stop.file_number == number else size) - (
                start.offset if number == start.file_number else 0
            )
            if stop > start and (stop in cuts or is_last or taken >= limits.window_bytes):
                windows.append(Window(cursor.source, cursor.epoch, start, stop))
                start, taken = stop, 0
    return tuple(windows)


def _name_of(name: str, number: int) -> str:
    """Return the name of the file with another number, zero-padded as the server does."""
    base, _, digits = name.rpartition(".")
    return f"{base}.{number:0{len(digits)}d}"


def is_kept(position: Position, files: Sequence[tuple[str, int]]) -> bool:
    """Whether the server has the file of a position; if not, nobody knows how many bytes it held after it."""
    return any(name == position.file for name, _ in files)


def bytes_between(start: Position, files: Sequence[tuple[str, int]], binlog_end: Position) -> int:
    """Return the bytes of binlog between two positions."""
    total = 0
    for name, size in files:
        number = file_number(name)
        if start.file_number <= number <= binlog_end.file_number:
            total += binlog_end.offset if number == binlog_end.file_number else size
            total -= start.offset if number == start.file_number else 0
    return max(total, 0)


def bytes_left(position: Position, files: Sequence[tuple[str, int]], binlog_end: Position) -> int | None:
    """Return the bytes of binlog from a position to its end; None if the server has purged the file of the position."""
    return bytes_between(position, files, binlog_end) if is_kept(position, files) else None
