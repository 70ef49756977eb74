"""Progress lines of long work, every few seconds: what is done, how fast, and the time left."""

from __future__ import annotations

from dataclasses import dataclass, field

EVERY = 10.0
"""Seconds between two lines; shorter work prints none."""


@dataclass(slots=True)
class Pace:
    """Counts what is done.

    Args:
        what: the work; the beginning of each line.
        unit: what is counted: "rows", "bytes", "tables".
        total: the total; 0 if unknown.
        began: a clock's seconds at the beginning.
        done: how many are done.
        already: how many of these were done before the beginning.
    """

    what: str
    unit: str
    total: int
    began: float
    done: int = 0
    already: int = 0
    _last_line: float = field(default=0.0)

    def tick(self, more: int, now: float) -> str | None:
        """Count more, and return a line when it is time for one.

        Args:
            more: how many are done since.
            now: the same clock's seconds.
        """
        self.done += more
        if now - max(self._last_line, self.began) < EVERY:
            return None
        self._last_line = now
        return self.line(now)

    def line(self, now: float) -> str:
        """Return the progress line."""
        took = max(now - self.began, 1e-9)
        rate = (self.done - self.already) / took
        text = f"{self.what}: {self.done:,} {self.unit}"
        if self.total > 0:
            text += f" of about {max(self.total, self.done):,}"
        text += f" in {duration(took)}, {rate:,.0f} a second"
        remaining = self.total - self.done
        return f"{text}, about {duration(remaining / rate)} left" if remaining > 0 and rate > 0 else text


def duration(seconds: float) -> str:
    """Return a time as people say it: seconds, minutes or hours."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
