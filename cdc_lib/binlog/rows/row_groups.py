"""Row events into row groups: located, decoded into columns, and given to the sink when a group is full."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from cdc_lib.binlog.ddl.effects import Naming
from cdc_lib.binlog.framing import packets
from cdc_lib.binlog.framing.progress import Place, Progress
from cdc_lib.binlog.framing.receiver import Bytes
from cdc_lib.binlog.rows import locate, partial_images
from cdc_lib.binlog.rows.columns import TableColumns
from cdc_lib.binlog.rows.errors import rows_fault, value_fault
from cdc_lib.binlog.rows.gtid_column import GtidPrefixes
from cdc_lib.binlog.rows.mapped_tables import KnownTables
from cdc_lib.binlog.rows.rolled_back import RolledBackRows
from cdc_lib.binlog.rows.xa import XaTransactions
from cdc_lib.binlog.types.codec import ValueFault
from cdc_lib.errors import DecodeError
from cdc_lib.model.value_policy import ValuePolicy
from cdc_lib.ports import RowGroupSink

_PARTIAL_FILES = 100_000
"""Added to a layout's number in the name of the file of its rows that may lack cells."""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How to cut row groups, what becomes of values that the lake cannot hold as they are, and how names are read.

    Args:
        group_rows: rows of a row group; reached by whole events.
        group_bytes: bytes of row images of a row group; reached by whole events.
        values: what becomes of such values.
        naming: how statements name tables.
    """

    group_rows: int = 131072
    group_bytes: int = 64 << 20
    values: ValuePolicy = field(default_factory=ValuePolicy)
    naming: Naming = field(default_factory=Naming)


@dataclass(frozen=True, slots=True)
class WindowSinks:
    """Where what is read of a window goes.

    Args:
        rows: takes the row groups.
        prepared: takes the row groups of XA transactions, which are decided elsewhere.
        raw: takes the bytes of the stream up to the window's end, in pieces of any size; None where they are not kept.
        received: takes how many bytes of the stream were gone through since the last call.
    """

    rows: RowGroupSink
    prepared: RowGroupSink
    raw: Callable[[memoryview], None] | None = None
    received: Callable[[int], None] | None = None


class RowGroups:
    """Collects the rows of every table.

    Args:
        progress: of the walk.
        tables: that the stream has introduced.
        xa: takes note of the tables of prepared transactions.
        sinks: take ordinary rows, and those of XA transactions.
        options: how to cut the groups.
        rolled_back: knows which of them were taken back.
        spares: whether the reading continues after an error, without the tables that it is about.
    """

    def __init__(
        self,
        progress: Progress,
        tables: KnownTables,
        xa: XaTransactions,
        sinks: WindowSinks,
        options: ReadOptions,
        rolled_back: RolledBackRows,
        spares: Callable[[DecodeError], bool] = lambda _: False,
    ) -> None:
        """Start with no rows."""
        self._rolled_back = rolled_back
        self._spares = spares
        self._progress = progress
        self._tables = tables
        self._xa = xa
        self._sinks = sinks
        self._options = options
        self._summary = progress.summary
        self._records = np.empty((0, packets.RECORD_SIZE), np.int64)
        self._gtids = GtidPrefixes()
        self._cells = locate.scratch_cells(64, locate.WALK_ROWS)
        self._marks = locate.scratch_marks(locate.WALK_ROWS)

    def decode(self, data: Bytes, records: np.ndarray) -> None:
        """Decode row events, layout by layout, each in the order of the stream.

        Args:
            data: bytes that the records point into.
            records: of frame.scan.

        Raises:
            DecodeError: a row image is wrong, or a value has no exact place in the lake.
        """
        if records.shape[0] == 0:
            return
        self._records = records
        if len(self._gtids.texts) != self._progress.state[packets.SID_COUNT]:
            self._gtids.update(self._progress.gtid_prefixes())
        slots = 2 * records[:, packets.SLOT] + (records[:, packets.BEGAN] != 0)
        order = np.argsort(slots, kind="stable")
        kept = self._rolled_back.kept(records)
        if kept is not None:
            order = order[kept[order]]
            if not order.shape[0]:
                return
        edges = np.flatnonzero(np.diff(slots[order])) + 1
        for chosen in np.split(order, edges):
            slot, prepared = divmod(int(slots[chosen[0]]), 2)
            if self._is_spared(slot):
                continue
            try:
                self._decode_table(data, slot, chosen, prepared=bool(prepared))
            except DecodeError as error:
                if not self._spares(error):
                    raise

    def close(self) -> None:
        """Give the sink what has not filled a group."""
        for slot, table in enumerate(self._tables.columns):
            self._close_group(slot, table, prepared=False)
        for slot, table in self._tables.prepared.items():
            self._close_group(slot, table, prepared=True)
        for slot, prepared in self._tables.partials():
            self._close_partial(slot, prepared=prepared)

    def _decode_table(self, data: Bytes, slot: int, chosen: np.ndarray, *, prepared: bool) -> None:
        table = self._tables.prepared_columns(slot) if prepared else self._tables.columns[slot]
        layout = table.layout
        if prepared:
            self._xa.touch(layout.schema.name, self._records[chosen])
        columns = layout.prefix.shape[0]
        if self._cells[0].shape[0] < columns:
            self._cells = locate.scratch_cells(columns, self._cells[0].shape[1])
        first = 0
        while first < chosen.shape[0]:
            limits = (self._options.group_rows - table.rows, self._options.group_bytes - table.bytes)
            pos, length = self._cells
            status, found, next_, taken = locate.locate(
                data, self._records, chosen, first, layout.prefix, layout.width, layout.keys, *limits,
                pos, length, *self._marks,
            )  # fmt: skip
            if status == locate.SPACE_FULL and found == 0:
                wider = 2 * self._marks[0].shape[0]
                self._cells = locate.scratch_cells(pos.shape[0], wider)
                self._marks = locate.scratch_marks(wider)
                continue
            if status in (locate.BAD_LENGTH, locate.BAD_COLUMNS):
                raise rows_fault(status, layout.schema.name, self._place(int(chosen[next_])))
            try:
                table.append(data, self._cells, self._marks, found, self._records, self._gtids)
            except ValueFault as fault:
                raise value_fault(fault, layout.schema.name, self._place(int(self._marks[1][fault.row]))) from None
            table.bytes += int(taken)
            first = int(next_)
            if status == locate.GROUP_FULL:
                self._close_group(slot, table, prepared=prepared)
            elif status == locate.PARTIAL_IMAGE:
                chosen, first = self._decode_partial(data, slot, chosen[first:], prepared=prepared), 0

    def _decode_partial(self, data: Bytes, slot: int, chosen: np.ndarray, *, prepared: bool) -> np.ndarray:
        """Decode the events whose images need not have all columns; returns the others."""
        partial = self._tables.partial(slot, prepared=prepared)
        flags = np.zeros(chosen.shape[0], np.bool_)
        partial_images.is_partial(data, self._records, chosen, len(partial.columns.layout.prefix), flags)
        limits = (self._options.group_rows, self._options.group_bytes)

        def full() -> None:
            self._close_partial(slot, prepared=prepared)

        partial.take(data, self._records, chosen[flags], self._gtids, limits, self._place, full)
        return chosen[~flags]

    def _is_spared(self, slot: int) -> bool:
        """Whether a layout's table is at fault: what was collected of it is in no state to be written."""
        return bool(self._tables.spared) and self._tables.columns[slot].layout.schema.name in self._tables.spared

    def _close_partial(self, slot: int, *, prepared: bool) -> None:
        if self._is_spared(slot):
            return
        table = self._tables.partial(slot, prepared=prepared).columns
        if table.rows:
            self._summary.rows += table.rows
            self._write(f"{_PARTIAL_FILES + slot}", slot, table, prepared=prepared)

    def _close_group(self, slot: int, table: TableColumns, *, prepared: bool) -> None:
        if table.rows and not self._is_spared(slot):
            self._summary.rows += table.rows
            self._write(f"{slot:05d}", slot, table, prepared=prepared)

    def _write(self, key: str, slot: int, table: TableColumns, *, prepared: bool) -> None:
        sink = self._sinks.prepared if prepared else self._sinks.rows
        sink.write(key, table.schema, table.finish(), self._tables.renames[slot])

    def _place(self, record: int) -> Place:
        return self._progress.place(int(self._records[record, packets.START]))
