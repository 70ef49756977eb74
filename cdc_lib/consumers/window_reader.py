"""Taking windows from the store until there are enough rows."""

from __future__ import annotations

from dataclasses import dataclass, field

from cdc_lib.consumers.backlog import following
from cdc_lib.consumers.batch import BatchSlice
from cdc_lib.consumers.cursors import acknowledged_to, ends
from cdc_lib.consumers.loading import load_part
from cdc_lib.errors import BatchesMissing
from cdc_lib.model.cursor import DRAIN, EpochChange
from cdc_lib.model.position import Point
from cdc_lib.model.quarantine import excluded_tables
from cdc_lib.model.subscription import Interest
from cdc_lib.model.xa import OpenTransaction
from cdc_lib.ports import CursorStore, ObjectStore
from cdc_lib.store.windows import stored_windows


@dataclass(slots=True)
class Collected:
    """What was found so far.

    Args:
        start: where it begins.
        at: where it ends; what comes next begins there.
        opened: XA transactions that are open there.
        passed: beginnings of epochs that the consumer went over, these windows included.
        parts: the windows.
        rows: how many rows of interest they have at most.
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
    """Take what is there after what was collected, up to the drain cursor; tells whether it is enough.

    Args:
        store: where batches lie.
        cursors: where cursors lie.
        source: name of the source.
        interest: whose rows are counted.
        found: what was collected; grows.
        batch_size: rows that are enough.

    Raises:
        BatchesMissing: the next window is no longer stored, and nothing was collected.
        StoreError: the store cannot be read.
    """
    drain = cursors.load(source, DRAIN)
    if drain is None or acknowledged_to(drain) <= found.at:
        return False
    stored = stored_windows(store, source)
    try:
        for step in following(stored, found.at, ends(drain), source):
            epochs = range(found.at.epoch + 1, step.window.start.epoch + 1)
            found.passed += tuple(switch for switch in drain.epoch_changes if switch.epoch in epochs)
            part, found.opened = load_part(store, step, found.opened, stored, found.passed)
            # A window that was drained before it was known may hold rows of a table that is quarantined. A table that is read
            # again has all of its changes here: no snapshot brings them to a consumer.
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
        return True  # what is before the gap is whole; the next call raises
    return False
