"""How long a server still keeps the binlog that a cursor needs next."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from cdc_lib.model.position import Position


@dataclass(frozen=True, slots=True)
class BinlogExpiry:
    """What makes a server purge binlog files automatically.

    Args:
        seconds: how old the last change of a file may get; None when age purges nothing, or when it is unknown.
        total_bytes: how much all files together may hold; None without such a limit.
        size_variable: the variable that sets this limit; empty without one.
        unknown: why nobody can say; empty when the server tells.
    """

    seconds: float | None
    total_bytes: int | None = None
    size_variable: str = ""
    unknown: str = ""


@dataclass(frozen=True, slots=True)
class FileTimes:
    """When a binlog file was written, by the server's clock.

    Args:
        made: when it was made; None when nobody knows.
        ended: when the file after it was made; None when there is none, or nobody knows.
        now: the time.
    """

    made: datetime | None
    ended: datetime | None
    now: datetime


@dataclass(frozen=True, slots=True)
class RetentionForecast:
    """What is left until a server may purge the file that a cursor is in.

    Args:
        position: of the cursor.
        pending_bytes: binlog between it and the end.
        retention_seconds: how old the last change of a file may get; None when age purges nothing.
        expires_at: from when on the server may purge the file for its age; None when it does not, or when it is unknown.
        seconds_left: how long until then; 0 when it is due or gone; None like ``expires_at``.
        still_written: whether the file is the last one: ``expires_at`` is then what it would be if the file ended now.
        bytes_per_second: how fast a backlog was drained lately; None when nothing tells.
        catch_up_seconds: ``pending_bytes`` at that rate; None without one.
        room_bytes: what the server may still write before its size limit takes the file; None without a limit.
        room_seconds: how long that takes at the pace at which it wrote since the file was made; None without a pace.
        purged: whether the file is gone already.
        unknown: why ``expires_at`` cannot be told; empty when it can.
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
    def shortest(self) -> float | None:
        """Seconds until age or size may take the file, whichever is sooner; None when neither does, as far as is known."""
        return min((s for s in (self.seconds_left, self.room_seconds) if s is not None), default=None)

    def is_short(self, warning: timedelta, catch_ups: float = 3) -> bool:
        """Tell whether less is left than a warning time, or than this many times what catching up takes."""
        least = max(warning.total_seconds(), catch_ups * (self.catch_up_seconds or 0.0))
        return self.purged or (self.shortest is not None and self.shortest < least)
