"""Days that are complete in the lake: pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo

DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Announcement:
    """The days that a task was about to announce. Only Airflow knows whether it did: it did if it succeeded.

    Args:
        days: in order.
        dag_id: of the task.
        run_id: of its run.
        task_id: of the task.
    """

    days: tuple[date, ...]
    dag_id: str
    run_id: str
    task_id: str


@dataclass(frozen=True, slots=True)
class AnnouncedDays:
    """How far the days of a source are announced.

    Args:
        source: name of the source.
        through: last day that is announced, and all before it; at first the day before the first one that will be.
        last: the last announcement that was begun; None before the first.
    """

    source: str
    through: date
    last: Announcement | None = None


def start_of(day: date, zone: tzinfo) -> datetime:
    """Return when a day begins (UTC): its last midnight, where clocks that go back give it two."""
    midnight = datetime.combine(day, time(), zone)
    return max(midnight.replace(fold=fold).astimezone(UTC) for fold in (0, 1))


def end_of(day: date, zone: tzinfo) -> datetime:
    """Return when a day ends (UTC)."""
    return start_of(day + DAY, zone)


def last_ended(at: datetime, zone: tzinfo) -> date:
    """Return the last day that has ended at a time (UTC)."""
    day = at.astimezone(zone).date()
    while end_of(day, zone) > at:
        day -= DAY
    return day


def days_after(through: date, last: date) -> tuple[date, ...]:
    """Return the days after one up to another, in order; none if it is not later."""
    return tuple(through + DAY * number for number in range(1, (last - through).days + 1))


def advanced(through: date, announced: Iterable[date]) -> date:
    """Return the last day up to which all days are announced.

    Args:
        through: a day up to which all are.
        announced: more days, in any order.
    """
    known = set(announced)
    while through + DAY in known:
        through += DAY
    return through
