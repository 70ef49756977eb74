"""Reads one window: binlog bytes in, Arrow row groups out, and a summary.

One kernel scans packets and frequent events. Row images are decoded table by table, with one kernel per column. Control events (a
new table, a new file, a statement) are handled here in Python, one at a time. A compressed transaction is inflated in portions
into a separate buffer and scanned there.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import zstandard

from cdc_lib.binlog.bytes.crc32 import TABLES
from cdc_lib.binlog.control_events import ControlEvents
from cdc_lib.binlog.framing import event_types, packets
from cdc_lib.binlog.framing.payload_events import scan_uncompressed
from cdc_lib.binlog.framing.receiver import HEADROOM, Bytes, Receiver, extended
from cdc_lib.binlog.framing.scan_progress import ScanProgress, WindowSummary
from cdc_lib.binlog.framing.transaction_payload import Payload
from cdc_lib.binlog.rows.captured_tables import CapturedTables
from cdc_lib.binlog.rows.errors import inflate_fault, payload_fault, scan_fault
from cdc_lib.binlog.rows.inflate_buffer import BrokenRows, InflateBuffer
from cdc_lib.binlog.rows.mapped_tables import KnownTables
from cdc_lib.binlog.rows.rolled_back import RolledBackRows
from cdc_lib.binlog.rows.row_groups import ReadOptions, RowGroups, WindowSinks
from cdc_lib.binlog.rows.xa import XaTransactions
from cdc_lib.binlog.stream_facts import StreamFacts
from cdc_lib.errors import DecodeError, MaskLost, SourceUnavailable, TableUnreadable
from cdc_lib.model.gtid import GtidSet
from cdc_lib.model.window import Window
from cdc_lib.ports import BinlogStream

_RECORDS = 1 << 16


class WindowReader:
    """Reads one window from a stream that begins at its start.

    Args:
        window: what to read.
        stream: bytes of the server, from its response to the dump command on.
        facts: of the server.
        captured: the tables to decode, and their columns.
        sinks: receive the row groups.
        options: size of row groups, policy of values, naming.
        rolled_back: rolled-back rows that an earlier reading of the window found.
        before: GTIDs of all transactions before the window; None if unknown.
    """

    def __init__(
        self,
        window: Window,
        stream: BinlogStream,
        facts: StreamFacts,
        captured: CapturedTables,
        sinks: WindowSinks,
        options: ReadOptions | None = None,
        rolled_back: RolledBackRows | None = None,
        before: GtidSet | None = None,
    ) -> None:
        """Start at the window's start."""
        self._window = window
        self._stream = stream
        self._sinks = sinks
        self._skip = captured.skip
        self._rolled_back = rolled_back or RolledBackRows()
        self._rolled_back.begin()
        options = options or ReadOptions()
        self._progress = ScanProgress(window, facts.flavor, checksum=facts.checksum, before=before)
        self._tables = KnownTables(self._progress, facts, captured, options.values)
        self._xa = XaTransactions(self._progress)
        self._rare = ControlEvents(self._progress, self._tables, self._xa, facts, options.naming, self._rolled_back)
        self._kinds = event_types.actions()
        self._inner_kinds = event_types.actions_inside()
        self._scratch = np.zeros(packets.SID_SIZE, np.uint8)
        self._records = np.empty((_RECORDS, packets.RECORD_SIZE), np.int64)
        self._count = 0  # records not decoded yet
        self._moved = 0  # how many of them are in the inflate buffer
        self._inflated = InflateBuffer()
        self._inflater = zstandard.ZstdDecompressor()
        self._groups = RowGroups(
            self._progress,
            self._tables,
            self._xa,
            sinks,
            options,
            self._rolled_back,
            self._skips,
        )

    def run(self) -> WindowSummary:
        """Read to the window's end and give every row group to the sinks.

        Raises:
            DecodeError: an event is not understood; it names file, offset, event type and table.
            RowsRolledBack: the window must be read again with the same ``rolled_back``.
            SourceUnavailable: the stream ended before the window did.
            SourceError: the server refused.
        """
        if not self._progress.stopped:
            with Receiver(self._stream) as receiver:
                self._read(receiver)
        self._rolled_back.check(self._progress)
        try:
            self._tables.cascades.check(self._tables.captured.takes)
        except DecodeError as error:
            if not self._skips(error):
                raise
        self._groups.close()
        self._xa.finish()
        return self._progress.summarize()

    def _read(self, receiver: Receiver) -> None:
        rest: Bytes = np.empty(0, np.uint8)
        for buffer, end in receiver.buffers():
            begin = HEADROOM - rest.shape[0]
            if begin >= 0 and self._progress.state[packets.NEEDED] <= end - begin:
                buffer[begin:HEADROOM] = rest
                data, fill = buffer, end
            else:
                # A long event: collected once at its full size instead of copied for every buffer.
                rest = extended(rest, buffer[HEADROOM:end], int(self._progress.state[packets.NEEDED]))
                receiver.release(buffer)
                if rest.shape[0] < self._progress.state[packets.NEEDED]:
                    continue
                data, begin, fill = rest, 0, rest.shape[0]
            # The scan joins the packets of a long event in place: the archive gets them as they were received.
            received = data[begin:fill].copy() if self._sinks.raw is not None else None
            at = self._scan(data, begin, fill)
            if self._sinks.raw is not None and received is not None:
                self._sinks.raw(received[: at - begin].data)
            if self._sinks.received is not None:
                self._sinks.received(at - begin)
            rest = data[at:fill].copy()
            if data is buffer:
                receiver.release(buffer)
            if self._progress.stopped:
                return
        raise SourceUnavailable(
            "the server ended the binlog stream before the window's end",
            hint="The task can be tried again.",
            **self._progress.error_context(),
            stop=str(self._window.stop),
        )

    def _scan(self, data: Bytes, begin: int, fill: int) -> int:
        """Scan what was received; return the start of the first incomplete packet."""
        progress, tables = self._progress, self._tables
        at = begin
        while True:
            status, found, at, event, end, next_packet = packets.scan(
                data, at, fill, progress.state, tables.ids, tables.slots, self._kinds, progress.sids,
                self._records[self._count :], TABLES, self._scratch,
            )  # fmt: skip
            self._count += found
            if status == packets.CONTROL_EVENT:
                if data[event + 4] == event_types.TRANSACTION_PAYLOAD:
                    self._scan_payload(data, event, end)
                else:
                    self._take_control_event(data, event, end)
                at = next_packet
            elif status == packets.SIDS_FULL:
                progress.make_room_for_gtids()
            elif status in (packets.NEED_MORE, packets.STOPPED, packets.RECORDS_FULL):
                self._flush(data)
                if status != packets.RECORDS_FULL:
                    progress.check_stop()
                    return int(at)
            else:
                raise scan_fault(status, data, event, end, progress.error_context(), str(self._window.stop))

    def _take_control_event(self, data: Bytes, event: int, end: int, inside: int | None = None) -> None:
        """Handle a control event; repeat while it is at fault for more tables."""
        while True:
            known = len(self._tables.skipped)
            try:
                self._rare.take(data, event, end, inside=inside)
            except (DecodeError, TableUnreadable) as error:
                # A fault in the table's earlier rows takes precedence, wherever the stream was cut.
                if inside is None:
                    self._flush(data)
                else:
                    self._decode_moved()
                # A mask may be lost of a table that is skipped already; it is found once.
                if not self._skips(error) or not (isinstance(error, MaskLost) or len(self._tables.skipped) > known):
                    raise
            else:
                return

    def _skips(self, error: DecodeError | TableUnreadable) -> bool:
        """Leave out the tables of an error; return whether the reading continues."""
        names = self._skip(error)
        self._tables.skip(names)
        return bool(names)

    # --- compressed transactions

    def _scan_payload(self, data: Bytes, event: int, end: int) -> None:
        """Inflate one transaction, appended to the inflate buffer, and scan its events."""
        self._move(data)
        inflated = self._inflated
        payload = Payload(data, event + packets.HEADER, end, self._inflater, self._progress.error_context)
        at, origin = inflated.fill, -inflated.fill
        while payload.left:
            if not inflated.room(0):
                self._decode_moved()
                inflated.keep_from(at)
                origin, at = origin + at, 0
                if not inflated.room(0):
                    inflated.double()
            room = inflated.room(0)
            inflated.fill += payload.read_into(inflated.data[inflated.fill : inflated.fill + room])
            at = self._scan_inflated(at, origin, payload.left)
        self._progress.step_over(int.from_bytes(data[event + 9 : event + 13].tobytes(), "little"))

    def _scan_inflated(self, at: int, origin: int, left: int) -> int:
        """Scan what was inflated; return the start of the first incomplete event.

        Args:
            at: start of an event in the inflate buffer.
            origin: offset in the payload of the inflate buffer's first byte.
            left: bytes of the payload still to inflate.
        """
        progress, tables, inflated = self._progress, self._tables, self._inflated
        while True:
            status, found, at, end = scan_uncompressed(
                inflated.data, at, inflated.fill, origin, progress.state, tables.ids, tables.slots, self._inner_kinds,
                progress.sids, self._records[self._count :], self._scratch,
            )  # fmt: skip
            self._count += found
            self._moved = self._count
            if status == packets.CONTROL_EVENT:
                self._take_control_event(inflated.data, at, end, origin + int(at))
                at = end
            elif status == packets.RECORDS_FULL:
                self._decode_moved()
            elif status == packets.NEED_MORE and self._can_continue(left + inflated.fill - int(at)):
                return int(at)
            else:
                raise payload_fault(progress.error_context(), origin + int(at))

    def _can_continue(self, rest: int) -> bool:
        """Whether the rest of a payload is empty, or long enough for the next event."""
        return rest == 0 or bool(self._progress.state[packets.NEEDED] <= rest)

    # --- rows

    def _flush(self, data: Bytes) -> None:
        """Decode all pending records."""
        if not self._moved and not self._records[: self._count, packets.PACKED].any():
            self._decode(data, self._records[: self._count])
            self._count = 0
            return
        self._move(data)
        self._decode_moved()
        self._inflated.fill = 0

    def _decode(self, data: Bytes, records: npt.NDArray[np.int64]) -> None:
        if self._tables.parents:
            self._tables.cascades.records(data, records, self._tables.parents, self._progress)
        self._groups.decode(data, records)

    def _move(self, data: Bytes) -> None:
        """Move the rows that are still in ``data`` to the inflate buffer, in order."""
        while self._moved < self._count:
            found = self._records[self._moved : self._count]
            try:
                taken = self._inflated.take(data, found)
            except BrokenRows as broken:
                record, what = broken.args
                table = self._tables.columns[int(found[record, packets.SLOT])].layout.schema.name
                fault = inflate_fault(what, table, self._progress.error_context(found[record]))
                if not isinstance(fault, DecodeError) or not self._skips(fault):
                    raise fault from broken
                self._drop_skipped()
                continue
            self._moved += taken
            if taken < found.shape[0]:
                self._decode_moved()
                self._inflated.fill = 0

    def _drop_skipped(self) -> None:
        """Drop the records of skipped tables that were not moved yet."""
        names = [columns.layout.schema.name for columns in self._tables.columns]
        skipped = [slot for slot, name in enumerate(names) if name in self._tables.skipped]
        left = self._records[self._moved : self._count]
        kept = left[~np.isin(left[:, packets.SLOT], skipped)].copy()
        self._records[self._moved : self._moved + kept.shape[0]] = kept
        self._count = self._moved + kept.shape[0]

    def _decode_moved(self) -> None:
        """Decode the inflate buffer's records; later records become the first, and the buffer can be reused."""
        self._decode(self._inflated.data, self._records[: self._moved])
        rest = self._records[self._moved : self._count].copy()
        self._records[: rest.shape[0]] = rest
        self._count, self._moved = rest.shape[0], 0
