"""A snapshot of a lake table with the waiting changes over it.

The new rows are one more data file, in memory. Rows of the lake table that they replace are hidden like deleted ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from cdc_lib.apply.key_rows import AskedKeys, KeyRows, Rows
from cdc_lib.apply.removals import removed_by, with_marks
from cdc_lib.apply.rows import Order, less, order_of
from cdc_lib.model.lake_table import ORDER
from cdc_lib.model.position import Point
from cdc_lib.model.table_commit import Superseded
from cdc_lib.model.table_mode import IS_DELETED
from cdc_lib.read.columns import ReadColumn
from cdc_lib.read.few_rows import FewRowsOfSnapshot
from cdc_lib.read.manifests import LiveFile
from cdc_lib.read.pages.index import PageIndex
from cdc_lib.read.parquet import ParquetFile, ParquetFiles, opened_file
from cdc_lib.read.snapshot import Hit, PinnedSnapshot, RowGroup
from cdc_lib.read.values import row_values

_ROW_GROUP = 10_000
_NUMBERS = count(1)


@dataclass(frozen=True, slots=True)
class WaitingChanges:
    """What waits for a lake table.

    Args:
        keys: the key columns of the last change of each key, also of deleted ones; empty in append mode.
        order: order key of each of these changes.
        rows: the rows to add, in the columns of the lake table.
        superseded: the lake's rows that a statement or snapshot removes or marks.
        until: the position after all changes.
    """

    keys: tuple[pa.Array, ...]
    order: Order
    rows: pa.Table
    superseded: tuple[Superseded, ...]
    until: Point


@dataclass(frozen=True, slots=True)
class _Effect:
    """What the waiting changes do to the rows of a row group.

    Args:
        hidden: whether each row is replaced or removed.
        ended: number of the statement that marks or closes each row; -1 for none.
    """

    hidden: NDArray[np.bool_]
    ended: Rows


class FreshSnapshot(PinnedSnapshot):
    """A pinned snapshot with waiting changes; it never changes.

    Args:
        base: the snapshot of the lake table.
        changed: what waits.
    """

    def __init__(self, base: PinnedSnapshot, changed: WaitingChanges) -> None:
        path = f"waiting:{next(_NUMBERS)}"
        self._changed = changed
        # No file of positions applies to a file with the greatest sequence number.
        self._added = LiveFile(path, changed.rows.num_rows, 2**62, {}, {}, {})
        files = base.parts.files
        with_added = replace(files, data=(*files.data, self._added) if changed.rows.num_rows else files.data)
        super().__init__(replace(base.parts, files=with_added))
        self._parquet = _WithOneMore(self._parquet, self._written(path))
        self._few = FewRowsOfSnapshot(self._parquet, base.parts.cache.pages, self._key)
        self._asked = AskedKeys(changed.keys) if changed.keys and len(changed.keys[0]) else None
        self._effects: dict[tuple[str, int], _Effect | None] = {}

    @property
    def until(self) -> Point | None:
        """The position after all changes that it has."""
        return self._changed.until

    def key_rows(self, group: RowGroup) -> KeyRows:
        """Return the keys of a row group, with the marks that statements bring."""
        rows = super().key_rows(group)
        effect = self._effect(group) if rows.marked is not None else None
        if effect is None or rows.marked is None:
            return rows
        ended = effect.ended >= 0
        return replace(rows, marked=rows.marked & ~ended if self.mode == "scd2" else rows.marked | ended)

    def live(self, group: RowGroup, rows: Rows) -> Rows:
        """Return those of the rows that are not deleted, and that no waiting change replaces."""
        rows = super().live(group, rows)
        effect = self._effect(group) if len(rows) else None
        return rows if effect is None else rows[~effect.hidden[rows]]

    def deletes_of(self, file: LiveFile) -> frozenset[object]:
        """Return what deletes rows of a file; the waiting changes may delete rows of any."""
        return super().deletes_of(file) | {self._added.path}

    def read_hits(self, hits: Sequence[Hit], columns: Sequence[ReadColumn], *, threads: bool = False) -> pa.Table:
        """Return columns of rows; in soft_delete a row that a statement removes has its mark and position."""
        found = super().read_hits(hits, columns, threads=threads)
        if self.mode != "soft_delete":
            return found
        ended = np.concatenate([self._ended(group, rows) for group, rows in hits])
        return with_marks(found, ended, self._changed.superseded) if np.any(ended >= 0) else found

    def row(self, group: RowGroup, number: int, columns: tuple[ReadColumn, ...]) -> dict[str, Any]:
        """Return columns of one row; see :meth:`read_hits`."""
        if self.mode == "soft_delete" and self._ended(group, np.array([number]))[0] >= 0:
            return row_values(self.read(group, np.array([number]), columns))[0]
        return super().row(group, number, columns)

    def _ended(self, group: RowGroup, rows: Rows) -> Rows:
        effect = self._effect(group)
        return np.full(len(rows), -1) if effect is None else effect.ended[rows]

    def _written(self, path: str) -> ParquetFile:
        columns = self.columns.choose(None)
        fields = [one.field.with_metadata({"PARQUET:field_id": str(one.field_id)}) for one in columns]
        rows = self._changed.rows.select([one.name for one in columns]).cast(pa.schema(fields))
        sink = pa.BufferOutputStream()
        pq.write_table(rows, sink, row_group_size=_ROW_GROUP)
        return opened_file(path, pa.BufferReader(sink.getvalue()))

    def _effect(self, group: RowGroup) -> _Effect | None:
        if group.file is self._added or group.file.path == self._added.path:
            return None
        key = (group.file.path, group.number)
        if key not in self._effects:
            self._effects[key] = self._find_effect(group)
        return self._effects[key]

    def _find_effect(self, group: RowGroup) -> _Effect | None:
        """Compare the rows of a row group with the changes of their keys, and with statements."""
        rows, numbers = self._replaced(group)
        if not len(rows) and not self._changed.superseded:
            return None
        total = group.opened.count(group.number)
        constants = {name for rule in self._changed.superseded for name in rule.columns}
        marks = (IS_DELETED,) if self.mode == "soft_delete" and self.mark is not None else ()
        table = group.opened.read(group.number, self.columns.choose((*ORDER, *constants, *marks)))
        order = order_of(table)
        hidden = np.zeros(total, np.bool_)
        theirs = tuple(part[numbers] for part in self._changed.order)
        hidden[rows] = less(tuple(part[rows] for part in order), theirs, or_equal=True)
        removed = removed_by(self._changed.superseded, table, self.mode)
        if self.mode == "mirror":
            return _Effect(hidden | (removed >= 0), np.full(total, -1))
        return _Effect(hidden, removed)

    def _replaced(self, group: RowGroup) -> tuple[Rows, Rows]:
        """Return the rows whose key has a waiting change, and its number."""
        if self._asked is None:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        return self._asked.find(super().key_rows(group))


class _WithOneMore(ParquetFiles):
    """The files of a table, and one in memory."""

    def __init__(self, files: ParquetFiles, more: ParquetFile) -> None:
        self._files = files
        self._more = more

    def open(self, path: str) -> ParquetFile:
        return self._more if path == self._more.path else self._files.open(path)

    def pages(self, file: ParquetFile) -> PageIndex | None:
        return None if file is self._more else self._files.pages(file)

    def read_bytes(self, path: str, offset: int, size: int) -> bytes:
        return self._files.read_bytes(path, offset, size)
