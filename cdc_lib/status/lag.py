"""How old the oldest change is that is not in the lake: pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Progress:
    """What is known of a source at one moment.

    Args:
        published: whether the lake has published a cut: before that, nothing is known of how far it is.
        waiting: whether windows or snapshots are planned, drained or acknowledged that the lake does not have.
        at_head: whether the lake is where the binlog ends; None when the server cannot be asked, or another one answers.
        oldest: commit time of the first change of the first batch that waits; None where none waits, or it has no time.
        merged: commit time of the last change that the lake has; None before the first.
        complete: when the lake was last seen to have everything; None when it never was.
        begun: when the source began; None when nobody knows.
    """

    published: bool
    waiting: bool
    at_head: bool | None
    oldest: datetime | None
    merged: datetime | None
    complete: datetime | None
    begun: datetime | None


def lag_of(known: Progress, now: datetime) -> float | None:
    """Return the lag in seconds: 0 when the lake has everything; None when it is unknown.

    While the server cannot be asked it grows from the last moment at which everything was in the lake: nobody knows what
    committed since.
    """
    if not known.published:
        return None
    if known.at_head and not known.waiting:
        return 0.0
    # What waits is younger than the last moment at which nothing did, whatever else is still stored.
    since = max(filter(None, (known.oldest or known.merged, known.complete)), default=known.begun)
    return None if since is None else max(0.0, (now - since).total_seconds())
