"""The moves of a consumer's cursor. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from cdc_lib.consumers.batch_slice import BatchSlice
from cdc_lib.model.cursor import KEPT_MOVES, Cursor, EpochChange, Move
from cdc_lib.model.position import Point, Position
from cdc_lib.model.server_identity import ServerIdentity
from cdc_lib.model.subscription import Lease
from cdc_lib.model.xa import OpenTransaction


def acknowledged_to(cursor: Cursor) -> Point:
    """Return the point before which everything is acknowledged."""
    return Point.at(cursor.epoch, cursor.position)


def ends(drain: Cursor) -> dict[int, Point]:
    """Return the point that the drain acknowledged, by epoch."""
    before = {
        epoch_change.epoch - 1: Point.at(epoch_change.epoch - 1, epoch_change.previous_end.position)
        for epoch_change in drain.epoch_changes
    }
    return {**before, drain.epoch: acknowledged_to(drain)}


@dataclass(frozen=True, slots=True)
class EpochPosition:
    """An epoch, a position in it, and the server that it belongs to."""

    epoch: int
    position: Position
    identity: ServerIdentity


def fresh(source: str, consumer: str, at: EpochPosition, *, now: datetime, by: str, why: str) -> Cursor:
    """Return the first cursor of a consumer.

    Args:
        source: name of the source.
        consumer: its name.
        at: where it begins.
        now: current time, for people.
        by: who subscribes.
        why: ``start`` of the subscription, for people.
    """
    move = Move(now, "start", None, at.position, by, why)
    return Cursor(source, consumer, 0, at.epoch, at.identity, at.position, moves=(move,))


def leased(cursor: Cursor, lease: Lease | None) -> Cursor:
    """Set the holder of the subscription, or release it."""
    return replace(cursor, lease=lease)


def consumed(
    cursor: Cursor,
    parts: Sequence[BatchSlice],
    opened: tuple[OpenTransaction, ...],
    passed: tuple[EpochChange, ...],
    *,
    at: datetime,
    by: str,
) -> Cursor:
    """Move over the windows of a batch; they start at the cursor, perhaps in a later epoch.

    Args:
        cursor: the cursor where the batch begins.
        parts: windows of the batch.
        opened: XA transactions that are open after it.
        passed: epoch changes that the consumer has passed.
        at: current time, for people.
        by: who acknowledges.
    """
    last = parts[-1]
    manifest = last.manifest
    times = [part.manifest.last_time for part in parts if part.manifest.last_time is not None]
    return replace(
        cursor,
        epoch=manifest.epoch,
        identity=manifest.identity,
        position=last.stop,
        gtid_set="",  # only the drain cursor knows the set at its position
        event_time=max(times, default=cursor.event_time),
        prepared=opened,
        epoch_changes=passed,
        moves=(*cursor.moves, Move(at, "ack", cursor.position, last.stop, by))[-KEPT_MOVES:],
    )
