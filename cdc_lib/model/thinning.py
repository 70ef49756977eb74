"""Which of many moments are kept, so that their number is bounded however often something runs: pure.

All of the last hour stay (at most :data:`NEWEST`), then the last one of each hour for a day, then the last one of each day. So a
schedule of a minute and one of a second leave the same number.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TypeVar

Id = TypeVar("Id", bound=Hashable)

NEWEST = 60
"""So many of the newest always stay, and no more than these within the last hour."""

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def thinned(moments: Mapping[Id, datetime], now: datetime) -> set[Id]:
    """Return which moments stay.

    Args:
        moments: times (UTC) by what they are of.
        now: the time (UTC).
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
