"""The lag: age of the oldest change that is not in the lake. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from cdc_lib.model.binlog_checkpoint import BinlogCheckpoint
from cdc_lib.model.cursor import Cursor
from cdc_lib.model.observation import ServerObservation
from cdc_lib.plan.windows import bytes_left


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


def in_this_epoch(drain: Cursor, lake: Cursor) -> BinlogCheckpoint:
    """Return the position from which on the lake lacks changes of the drain cursor's epoch."""
    return drain.epoch_changes[-1].new_start if lake.epoch < drain.epoch and drain.epoch_changes else lake.checkpoint


def lag_bytes(drain: Cursor | None, lake: Cursor | None, seen: ServerObservation | None) -> int | None:
    """Return the binlog of this epoch that the lake lacks; None where the lake has more than was seen of it, or its file was purged."""
    if drain is None or lake is None or seen is None:
        return None
    here = in_this_epoch(drain, lake)
    if not seen.identity.is_same_server(here.identity) or here.position > seen.binlog_end:
        return None
    return bytes_left(here.position, seen.files, seen.binlog_end)
