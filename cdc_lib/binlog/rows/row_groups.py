"""Row events to row groups: cells are located, decoded into columns, and written when a group is full."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from cdc_lib.binlog.ddl.effects import Naming
from cdc_lib.binlog.framing import packets
from cdc_lib.binlog.framing.receiver import Bytes
from cdc_lib.binlog.framing.scan_progress import ErrorContext, ScanProgress
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
    """Options of a reading.

    Args:
        group_rows: rows of a row group; reached by whole events.
        group_bytes: bytes of row images of a row group; reached by whole events.
        values: policy for values that the lake cannot represent.
        naming: how statements name tables.
    """

    group_rows: int = 131072
    group_bytes: int = 64 << 20
    values: ValuePolicy = field(default_factory=ValuePolicy)
    naming: Naming = field(default_factory=Naming)


@dataclass(frozen=True, slots=True)
class WindowSinks:
    """The outputs of a window's reading.

    Args:
        rows: receives the row groups.
        prepared: receives the row groups of XA transactions, whose commit or rollback comes later.
        raw: receives the bytes of the stream up to the window's end, in parts of any size; None if not archived.
        received: receives the number of bytes processed since the last call.
    """

    rows: RowGroupSink
    prepared: RowGroupSink
    raw: Callable[[memoryview], None] | None = None
    received: Callable[[int], None] | None = None


class RowGroups:
    """Collects the rows of every table.

    Args:
        progress: of the reading.
        tables: the known tables.
        xa: records the tables of prepared transactions.
        sinks: receive ordinary rows, and those of XA transactions.
        options: of the reading.
        rolled_back: the rolled-back rows.
        skips: leaves out the tables of an error; returns whether the reading continues.
    """

    def __init__(
        self,
        progress: ScanProgress,
        tables: KnownTables,
        xa: XaTransactions,
        sinks: WindowSinks,
        options: ReadOptions,
        rolled_back: RolledBackRows,
        skips: Callable[[DecodeError], bool] = lambda _: False,
    ) -> None:
        """Start with no rows."""
        self._rolled_back = rolled_back
        self._skips = skips
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
            DecodeError: a row image is malformed, or the lake cannot represent a value exactly.
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
            if self._is_skipped(slot):
                continue
            try:
                self._decode_table(data, slot, chosen, prepared=bool(prepared))
            except DecodeError as error:
                if not self._skips(error):
                    raise

    def close(self) -> None:
        """Write the last, incomplete groups."""
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
                raise rows_fault(status, layout.schema.name, self._error_context(int(chosen[next_])))
            try:
                table.append(data, self._cells, self._marks, found, self._records, self._gtids)
            except ValueFault as fault:
                raise value_fault(
                    fault, layout.schema.name, self._error_context(int(self._marks[1][fault.row]))
                ) from None
            table.bytes += int(taken)
            first = int(next_)
            if status == locate.GROUP_FULL:
                self._close_group(slot, table, prepared=prepared)
            elif status == locate.PARTIAL_IMAGE:
                chosen, first = self._decode_partial(data, slot, chosen[first:], prepared=prepared), 0

    def _decode_partial(self, data: Bytes, slot: int, chosen: np.ndarray, *, prepared: bool) -> np.ndarray:
        """Decode the events whose images may lack columns; return the others."""
        partial = self._tables.partial(slot, prepared=prepared)
        flags = np.zeros(chosen.shape[0], np.bool_)
        partial_images.is_partial(data, self._records, chosen, len(partial.columns.layout.prefix), flags)
        limits = (self._options.group_rows, self._options.group_bytes)

        def full() -> None:
            self._close_partial(slot, prepared=prepared)

        partial.take(data, self._records, chosen[flags], self._gtids, limits, self._error_context, full)
        return chosen[~flags]

    def _is_skipped(self, slot: int) -> bool:
        """Whether a layout's table is at fault: its collected rows must not be written."""
        return bool(self._tables.skipped) and self._tables.columns[slot].layout.schema.name in self._tables.skipped

    def _close_partial(self, slot: int, *, prepared: bool) -> None:
        if self._is_skipped(slot):
            return
        table = self._tables.partial(slot, prepared=prepared).columns
        if table.rows:
            self._summary.rows += table.rows
            self._write(f"{_PARTIAL_FILES + slot}", slot, table, prepared=prepared)

    def _close_group(self, slot: int, table: TableColumns, *, prepared: bool) -> None:
        if table.rows and not self._is_skipped(slot):
            self._summary.rows += table.rows
            self._write(f"{slot:05d}", slot, table, prepared=prepared)

    def _write(self, key: str, slot: int, table: TableColumns, *, prepared: bool) -> None:
        sink = self._sinks.prepared if prepared else self._sinks.rows
        sink.write(key, table.schema, table.finish(), self._tables.renames[slot])

    def _error_context(self, record: int) -> ErrorContext:
        return self._progress.error_context(self._records[record])
