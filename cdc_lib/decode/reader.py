"""Reads one window: bytes in, row groups out, and a summary of what went by.

The loop knows three speeds. Packets and frequent events are walked by one kernel; row images are decoded table by table, a
kernel per column; whatever is rare (a new table, a new file, a statement) comes here, one event at a time. A compressed
transaction is inflated portion by portion into a buffer of its own and walked there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import zstandard

from cdc_lib.decode import events, frame
from cdc_lib.decode.aside import AsideTables
from cdc_lib.decode.bare import scan_bare
from cdc_lib.decode.checksum import TABLES
from cdc_lib.decode.faults import inflate_fault, payload_fault, scan_fault
from cdc_lib.decode.history.window import WindowHistory
from cdc_lib.decode.masking import Shape
from cdc_lib.decode.partial_rows import Untold, nothing_untold
from cdc_lib.decode.payload import Payload
from cdc_lib.decode.progress import Progress, WindowSummary
from cdc_lib.decode.rare import RareEvents
from cdc_lib.decode.receive import HEADROOM, Bytes, Receiver, extended
from cdc_lib.decode.row_groups import ReadOptions, RowGroups
from cdc_lib.decode.side import BrokenRows, SideBuffer
from cdc_lib.decode.statement import statement_of
from cdc_lib.decode.tables import KnownTables
from cdc_lib.decode.undone import UndoneRows
from cdc_lib.decode.xa import XaTransactions
from cdc_lib.errors import SourceUnavailable, TableReplaced
from cdc_lib.model.identity import Flavor
from cdc_lib.model.position import Position
from cdc_lib.model.window import Window
from cdc_lib.ports import BinlogStream, RowGroupSink

_RECORDS = 1 << 16


@dataclass(frozen=True, slots=True)
class StreamFacts:
    """What has to be known of the server before its bytes make sense.

    Args:
        flavor: MySQL or MariaDB.
        checksum: whether events end in a CRC32 when the stream begins.
        charsets: character set name of each collation number.
        untold: columns of a table whose changes an after image may leave out; asked for once per table, and only when an
            image does not have all columns.
    """

    flavor: Flavor
    checksum: bool
    charsets: Mapping[int, str]
    untold: Untold = nothing_untold


class WindowReader:
    """Reads one window from a stream that begins at its start.

    Args:
        window: what to read.
        stream: bytes of the server, from the answer to the dump command on.
        facts: of the server.
        wanted: whether a table is captured.
        sink: takes the row groups.
        prepared: takes the row groups of XA transactions, which are decided elsewhere.
        options: how to cut them.
        history: knows the columns that the stream does not name.
        shape: which columns are decoded, and their masks; all of them as they are without it.
        aside: tables that are left out; given, even without any, where a table at fault is going to be.
        raw: takes the bytes of the stream up to the window's end, in pieces of any size; None where they are not kept.
        undone: what is known of rows that were taken back, from an earlier reading of the window.
    """

    def __init__(
        self,
        window: Window,
        stream: BinlogStream,
        facts: StreamFacts,
        wanted: Callable[[str, str], bool],
        sink: RowGroupSink,
        prepared: RowGroupSink,
        options: ReadOptions,
        history: WindowHistory | None = None,
        shape: Shape | None = None,
        aside: AsideTables | None = None,
        raw: Callable[[memoryview], None] | None = None,
        undone: UndoneRows | None = None,
    ) -> None:
        """Stand at the window's start."""
        self._window = window
        self._stream = stream
        self._raw = raw
        self._undone = undone or UndoneRows()
        self._undone.begin()
        self._summary = WindowSummary()
        self._progress = Progress(window, facts.flavor, checksum=facts.checksum)
        self._shape = shape or Shape()
        self._tables = KnownTables(
            self._progress, wanted, facts.charsets, facts.untold, options.values,
            history.schema if history else None, self._shape, aside,
        )  # fmt: skip
        self._xa = XaTransactions(self._progress)
        defines = _defines(history, facts.charsets)
        self._rare = RareEvents(
            self._progress, self._tables, self._xa, self._summary, defines,
            conceal=self._shape.masks, naming=options.naming, charsets=facts.charsets, undone=self._undone,
        )  # fmt: skip
        self._kinds = events.actions()
        self._inner_kinds = events.actions_inside()
        self._scratch = np.zeros(frame.SID_SIZE, np.uint8)
        self._records = np.empty((_RECORDS, frame.RECORD_SIZE), np.int64)
        self._count = 0  # records found and not decoded yet
        self._moved = 0  # as many of them lie in the side buffer
        self._side = SideBuffer()
        self._inflater = zstandard.ZstdDecompressor()
        self._groups = RowGroups(
            self._progress, self._tables, self._xa, (sink, prepared), options, self._summary, self._undone
        )

    def run(self) -> WindowSummary:
        """Read to the window's end and give every row group to the sink.

        Raises:
            DecodeError: something is not understood; names file, offset, event type and table.
            RowsUndone: the window is to be read once more with the same ``undone``.
            SourceUnavailable: the stream ended before the window did.
            SourceError: the server refused.
        """
        if not self._progress.stopped:
            with Receiver(self._stream) as receiver:
                self._read(receiver)
        self._undone.check(self._progress)
        self._groups.close()
        self._xa.finish(self._summary)
        return self._progress.summarize(self._summary)

    def _read(self, receiver: Receiver) -> None:
        rest: Bytes = np.empty(0, np.uint8)
        for buffer, end in receiver.buffers():
            begin = HEADROOM - rest.shape[0]
            if begin >= 0 and self._progress.state[frame.NEEDED] <= end - begin:
                buffer[begin:HEADROOM] = rest
                data, fill = buffer, end
            else:
                # A long event: gathered once at its full size instead of being copied for every buffer.
                rest = extended(rest, buffer[HEADROOM:end], int(self._progress.state[frame.NEEDED]))
                receiver.release(buffer)
                if rest.shape[0] < self._progress.state[frame.NEEDED]:
                    continue
                data, begin, fill = rest, 0, rest.shape[0]
            at = self._walk(data, begin, fill)
            if self._raw is not None:
                self._raw(data[begin:at].data)
            rest = data[at:fill].copy()
            if data is buffer:
                receiver.release(buffer)
            if self._progress.stopped:
                return
        raise SourceUnavailable(
            "the server ended the binlog stream before the window's end",
            hint="The task can be tried again.",
            **self._progress.place(),
            stop=str(self._window.stop),
        )

    def _walk(self, data: Bytes, begin: int, fill: int) -> int:
        """Walk what was received; returns where the first packet starts that is not whole."""
        progress, tables = self._progress, self._tables
        at = begin
        while True:
            status, found, at, event, end, behind = frame.scan(
                data, at, fill, progress.state, tables.ids, tables.slots, self._kinds, progress.sids,
                self._records[self._count :], TABLES, self._scratch,
            )  # fmt: skip
            self._count += found
            if status == frame.RARE:
                if data[event + 4] == events.TRANSACTION_PAYLOAD:
                    self._walk_payload(data, event, end)
                else:
                    self._look(data, event, end)
                at = behind
            elif status == frame.SIDS_FULL:
                progress.make_room_for_gtids()
            elif status in (frame.NEED_MORE, frame.STOPPED, frame.RECORDS_FULL):
                self._flush(data)
                if status != frame.RECORDS_FULL:
                    progress.check_stop()
                    return int(at)
            else:
                raise scan_fault(status, data, event, end, progress.place(), str(self._window.stop))

    def _look(self, data: Bytes, event: int, end: int) -> None:
        """Act on an event that comes once in a while."""
        try:
            self._rare.take(data, event, end)
        except TableReplaced:
            # A fault in rows of the table before it comes first, however the stream was cut.
            self._flush(data)
            raise

    # --- compressed transactions

    def _walk_payload(self, data: Bytes, event: int, end: int) -> None:
        """Inflate one transaction behind what the side buffer holds, and walk its events."""
        self._move(data)
        side = self._side
        payload = Payload(data, event + frame.HEADER, end, self._inflater, self._progress.place)
        at, origin = side.fill, -side.fill
        while payload.left:
            if not side.room(0):
                self._decode_moved()
                side.keep_from(at)
                origin, at = origin + at, 0
                if not side.room(0):
                    side.double()
            room = side.room(0)
            side.fill += payload.read_into(side.data[side.fill : side.fill + room])
            at = self._walk_bare(at, origin, payload.left)
        self._progress.step_over(int.from_bytes(data[event + 9 : event + 13].tobytes(), "little"))

    def _walk_bare(self, at: int, origin: int, left: int) -> int:
        """Walk what was inflated; returns where the first event starts that is not whole.

        Args:
            at: start of an event in the side buffer.
            origin: offset in the payload of the side buffer's first byte.
            left: bytes of the payload that were not inflated yet.
        """
        progress, tables, side = self._progress, self._tables, self._side
        while True:
            status, found, at, end = scan_bare(
                side.data, at, side.fill, origin, progress.state, tables.ids, tables.slots, self._inner_kinds,
                progress.sids, self._records[self._count :], self._scratch,
            )  # fmt: skip
            self._count += found
            self._moved = self._count
            if status == frame.RARE:
                self._rare.take(side.data, at, end, inside=origin + int(at))
                at = end
            elif status == frame.RECORDS_FULL:
                self._decode_moved()
            elif status == frame.NEED_MORE and self._can_come(left + side.fill - int(at)):
                return int(at)
            else:
                raise payload_fault(progress.place(), origin + int(at))

    def _can_come(self, rest: int) -> bool:
        """Whether the rest of a payload is nothing, or enough for what the walk waits for."""
        return rest == 0 or bool(self._progress.state[frame.NEEDED] <= rest)

    # --- rows

    def _flush(self, data: Bytes) -> None:
        """Decode all that was found."""
        if not self._moved and not self._records[: self._count, frame.PACKED].any():
            self._groups.decode(data, self._records[: self._count])
            self._count = 0
            return
        self._move(data)
        self._decode_moved()
        self._side.fill = 0

    def _move(self, data: Bytes) -> None:
        """Bring the rows that still lie in ``data`` to the side buffer, behind those that came before them."""
        while self._moved < self._count:
            found = self._records[self._moved : self._count]
            try:
                taken = self._side.take(data, found)
            except BrokenRows as broken:
                record, what = broken.args
                table = self._tables.columns[int(found[record, frame.SLOT])].layout.schema.name
                raise inflate_fault(what, table, self._progress.place(int(found[record, frame.START]))) from broken
            self._moved += taken
            if taken < found.shape[0]:
                self._decode_moved()
                self._side.fill = 0

    def _decode_moved(self) -> None:
        """Decode what lies in the side buffer; the records behind become the first, and the buffer can be used anew."""
        self._groups.decode(self._side.data, self._records[: self._moved])
        rest = self._records[self._moved : self._count].copy()
        self._records[: rest.shape[0]] = rest
        self._count, self._moved = rest.shape[0], 0


def _defines(
    history: WindowHistory | None, charsets: Mapping[int, str]
) -> Callable[[Position, bytes, bytes], None] | None:
    if history is None:
        return None
    return lambda position, body, text: history.took(position, statement_of(body, text, charsets))
