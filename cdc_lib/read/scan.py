"""All rows of a range in key order, as a stream.

Files overlap: a merge writes new rows into new files. A row group is read when the stream reaches the least key that it may have.
What was read waits until no other row group can have a key before it. So the memory is that of the row groups that overlap.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdc_lib.apply.key_rows import Rows
from cdc_lib.read.bounds import Bound, Point, greatest_point, least_point
from cdc_lib.read.columns import ReadColumn
from cdc_lib.read.key_range import ScanRange, before
from cdc_lib.read.manifests import LiveFile
from cdc_lib.read.snapshot import PinnedSnapshot, RowGroup, shown

BATCH_ROWS = 65_536
"""Most rows of one batch."""


@dataclass(frozen=True, slots=True)
class _Unread:
    """A file or a row group that is not read yet.

    Args:
        edge: no row is before it, in the order of the scan.
        reverse: whether the scan goes to lesser keys.
        what: what to read.
    """

    edge: Point
    reverse: bool
    what: LiveFile | RowGroup

    def __lt__(self, other: _Unread) -> bool:
        return other.edge < self.edge if self.reverse else self.edge < other.edge


class Scan:
    """One pass over a range of keys.

    Args:
        snapshot: what is read.
        within: the range.
        columns: of the result.
        order: columns by which rows of one key are sorted.
        reverse: whether the last key comes first.
        everything: whether rows that the mode hides are read too.
    """

    def __init__(
        self,
        snapshot: PinnedSnapshot,
        within: ScanRange,
        columns: Sequence[ReadColumn],
        order: Sequence[ReadColumn],
        *,
        reverse: bool,
        everything: bool,
    ) -> None:
        self._snapshot = snapshot
        self._within = within
        self._key = snapshot.key.columns
        self._names = [column.name for column in columns]
        self._order = [column.name for column in (*self._key, *order)]
        more = (column for column in (*self._key, *order) if column.name not in set(self._names))
        self._columns = (*columns, *more)
        self._reverse = reverse
        self._everything = everything
        self._unread: list[_Unread] = []
        self._waiting: list[pa.Table] = []

    def batches(self, limit: int | None) -> Iterator[pa.RecordBatch]:
        """Yield the rows in key order, as far as the limit."""
        left = limit
        for table in self._tables() if limit != 0 else ():
            yield from table.select(self._names).slice(0, left).to_batches(BATCH_ROWS)
            left = None if left is None else left - table.num_rows
            if left is not None and left <= 0:
                return

    def _tables(self) -> Iterator[pa.Table]:
        for file in self._snapshot.files:
            self._put(file, self._snapshot.file_bounds(file))
        while self._unread:
            first = heapq.heappop(self._unread).what
            if isinstance(first, LiveFile):
                for group, bounds in self._snapshot.row_groups(first):
                    self._put(group, bounds)
                continue
            self._read(first)
            yield self._take_ready(self._unread[0].edge if self._unread else None)
        # A file whose row groups are all out of the range may have been the last one.
        yield self._take_ready(None)

    def _put(self, what: LiveFile | RowGroup, bounds: Sequence[Bound]) -> None:
        key = bounds[: len(self._key)]
        hidden = self._snapshot.mode == "scd2" and not self._everything and not bounds[-1].may_have(1)
        if not hidden and self._within.may_have(key):
            edge = greatest_point(key) if self._reverse else least_point(key)
            heapq.heappush(self._unread, _Unread(edge, self._reverse, what))

    def _read(self, group: RowGroup) -> None:
        """Read the rows of a row group that are in the range, and keep them in the order of the scan."""
        snapshot = self._snapshot
        keys = snapshot.key_rows(group)
        found: Rows = np.flatnonzero(self._within.mask(keys.keys))
        rows = snapshot.live(group, shown(snapshot.mode, keys, found, everything=self._everything))
        if len(rows):
            self._waiting.append(self._sorted(snapshot.read(group, rows, self._columns)))

    def _take_ready(self, edge: Point | None) -> pa.Table:
        """Take the waiting rows that are before the edge of all that is not read."""
        counts = [self._ready(table, edge) for table in self._waiting]
        ready = [table.slice(0, count) for table, count in zip(self._waiting, counts, strict=True) if count]
        left = [table.slice(count) for table, count in zip(self._waiting, counts, strict=True)]
        self._waiting = [table for table in left if table.num_rows]
        if not ready:
            return pa.schema([column.field for column in self._columns]).empty_table()
        return self._sorted(pa.concat_tables(ready)) if len(ready) > 1 else ready[0]

    def _ready(self, table: pa.Table, edge: Point | None) -> int:
        """Return how many rows of a sorted table no unread row can be before."""
        if edge is None:
            return int(table.num_rows)
        keys = [table.column(column.name).combine_chunks() for column in self._key]
        mask = before(keys, edge, or_equal=self._reverse)
        return int(np.count_nonzero(~mask if self._reverse else mask))

    def _sorted(self, table: pa.Table) -> pa.Table:
        # Whether a part of the key is null is compared first: null comes first, and last in reverse.
        with_nulls = [name for name in self._order if table.column(name).null_count]
        keys = {f"valid {name}": table.column(name).is_valid() for name in with_nulls}
        names = [one for name in self._order for one in ([f"valid {name}", name] if name in with_nulls else [name])]
        keys |= {name: table.column(name) for name in self._order}
        direction = "descending" if self._reverse else "ascending"
        indices = pc.sort_indices(pa.table(keys), sort_keys=[(name, direction) for name in names]).to_numpy()
        return table if bool(np.all(indices[1:] > indices[:-1])) else table.take(pa.array(indices))
