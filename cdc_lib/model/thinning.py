"""Which of many timestamps are kept, so that their number is bounded at any schedule. Pure.

Kept are all of the last hour (at most :data:`NEWEST`), the last of each hour for a day, and then the last of each day.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TypeVar

Id = TypeVar("Id", bound=Hashable)

NEWEST = 60
"""How many of the newest are always kept, also the maximum within the last hour."""

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def thinned(moments: Mapping[Id, datetime], now: datetime) -> set[Id]:
    """Return the ids to keep.

    Args:
        moments: time (UTC) of each id.
        now: current time (UTC).
    """
    newest_first = sorted(moments, key=lambda one: moments[one], reverse=True)
    kept = set(newest_first[:NEWEST])
    taken: set[tuple[timedelta, int]] = set()
    for one in newest_first[NEWEST:]:
        width = HOUR if now - moments[one] < DAY else DAY
        bucket = (width, int((moments[one] - datetime.min.replace(tzinfo=UTC)) / width))
        if bucket not in taken:
            taken.add(bucket)
            kept.add(one)
    return kept
