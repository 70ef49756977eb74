"""A clock that tests set and move."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


class SetClock:
    """A clock that moves only by :meth:`go`."""

    def __init__(self) -> None:
        self.at = datetime(2026, 1, 1, tzinfo=UTC)

    def now(self) -> datetime:
        """Return the time."""
        return self.at

    def go(self, seconds: float) -> None:
        """Move the clock forward."""
        self.at += timedelta(seconds=seconds)
