"""The hours of the day (UTC) in which ranges are compared. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta

DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Hours:
    """A time of each day, in UTC.

    Args:
        start: its first moment.
        end: the moment after it; before ``start`` if it goes over midnight. Equal to ``start``: the whole day.
    """

    start: time
    end: time

    @classmethod
    def of(cls, text: str | None) -> Hours:
        """Return the hours from a checked text such as ``22:00-06:00``; None is the whole day."""
        if text is None:
            return ALL_DAY
        start, end = (time.fromisoformat(part) for part in text.split("-"))
        return cls(start, end)

    @property
    def length(self) -> timedelta:
        """How long they are, up to a day."""
        start, end = (timedelta(hours=one.hour, minutes=one.minute) for one in (self.start, self.end))
        return end - start if end > start else end - start + DAY

    def contains(self, at: datetime) -> bool:
        """Whether a moment is among them."""
        return any(start <= at < start + self.length for start in self._starts(at, at))

    def within(self, begin: datetime, end: datetime) -> timedelta:
        """Return how much of the time between two moments is among them."""
        total = timedelta(0)
        for start in self._starts(begin, end):
            total += max(timedelta(0), min(end, start + self.length) - max(begin, start))
        return total

    def next_run(self, now: datetime, gap: timedelta) -> datetime:
        """Return when the next run is at the latest, if there is one in each gap."""
        after = now + gap
        if self.contains(after):
            return after
        return min(start for start in self._starts(after, after + DAY) if start > after) + gap

    def _starts(self, begin: datetime, end: datetime) -> list[datetime]:
        day = begin.date() - DAY
        days = (end.date() - day).days + 1
        return [datetime.combine(day + number * DAY, self.start, UTC) for number in range(days)]


ALL_DAY = Hours(time(0), time(0))
