"""A clock that is until it is told to go."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


class SetClock:
    """Tells the time that it was set to."""

    def __init__(self) -> None:
        self.at = datetime(2026, 1, 1, tzinfo=UTC)

    def now(self) -> datetime:
        """Return the time."""
        return self.at

    def go(self, seconds: float) -> None:
        """Let time pass."""
        self.at += timedelta(seconds=seconds)
