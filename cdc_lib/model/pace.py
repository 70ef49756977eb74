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
        unit: what is counted: "row", "byte", "table".
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
    _new: int = field(default=0)

    def tick(self, more: int, now: float) -> str | None:
        """Count more, and return a line when it is time for one and there is more than in the last one.

        Args:
            more: how many are done since.
            now: the same clock's seconds.
        """
        self.done += more
        self._new += more
        if not self._new or now - max(self._last_line, self.began) < EVERY:
            return None
        self._last_line, self._new = now, 0
        return self.line(now)

    def line(self, now: float) -> str:
        """Return the progress line."""
        took = max(now - self.began, 1e-9)
        rate = (self.done - self.already) / took
        text = f"{self.what}: {counted(self.done, self.unit)}"
        if self.total > 0:
            text += f" of about {max(self.total, self.done):,}"
        text += f" in {duration(took)}, {rate:,.0f} a second" if rate >= 1 else f" in {duration(took)}"
        remaining = self.total - self.done
        return f"{text}, about {duration(remaining / rate)} left" if remaining > 0 and rate > 0 else text


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, in the plural unless there is one."""
    plural = "es" if noun.endswith("ch") else "s"
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}{plural}"


def listed(*counts: tuple[int, str]) -> str:
    """Return the counts that are not zero, each with its noun; empty if all are."""
    return ", ".join(counted(count, noun) for count, noun in counts if count)


def duration(seconds: float) -> str:
    """Return a time as people say it: seconds, minutes or hours."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
