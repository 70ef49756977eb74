"""Creates and takes subscriptions: one cursor for each consumer, one holder for each cursor."""

from __future__ import annotations

import os
import secrets
import socket
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Literal

from cdc_lib.consumers.backlog import earliest
from cdc_lib.consumers.cursors import EpochPosition, ends, fresh, leased
from cdc_lib.consumers.filter import checked
from cdc_lib.consumers.subscription import Subscription
from cdc_lib.errors import ConfigError, ConsumerHeld
from cdc_lib.model.cursor import DRAIN, LAKE, Cursor
from cdc_lib.model.subscription import Interest, Lease
from cdc_lib.ports import Clock, CursorStore, ObjectStore
from cdc_lib.store.cursors import required_cursor
from cdc_lib.store.manifests import load_manifest
from cdc_lib.store.windows import stored_windows

From = Literal["earliest", "latest"]
"""Where a consumer without a cursor begins: with the oldest stored batch, or after the newest."""

LEASE = timedelta(seconds=60)
"""How long after its last renewal a holder can be replaced."""

OWN = frozenset({DRAIN, LAKE})
"""Cursors of the pipeline, which cannot be subscribed to."""


class SystemClock:
    """The clock of this machine."""

    def now(self) -> datetime:
        """Return the time in UTC."""
        return datetime.now(UTC)


def _this_process() -> str:
    return f"process {os.getpid()} on {socket.gethostname()}"


@dataclass(frozen=True, slots=True)
class Holder:
    """Who takes a subscription.

    Args:
        name: name for people.
        lease: how long the subscription is reserved after the last renewal.
        clock: clock of the leases.
    """

    name: str = field(default_factory=_this_process)
    lease: timedelta = LEASE
    clock: Clock = field(default_factory=SystemClock)


def subscribe(
    store: ObjectStore,
    cursors: CursorStore,
    source: str,
    consumer: str,
    interest: Interest | None = None,
    *,
    start: From = "earliest",
    holder: Holder | None = None,
) -> Subscription:
    """Take the subscription of a consumer; create it if it does not exist.

    Args:
        store: the object store.
        cursors: the cursor store.
        source: name of the source.
        consumer: name of the consumer; an existing cursor continues at its position.
        interest: which tables and columns it wants from now on; None keeps the earlier interest, at first everything.
        start: where it begins if it has no cursor.
        holder: who takes it; None for this process.

    Raises:
        ConsumerHeld: another process holds it.
        ConfigError: a pattern or the name is wrong.
        CursorMoved: the source was never planned, or another process took it at the same time.
    """
    if consumer in OWN:
        raise ConfigError(f"{consumer!r} is a cursor of the pipeline itself", hint="Give the consumer another name.")
    if interest is not None:
        checked(interest)
    holder = holder or Holder()
    cursor = cursors.load(source, consumer)
    if cursor is not None:
        refuse_held(cursor, holder.clock)
        made = cursor
    else:
        at = first_position(store, drain_cursor(cursors, source), start)
        made = fresh(source, consumer, at, now=holder.clock.now(), by=holder.name, why=f"subscribed from {start}")
    new_interest = interest or made.interest or Interest()
    mine = Lease(holder.name, secrets.token_hex(8), holder.clock.now() + holder.lease)
    taken = cursors.swap(cursor, leased(replace(made, interest=new_interest), mine))
    return Subscription(store, cursors, taken, holder.clock, holder.lease)


def refuse_held(cursor: Cursor, clock: Clock) -> None:
    """Refuse a cursor with a valid lease.

    Raises:
        ConsumerHeld: the error names the holder.
    """
    lease = cursor.lease
    if lease is not None and not lease.is_over(clock.now()):
        raise ConsumerHeld(
            f"the consumer {cursor.consumer} is held by {lease.holder}",
            hint="Stop that one, or wait until its lease is over.",
            source=cursor.source,
            consumer=cursor.consumer,
            holder=lease.holder,
            until=lease.expires_at.isoformat(timespec="seconds"),
        )


def drain_cursor(cursors: CursorStore, source: str) -> Cursor:
    """Return the drain cursor.

    Raises:
        CursorMoved: there is none yet.
    """
    return required_cursor(cursors, source, DRAIN)


def first_position(store: ObjectStore, drain: Cursor, start: From) -> EpochPosition:
    """Return where a consumer without a cursor begins."""
    at = EpochPosition(drain.epoch, drain.position, drain.identity)
    if start == "latest":
        return at
    windows = stored_windows(store, drain.source)
    point = earliest(windows, ends(drain))
    first = next((window for window in windows if window.start == point), None)
    manifest = load_manifest(store, first.key) if first is not None else None
    if manifest is None or manifest.window is None:
        return at
    return EpochPosition(manifest.epoch, manifest.window.start, manifest.identity)
