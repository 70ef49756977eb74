"""Decides up to which time the lake has every commit of a source, for the days that end. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from cdc_lib.model.complete import Complete
from cdc_lib.model.cursor import Cursor
from cdc_lib.model.merge_plan import Cut
from cdc_lib.model.waiting import unmerged


@dataclass(frozen=True, slots=True)
class DayProgress:
    """The progress of the lake at one moment.

    Args:
        cut: the last published cut; None before the first.
        drain: the drain cursor; None before the first plan.
        lake: the lake cursor; None before the first plan.
        complete: when the lake last had everything up to the end of the binlog; None if it never had.
    """

    cut: Cut | None
    drain: Cursor | None
    lake: Cursor | None
    complete: Complete | None


def merged_to(known: DayProgress) -> datetime | None:
    """Return the time (UTC) up to which the lake has every commit, by the clocks of the server and of this machine.

    It is the commit time of the last merged transaction; of a source without commits, the time when its server was asked for
    the end of its binlog, and the lake had all of it. None if the lake has no cut, or misses rows of a table: a snapshot of the
    whole table waits. A quarantined table is no reason to wait, because nobody knows until when.

    A clock alone proves nothing: a commit time that is later than this machine's time counts as that.
    """
    drain, lake = known.drain, known.lake
    if known.cut is None or drain is None or lake is None or _misses_rows(drain, lake):
        return None
    times = [_last_commit(lake, known.cut), _asked(known.complete)]
    return max((one for one in times if one is not None), default=None)


def _misses_rows(drain: Cursor, lake: Cursor) -> bool:
    return bool(drain.tables_to_resnapshot) or any(task.selection is None for task in unmerged(drain, lake))


def _last_commit(lake: Cursor, cut: Cut) -> datetime | None:
    """Return the commit time of the last merged transaction; one that a session set to the future does not count."""
    if lake.event_time is None:
        return None
    return min(lake.event_time, lake.last.time if lake.last is not None else lake.event_time, cut.at)


def _asked(complete: Complete | None) -> datetime | None:
    if complete is None or complete.server_clock is None:
        return None
    return min(complete.at, complete.server_clock)
