"""Collects windows from the store until there are enough rows."""

from __future__ import annotations

from dataclasses import dataclass, field

from cdc_lib.consumers.backlog import following
from cdc_lib.consumers.batch_slice import BatchSlice
from cdc_lib.consumers.cursors import acknowledged_to, ends
from cdc_lib.consumers.loading import load_part
from cdc_lib.errors import BatchesMissing
from cdc_lib.model.cursor import DRAIN, EpochChange
from cdc_lib.model.position import Point
from cdc_lib.model.quarantine import excluded_tables
from cdc_lib.model.subscription import Interest
from cdc_lib.model.xa import OpenTransaction
from cdc_lib.ports import CursorStore, ObjectStore
from cdc_lib.store.windows import known_windows


@dataclass(slots=True)
class Collected:
    """The windows that were collected so far.

    Args:
        start: where the first one begins.
        at: where the last one ends.
        opened: XA transactions that are open at the end.
        passed: epoch changes that the consumer has passed, including these windows.
        parts: the windows.
        rows: maximum number of matching rows.
    """

    start: Point
    at: Point
    opened: tuple[OpenTransaction, ...]
    passed: tuple[EpochChange, ...] = ()
    parts: list[BatchSlice] = field(default_factory=list)
    rows: int = 0

    @property
    def id(self) -> str:
        """The id of a batch with these bounds."""
        return f"{self.start.sortable}-{self.at.sortable}"


def collect(
    store: ObjectStore, cursors: CursorStore, source: str, interest: Interest, found: Collected, batch_size: int
) -> bool:
    """Collect the next windows, up to the drain cursor; returns whether the batch is full.

    Args:
        store: the object store.
        cursors: the cursor store.
        source: name of the source.
        interest: tables and columns of the counted rows.
        found: the collected windows; new ones are added.
        batch_size: rows of a full batch.

    Raises:
        BatchesMissing: the next window is no longer stored, and nothing was collected.
        StoreError: the store cannot be read.
    """
    drain = cursors.load(source, DRAIN)
    if drain is None or acknowledged_to(drain) <= found.at:
        return False
    stored = known_windows(store, source, drain, found.at)
    try:
        for step in following(stored, found.at, ends(drain), source):
            epochs = range(found.at.epoch + 1, step.window.start.epoch + 1)
            found.passed += tuple(epoch_change for epoch_change in drain.epoch_changes if epoch_change.epoch in epochs)
            part, found.opened = load_part(store, step, found.opened, stored, found.passed)
            # A window that was drained before a fault was known may have rows of the quarantined table. A table with a new
            # snapshot has all of its changes here, because consumers do not read snapshots.
            faulty = [record for record in drain.quarantine if record.fault is not None]
            part = part.without(excluded_tables(faulty, part.window.epoch, part.window.start))
            found.parts.append(part)
            found.at = step.window.stop
            found.rows += part.most_rows(interest)
            if found.rows >= batch_size:
                return True
    except BatchesMissing:
        if not found.parts:
            raise
        return True  # windows before the gap are complete; the next call raises
    return False
