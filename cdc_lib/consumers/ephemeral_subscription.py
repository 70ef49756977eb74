"""Reads batches without a cursor or lease: no position is stored."""

from __future__ import annotations

from cdc_lib.consumers.batch import Batch
from cdc_lib.consumers.filter import checked
from cdc_lib.consumers.subscribe import From, drain_cursor, first_position
from cdc_lib.consumers.window_reader import Collected, collect
from cdc_lib.model.position import Point
from cdc_lib.model.subscription import Interest
from cdc_lib.ports import CursorStore, ObjectStore


class EphemeralSubscription:
    """A read position in the batches of a source, in memory only.

    Args:
        store: the object store.
        cursors: the cursor store.
        source: name of the source.
        interest: which tables and columns to read.
        start: where to begin.

    Raises:
        ConfigError: a pattern is wrong.
        CursorMoved: the source was never planned.
    """

    def __init__(
        self, store: ObjectStore, cursors: CursorStore, source: str, interest: Interest, start: From = "earliest"
    ) -> None:
        self._store = store
        self._cursors = cursors
        self._source = source
        self._interest = checked(interest)
        first = first_position(store, drain_cursor(cursors, source), start)
        at = Point.at(first.epoch, first.position)
        self._end = Collected(at, at, ())

    def get(self, batch_size: int) -> Batch:
        """Return the next stored windows, up to a full batch; the batch has no id if there are none.

        Raises:
            BatchesMissing: the next batch is no longer stored.
            StoreError: the store cannot be read.
        """
        found = Collected(self._end.at, self._end.at, self._end.opened, self._end.passed)
        collect(self._store, self._cursors, self._source, self._interest, found, batch_size)
        self._end = found
        return Batch(found.id if found.parts else None, found.parts, self._interest, self._store, lambda _: None)
