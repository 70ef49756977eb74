"""A consumer's way through the batches: get, ack, roll back.

Rule 1: batches are in the stream's order, each begins where the previous one ended, and none is skipped.
Rule 2: only windows that the drain cursor has acknowledged are returned.
Rule 3: several batches may be in flight; only the oldest can be acknowledged. A rollback, a close or a crash drops batches in
flight, and they are returned again: at least once.
Rule 4: one holder at a time. A lease keeps others out; the cursor's generation fences a holder whose lease ran out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta

from cdc_lib.consumers.batch import Batch
from cdc_lib.consumers.cursors import acknowledged_to, consumed, leased
from cdc_lib.consumers.window_reader import Collected, collect
from cdc_lib.errors import AckError, CursorMoved
from cdc_lib.model.closing import ClosedAtEnd
from cdc_lib.model.cursor import Cursor, EpochChange
from cdc_lib.model.position import Point
from cdc_lib.model.subscription import Interest, Lease
from cdc_lib.model.xa import OpenTransaction
from cdc_lib.ports import Clock, CursorStore, ObjectStore

POLL = 0.5
"""Seconds between two reads of the drain cursor while a consumer waits."""

BATCH_ROWS = 100_000
"""Rows of a full batch."""


@dataclass(frozen=True, slots=True)
class _Flight:
    """A batch in flight."""

    batch: Batch
    stop: Point
    opened: tuple[OpenTransaction, ...]
    passed: tuple[EpochChange, ...]


@dataclass(slots=True)
class Subscription(ClosedAtEnd):
    """The subscription of one consumer, held by this object and used by one thread; see :func:`cdc_lib.consumers.subscribe.subscribe`.

    Args:
        store: the object store.
        cursors: the cursor store.
        cursor: the consumer's cursor, with this object's lease in it.
        clock: clock of the leases.
        lease_for: duration of a lease; each ack and each ``get`` in its second half renews it.
        wait: sleeps for some seconds.
    """

    store: ObjectStore
    cursors: CursorStore
    cursor: Cursor
    clock: Clock
    lease_for: timedelta
    wait: Callable[[float], None] = time.sleep
    _in_flight: list[_Flight] = field(default_factory=list)
    _closed: bool = False

    @property
    def interest(self) -> Interest:
        """What the consumer wants."""
        return self.cursor.interest or Interest()

    @property
    def in_flight(self) -> tuple[str, ...]:
        """Ids of the batches that are neither acknowledged nor rolled back, oldest first."""
        return tuple(flight.batch.id or "" for flight in self._in_flight)

    def get(self, batch_size: int = BATCH_ROWS, timeout: float | None = None) -> Batch:
        """Return the next windows, up to a full batch.

        Windows are not split: a batch ends with the window that fills it. Windows without matching rows are included; a batch of
        only such windows is acknowledged at once and not returned.

        Args:
            batch_size: rows of a full batch.
            timeout: seconds to wait for a full batch; None returns at once what is stored now.

        Returns:
            The batch; its ``id`` is None if there was nothing.

        Raises:
            BatchesMissing: the next batch is no longer stored.
            CursorMoved: another holder took over.
            StoreError: the store cannot be read.
        """
        self._hold()
        until = time.monotonic() + (timeout or 0.0)
        found = self._end()
        while not collect(self.store, self.cursors, self.cursor.source, self.interest, found, batch_size):
            left = until - time.monotonic()
            if left <= 0:
                break
            self.wait(min(POLL, left))
            self._hold()
        return self._handed_out(found)

    def ack(self, batch_id: str) -> None:
        """Move the cursor over a batch.

        Raises:
            AckError: it is not the oldest in flight.
            CursorMoved: another holder took over, or the cursor was moved.
        """
        self._refuse_closed()
        oldest = self._in_flight[0] if self._in_flight else None
        if oldest is None or oldest.batch.id != batch_id:
            raise AckError(
                f"batch {batch_id} is not the oldest in flight",
                hint="Batches are acknowledged in the order in which they were got; after a rollback they are got again.",
                source=self.cursor.source,
                consumer=self.cursor.consumer,
                oldest=oldest.batch.id if oldest else "none",
            )
        self._move(oldest)
        del self._in_flight[0]

    def rollback(self, batch_id: str | None = None) -> None:
        """Drop batches in flight, so that they are returned again.

        Args:
            batch_id: the first one to drop; later ones are dropped too, because none may be skipped. None drops all.

        Raises:
            AckError: it is not in flight.
        """
        self._refuse_closed()
        if batch_id is None:
            self._in_flight.clear()
            return
        if batch_id not in self.in_flight:
            raise AckError(
                f"batch {batch_id} is not in flight", hint=f"In flight: {', '.join(self.in_flight) or 'none'}."
            )
        del self._in_flight[self.in_flight.index(batch_id) :]

    def renew(self) -> None:
        """Renew the lease during work that takes longer than the lease.

        Raises:
            CursorMoved: another holder took over.
        """
        self._refuse_closed()
        self._swap(leased(self.cursor, self._renewed()))

    def close(self) -> None:
        """Release the subscription and drop batches in flight; another process can take it at once."""
        if self._closed:
            return
        self._in_flight.clear()
        try:
            self._swap(leased(self.cursor, None))
        except CursorMoved:
            pass  # another process holds it already: there is nothing to release
        finally:
            self._closed = True

    def __iter__(self) -> Iterator[Batch]:
        """Yield batches, and wait for more, without end.

        The next batch is returned even if the last one is not acknowledged; acks must be in order later.
        """
        while True:
            batch = self.get()
            if batch:
                yield batch
            else:
                self.wait(POLL)

    @property
    def _holder(self) -> str:
        return self.cursor.lease.holder if self.cursor.lease else ""

    def _end(self) -> Collected:
        """Return the beginning of the next batch."""
        if self._in_flight:
            last = self._in_flight[-1]
            return Collected(last.stop, last.stop, last.opened, last.passed)
        at = acknowledged_to(self.cursor)
        return Collected(at, at, self.cursor.prepared, self.cursor.epoch_changes)

    def _handed_out(self, found: Collected) -> Batch:
        nothing = Batch(None, (), self.interest, self.store, self.ack)
        if not found.parts:
            return nothing
        batch = Batch(found.id, found.parts, self.interest, self.store, self.ack)
        flight = _Flight(batch, found.at, found.opened, found.passed)
        if not self._in_flight and found.rows == 0 and not batch.ddl:
            # It has no matching rows, and a cursor that does not move would block garbage collection.
            self._move(flight)
            return nothing
        self._in_flight.append(flight)
        return batch

    def _move(self, flight: _Flight) -> None:
        now, by = self.clock.now(), self._holder
        moved = consumed(self.cursor, flight.batch.parts, flight.opened, flight.passed, at=now, by=by)
        self._swap(leased(moved, self._renewed()))

    def _hold(self) -> None:
        """Renew the lease in its second half."""
        self._refuse_closed()
        lease = self.cursor.lease
        if lease is None or lease.expires_at - self.clock.now() < self.lease_for / 2:
            self._swap(leased(self.cursor, self._renewed()))

    def _renewed(self) -> Lease:
        lease = self.cursor.lease
        if lease is None:
            raise AssertionError("a subscription that is open has a lease")
        return Lease(lease.holder, lease.token, self.clock.now() + self.lease_for)

    def _swap(self, new: Cursor) -> None:
        self.cursor = self.cursors.swap(self.cursor, new)

    def _refuse_closed(self) -> None:
        if self._closed:
            raise AckError("the subscription is closed", hint="Subscribe again.", consumer=self.cursor.consumer)
