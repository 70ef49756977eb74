"""The lag: age of the oldest change that is not in the lake. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class LakeProgress:
    """The progress of a source at one moment.

    Args:
        published: whether the lake has published a cut: before that, its progress is unknown.
        waiting: whether the lake lacks windows or snapshots that are planned, drained or acknowledged.
        at_binlog_end: whether the lake is at the end of the binlog; None if the server cannot be reached, or another one answers.
        oldest: commit time of the first change in the first waiting batch; None if none waits, or it has no time.
        merged: commit time of the last merged change; None before the first.
        complete: when the lake last had every change; None if it never had.
        began: when the source began; None if unknown.
    """

    published: bool
    waiting: bool
    at_binlog_end: bool | None
    oldest: datetime | None
    merged: datetime | None
    complete: datetime | None
    began: datetime | None


def lag_of(known: LakeProgress, now: datetime) -> float | None:
    """Return the lag in seconds: 0 when the lake has every change; None if unknown.

    While the server cannot be reached, the lag grows from the last time when the lake had every change: later commits are
    unknown.
    """
    if not known.published:
        return None
    if known.at_binlog_end and not known.waiting:
        return 0.0
    # Waiting changes are newer than the last time when none waited.
    since = max(filter(None, (known.oldest or known.merged, known.complete)), default=known.began)
    return None if since is None else max(0.0, (now - since).total_seconds())
