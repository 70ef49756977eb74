"""Which epochs ended before an earlier one: the source was moved back twice, and what lies between is read by a later epoch."""

from __future__ import annotations

from collections.abc import Sequence

from cdc_lib.model.binlog_checkpoint import BinlogCheckpoint
from cdc_lib.model.cursor import EpochChange


def unfinished_epochs(changes: Sequence[EpochChange]) -> tuple[int, ...]:
    """Return the ended epochs that did not read everything that an earlier epoch had read, or of which that is unknown.

    Args:
        changes: of the drain cursor, oldest first.
    """
    unfinished: list[int] = []
    ends: list[BinlogCheckpoint] = []
    for change in changes:
        if not all(change.previous_end.covers(end) for end in ends):
            unfinished.append(change.epoch - 1)
        # An end that a later one covers says nothing more.
        ends = [*(end for end in ends if not change.previous_end.covers(end)), change.previous_end]
    return tuple(unfinished)
