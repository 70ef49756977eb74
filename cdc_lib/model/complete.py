"""When the lake last had every change of a source."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Complete:
    """The lake had every change and every row.

    Args:
        source: name of the source.
        at: when the server was asked (UTC).
        server_clock: the server's own time (UTC), read before the end of its binlog; None if unknown.
    """

    source: str
    at: datetime
    server_clock: datetime | None = None
