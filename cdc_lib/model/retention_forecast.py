"""How long a server still keeps the binlog that a cursor needs next."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from cdc_lib.model.backlog import Backlog
from cdc_lib.model.position import Position


@dataclass(frozen=True, slots=True)
class BinlogExpiry:
    """A server's limits for automatic purge of binlog files.

    Args:
        seconds: how old the last change of a file may get; None without an age limit, or if unknown.
        total_bytes: maximum size of all files together; None without such a limit.
        size_variable: the variable that sets this limit; empty without one.
        unknown: why the limits are unknown; empty if they are known.
    """

    seconds: float | None
    total_bytes: int | None = None
    size_variable: str = ""
    unknown: str = ""


@dataclass(frozen=True, slots=True)
class FileTimes:
    """When a binlog file was written, by the server's clock.

    Args:
        made: when it was created; None if unknown.
        ended: when the next file was created; None if there is none, or if unknown.
        now: current time.
    """

    made: datetime | None
    ended: datetime | None
    now: datetime


@dataclass(frozen=True, slots=True)
class RetentionForecast:
    """The time left until a server may purge the binlog file of a cursor.

    Args:
        position: position of the cursor.
        pending_bytes: bytes between it and the end of the binlog.
        retention_seconds: how old the last change of a file may get; None without an age limit.
        expires_at: when the server may purge the file for its age; None if it never does, or if unknown.
        seconds_left: time until then; 0 if it is due or purged; None like ``expires_at``.
        still_written: whether the file is the last one: ``expires_at`` then assumes that the file ends now.
        bytes_per_second: recent drain rate of a backlog; None if unknown.
        catch_up_seconds: time to drain ``pending_bytes`` at that rate; None without a rate.
        room_bytes: bytes that the server may still write before its size limit purges the file; None without a limit.
        room_seconds: time until then at the write rate since the file was created; None without a rate.
        purged: whether the file is already purged.
        unknown: why ``expires_at`` is unknown; empty if it is known.
    """

    position: Position
    pending_bytes: int
    retention_seconds: float | None
    expires_at: datetime | None
    seconds_left: float | None
    still_written: bool
    bytes_per_second: float | None
    catch_up_seconds: float | None
    room_bytes: int | None
    room_seconds: float | None
    purged: bool = False
    unknown: str = ""

    @property
    def backlog(self) -> Backlog | None:
        """What is not drained yet; None where the server purged some of it."""
        return None if self.purged else Backlog(self.pending_bytes, self.catch_up_seconds)

    @property
    def shortest(self) -> float | None:
        """Seconds until the age or size limit may purge the file; None if neither does, or if both are unknown."""
        return min((s for s in (self.seconds_left, self.room_seconds) if s is not None), default=None)

    def is_short(self, warning: timedelta, catch_ups: float = 3) -> bool:
        """Return whether less is left than the warning time, or than ``catch_ups`` times the catch-up time."""
        minimum = max(warning.total_seconds(), catch_ups * (self.catch_up_seconds or 0.0))
        return self.purged or (self.shortest is not None and self.shortest < minimum)
