"""Which rows get the default of an added column when a later epoch replays its ADD COLUMN; pure.

A row of an earlier epoch has the column already: it got the default there, or was written after the statement. In a mirror the
replayed changes restore such a row; `scd2` ignores them and `append` keeps both, so the default must not touch it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cdc_lib.merge.plan import TableWork
from cdc_lib.model.cursor import EpochChange
from cdc_lib.model.lake_table import PlacedDefault
from cdc_lib.model.position import Point

_KEEP_EVERY_CHANGE = ("scd2", "append")


def limit_replays(work: TableWork, epoch_changes: Sequence[EpochChange]) -> TableWork:
    """Limit each default to rows of the epochs that do not have it yet.

    Args:
        work: what a table needs.
        epoch_changes: of the drain cursor, oldest first.
    """
    if work.mode not in _KEEP_EVERY_CHANGE or not work.added_defaults:
        return work
    limited = tuple(replace(one, since=_first_row(one, epoch_changes)) for one in work.added_defaults)
    return replace(work, added_defaults=limited)


def _first_row(default: PlacedDefault, epoch_changes: Sequence[EpochChange]) -> Point | None:
    """Return the start of the epoch after the last earlier one that ended after the statement; None if none did."""
    known = [
        one.epoch
        for one in epoch_changes
        if one.epoch <= default.before.epoch and one.previous_end.has(default.gtid, default.time)
    ]
    return Point(max(known), 0, 0) if known else None
