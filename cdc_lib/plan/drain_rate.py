"""The rate at which a source drains a backlog, estimated from the moves of its drain cursor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import pairwise
from statistics import median

from cdc_lib.model.cursor import Move
from cdc_lib.model.position import FIRST_EVENT_OFFSET, Position, file_number
from cdc_lib.plan.windows import bytes_between

_ONE_ACK = timedelta(seconds=10)
"""Moves of one ack lie closer together than this."""


def drain_rate(moves: Sequence[Move], files: Sequence[tuple[str, int]]) -> float | None:
    """Return bytes of binlog per second between acks during a backlog; None if no moves show it.

    Only intervals with more backlog than one plan takes count: from an ack that stopped at the beginning of a file, where a plan
    is cut, to the next such ack. In other intervals the drain may have waited for changes or for its schedule, and would look
    slower than it is. The result is the median, so that a pause or an outage does not count as slowness.

    Args:
        moves: of the drain cursor, oldest first.
        files: binlog files and their sizes; an interval with a purged file does not count.
    """
    acks = list(_acks(moves))
    known = {file_number(name) for name, _ in files}
    rates = []
    for before, ack in pairwise(acks):
        start, stop, seconds = before.stop, ack.stop, (ack.at - before.at).total_seconds()
        through = range(start.file_number, stop.file_number)
        if (
            before.kind == ack.kind == "ack"
            and _cut(start)
            and _cut(stop)
            and seconds > 0
            and known.issuperset(through)
        ):
            rates.append(bytes_between(start, files, stop) / seconds)
    return (median(rates) or None) if rates else None


def _acks(moves: Sequence[Move]) -> Iterator[Move]:
    """Yield the last move of each ack, and every other move."""
    for move, after in zip(moves, [*moves[1:], None], strict=False):
        if after is None or (after.kind, after.by) != (move.kind, move.by) or after.at - move.at >= _ONE_ACK:
            yield move


def _cut(position: Position) -> bool:
    return position.offset == FIRST_EVENT_OFFSET
