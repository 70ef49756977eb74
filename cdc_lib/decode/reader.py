"""Reads one window: bytes in, row groups out, and a summary of what went by.

The loop knows three speeds. Packets and frequent events are walked by one kernel; row images are decoded table by table, a
kernel per column; whatever is rare (a new table, a new file, a statement) comes here, one event at a time.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import numpy as np

from cdc_lib.decode import events, frame, rows
from cdc_lib.decode.checksum import TABLES, crc32
from cdc_lib.decode.columns import GtidPrefixes, TableColumns
from cdc_lib.decode.ddl import meaning
from cdc_lib.decode.receive import HEADROOM, Bytes, Receiver
from cdc_lib.decode.table_map import TableLayout, parse, table_name
from cdc_lib.decode.types.codec import ValueFault
from cdc_lib.errors import (
    ChecksumMismatch,
    DecodeError,
    PositionNotFound,
    SourceError,
    SourceUnavailable,
    UnknownEvent,
    UnknownSchema,
    UnsupportedValue,
)
from cdc_lib.model.batch import Ddl
from cdc_lib.model.identity import Flavor
from cdc_lib.model.position import Position, file_number
from cdc_lib.model.window import Window
from cdc_lib.ports import BinlogStream, RowGroupSink

_RECORDS = 1 << 16
_WALK_ROWS = 1 << 14
_DUMMY_TABLE = 0xFFFFFF
"""Table id of the empty rows event that closes a statement without tables."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class StreamFacts:
    """What has to be known of the server before its bytes make sense.

    Args:
        flavor: MySQL or MariaDB.
        checksum: whether events end in a CRC32 when the stream begins.
        charsets: character set name of each collation number.
    """

    flavor: Flavor
    checksum: bool
    charsets: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How to cut row groups, and what to do with dates that have a zero part.

    Args:
        group_rows: rows of a row group; reached by whole events.
        group_bytes: bytes of row images of a row group; reached by whole events.
        zero_is_null: a date with a zero part becomes NULL; else it stops the window.
    """

    group_rows: int = 131072
    group_bytes: int = 64 << 20
    zero_is_null: bool = True


@dataclass(slots=True)
class WindowSummary:
    """What went by: GTIDs are empty and times None when the window holds no transaction."""

    events: int = 0
    transactions: int = 0
    rows: int = 0
    first_time: datetime | None = None
    last_time: datetime | None = None
    gtid_first: str = ""
    gtid_last: str = ""
    ddl: list[Ddl] = field(default_factory=list)


class WindowReader:
    """Reads one window from a stream that begins at its start.

    Args:
        window: what to read.
        stream: bytes of the server, from the answer to the dump command on.
        facts: of the server.
        wanted: whether a table is captured.
        sink: takes the row groups.
        options: how to cut them.
    """

    def __init__(
        self,
        window: Window,
        stream: BinlogStream,
        facts: StreamFacts,
        wanted: Callable[[str, str], bool],
        sink: RowGroupSink,
        options: ReadOptions,
    ) -> None:
        """Stand at the window's start."""
        self._window = window
        self._stream = stream
        self._facts = facts
        self._wanted = wanted
        self._sink = sink
        self._options = options
        self._file = window.start.file
        self._state = np.zeros(frame.STATE_SIZE, np.int64)
        self._state[frame.CHECKSUM_BYTES] = 4 if facts.checksum else 0
        self._state[frame.SID] = self._state[frame.FIRST_SID] = self._state[frame.LAST_SID] = -1
        self._enter_file(window.start.file, window.start.offset)
        self._kinds = _kinds()
        self._sids = np.zeros((frame.MAX_SIDS, 16), np.uint8)
        self._scratch = np.zeros(16, np.uint8)
        self._records = np.empty((_RECORDS, frame.RECORD_SIZE), np.int64)
        self._slots: list[TableColumns] = []
        self._by_layout: dict[tuple[object, ...], int] = {}
        self._forget_tables()
        self._gtids = GtidPrefixes()
        self._cells = _scratch_cells(64, _WALK_ROWS)
        self._marks = _scratch_marks(_WALK_ROWS)
        self._summary = WindowSummary()

    def run(self) -> WindowSummary:
        """Read to the window's end and give every row group to the sink.

        Raises:
            DecodeError: something is not understood; names file, offset, event type and table.
            SourceUnavailable: the stream ended before the window did.
            SourceError: the server refused.
        """
        if not self._stopped:
            with Receiver(self._stream) as receiver:
                self._read(receiver)
        for slot in range(len(self._slots)):
            self._close_group(slot)
        return self._summarize()

    @property
    def _stopped(self) -> bool:
        state = self._state
        return bool(state[frame.IN_TRANSACTION] == 0 and state[frame.OFFSET] == state[frame.STOP_OFFSET])

    def _read(self, receiver: Receiver) -> None:
        rest: Bytes = np.empty(0, np.uint8)
        for buffer, end in receiver.buffers():
            begin = HEADROOM - rest.shape[0]
            if begin >= 0 and self._state[frame.NEEDED] <= end - begin:
                buffer[begin:HEADROOM] = rest
                data, fill = buffer, end
            else:
                # A long event: gathered once at its full size instead of being copied for every buffer.
                rest = _extended(rest, buffer[HEADROOM:end], int(self._state[frame.NEEDED]))
                receiver.release(buffer)
                if rest.shape[0] < self._state[frame.NEEDED]:
                    continue
                data, begin, fill = rest, 0, rest.shape[0]
            at = self._walk(data, begin, fill)
            rest = data[at:fill].copy()
            if data is buffer:
                receiver.release(buffer)
            if self._stopped:
                return
        raise SourceUnavailable(
            "the server ended the binlog stream before the window's end",
            hint="The task can be tried again.",
            **self._place(int(self._state[frame.OFFSET])),
            stop=str(self._window.stop),
        )

    def _walk(self, data: Bytes, begin: int, fill: int) -> int:
        """Walk what was received; returns where the first packet starts that is not whole."""
        at = begin
        count = 0
        while True:
            status, found, at, event, end, behind = frame.scan(
                data, at, fill, self._state, self._ids, self._ids_slots, self._kinds, self._sids,
                self._records[count:], TABLES, self._scratch,
            )  # fmt: skip
            count += found
            if status == frame.RARE:
                try:
                    self._rare(data, event, end)
                except (ValueError, IndexError, KeyError) as error:
                    # Bytes that are no text, a column that does not exist: what Python finds where a length lies.
                    raise DecodeError(
                        f"a {events.name(int(data[event + 4]))} event does not follow the format: {error}",
                        hint="Nothing was acknowledged. Check the file at the source: mysqlbinlog reads it?",
                        **self._place(),
                    ) from error
                at = behind
            elif status in (frame.NEED_MORE, frame.STOPPED, frame.RECORDS_FULL):
                self._decode(data, count)
                count = 0
                if status != frame.RECORDS_FULL:
                    self._check_stop()
                    return int(at)
            else:
                self._fail(status, data, event, end)

    def _check_stop(self) -> None:
        state = self._state
        if 0 <= state[frame.STOP_OFFSET] < state[frame.OFFSET]:
            raise PositionNotFound(
                f"the window's end {self._window.stop} is not a transaction boundary",
                hint="Rewind the cursor to a position that SHOW BINARY LOG STATUS has shown.",
                **self._place(int(state[frame.OFFSET])),
            )

    # --- rows

    def _decode(self, data: Bytes, count: int) -> None:
        """Decode the row events found, layout by layout, each in the order of the stream."""
        if count == 0:
            return
        self._gtids.update(self._prefixes())
        slots = self._records[:count, frame.SLOT]
        order = np.argsort(slots, kind="stable")
        edges = np.flatnonzero(np.diff(slots[order])) + 1
        for chosen in np.split(order, edges):
            self._decode_table(data, int(slots[chosen[0]]), chosen)

    def _decode_table(self, data: Bytes, slot: int, chosen: np.ndarray) -> None:
        table = self._slots[slot]
        layout = table.layout
        columns = layout.prefix.shape[0]
        if self._cells[0].shape[0] < columns:
            self._cells = _scratch_cells(columns, self._cells[0].shape[1])
        first = 0
        while first < chosen.shape[0]:
            limits = (self._options.group_rows - table.rows, self._options.group_bytes - table.bytes)
            pos, length = self._cells
            status, found, next_, taken = rows.locate(
                data, self._records, chosen, first, layout.prefix, layout.width, layout.keys, *limits,
                pos, length, *self._marks,
            )  # fmt: skip
            if status == rows.SPACE_FULL and found == 0:
                wider = 2 * self._marks[0].shape[0]
                self._cells = _scratch_cells(pos.shape[0], wider)
                self._marks = _scratch_marks(wider)
                continue
            if status in (rows.BAD_LENGTH, rows.BAD_COLUMNS, rows.PARTIAL_IMAGE):
                self._fail_rows(status, layout, int(chosen[next_]))
            try:
                table.append(data, self._cells, self._marks, found, self._records, self._gtids)
            except ValueFault as fault:
                record = self._records[self._marks[1][fault.row]]
                raise UnsupportedValue(
                    fault.what,
                    hint="Nothing was acknowledged. Set zero_dates: 'null' for dates, or exclude the table.",
                    **self._place(int(record[frame.START])),
                    table=layout.schema.name,
                ) from None
            table.bytes += int(taken)
            first = int(next_)
            if status == rows.GROUP_FULL:
                self._close_group(slot)

    def _close_group(self, slot: int) -> None:
        table = self._slots[slot]
        if table.rows:
            self._summary.rows += table.rows
            self._sink.write(f"{slot:05d}", table.layout.schema, table.finish())

    def _prefixes(self) -> list[bytes]:
        """Return what stands before the number in the GTIDs of each source seen."""
        if self._facts.flavor == "mysql":
            return [f"{uuid.UUID(bytes=sid.tobytes())}:".encode() for sid in self._sids[: self._state[frame.SID_COUNT]]]
        pairs = self._sids[: self._state[frame.SID_COUNT], :8].copy().view("<u4")
        return [f"{domain}-{server}-".encode() for domain, server in pairs]

    # --- rare events

    def _rare(self, data: Bytes, event: int, end: int) -> None:
        kind = int(data[event + 4])
        flags = int.from_bytes(data[event + 17 : event + 19].tobytes(), "little")
        length = int.from_bytes(data[event + 9 : event + 13].tobytes(), "little")
        made_up = kind in (events.FORMAT_DESCRIPTION, events.ROTATE) and not data[event + 13 : event + 17].any()
        in_file = flags & events.ARTIFICIAL == 0 and not made_up
        body = data[event + frame.HEADER : end].tobytes()
        if kind == events.FORMAT_DESCRIPTION:
            self._format(data[event : event + length].tobytes())
        elif kind == events.ROTATE:
            if not in_file:
                self._enter_file(body[8:].decode(), int.from_bytes(body[:8], "little"))
        elif kind == events.TABLE_MAP:
            self._table_map(body)
        elif kind == events.QUERY:
            self._query(body)
        elif kind in _ROWS:
            raise UnknownSchema(
                "rows of a table that no table map came before",
                hint="The position lies inside a transaction; rewind the cursor to a transaction boundary.",
                **self._place(),
            )
        elif not flags & events.IGNORABLE:
            raise UnknownEvent(
                f"an event that is not read: {events.name(kind)}",
                hint=events.hint(kind),
                **self._place(),
                event_type=kind,
            )
        self._state[frame.EVENTS] += 1
        if in_file:
            self._state[frame.OFFSET] += length

    def _format(self, event: bytes) -> None:
        """Take the checksum algorithm of the file; table ids begin anew."""
        algorithm = event[-5]
        if algorithm not in (0, 1):
            raise UnknownEvent(f"checksum algorithm {algorithm} is not known", hint="", **self._place())
        if self._state[frame.IN_TRANSACTION]:
            raise DecodeError(
                "a binlog file ends inside a transaction",
                hint="The server crashed there; take a new snapshot of the tables.",
                **self._place(),
            )
        self._state[frame.CHECKSUM_BYTES] = 4 * algorithm
        stored = int.from_bytes(event[-4:], "little")
        calculated = crc32(np.frombuffer(event, np.uint8), 0, len(event) - 4, TABLES)
        if algorithm == 1 and stored != calculated:
            raise ChecksumMismatch("the checksum of the format description is wrong", hint="", **self._place())
        self._forget_tables()

    def _enter_file(self, file: str, offset: int) -> None:
        stop = self._window.stop
        if file_number(file) > stop.file_number:
            raise PositionNotFound(
                f"the file ended before the window's end {stop}", hint="Rewind the cursor.", **self._place()
            )
        self._file = file
        self._state[frame.FILE_NUMBER] = file_number(file)
        self._state[frame.OFFSET] = offset
        self._state[frame.STOP_OFFSET] = stop.offset if file_number(file) == stop.file_number else -1

    def _forget_tables(self) -> None:
        self._ids = np.full(1024, -1, np.int64)
        self._ids_slots = np.zeros(1024, np.int64)
        self._known = 0
        self._learn(_DUMMY_TABLE, frame.UNWANTED)

    def _learn(self, table_id: int, slot: int) -> None:
        """Enter a table id; the table grows before it is half full."""
        if 2 * (self._known + 1) > self._ids.shape[0]:
            old = [(int(i), int(s)) for i, s in zip(self._ids, self._ids_slots, strict=True) if i != -1]
            self._ids = np.full(2 * self._ids.shape[0], -1, np.int64)
            self._ids_slots = np.zeros(self._ids.shape[0], np.int64)
            self._known = 0
            for known, known_slot in old:
                self._learn(known, known_slot)
        mask = self._ids.shape[0] - 1
        index = (table_id * 0x9E3779B1) & mask
        while self._ids[index] != -1:
            index = (index + 1) & mask
        self._ids[index] = table_id
        self._ids_slots[index] = slot
        self._known += 1

    def _table_map(self, body: bytes) -> None:
        table_id = int.from_bytes(body[:6], "little")
        database, table = table_name(body)
        if not self._wanted(database, table):
            self._learn(table_id, frame.UNWANTED)
            return
        try:
            layout = parse(body, self._facts.charsets)
        except DecodeError as error:
            error.context |= self._place()
            raise
        key = (layout.schema, layout.prefix.tobytes(), layout.width.tobytes())
        if key not in self._by_layout:
            self._by_layout[key] = len(self._slots)
            columns = TableColumns(layout, self._window.epoch, zero_is_null=self._options.zero_is_null)
            self._slots.append(columns)
        self._learn(table_id, self._by_layout[key])

    def _query(self, body: bytes) -> None:
        """Look at a statement; DDL ends a transaction of its own."""
        schema_length = body[8]
        at = 13 + int.from_bytes(body[11:13], "little")
        database = body[at : at + schema_length].decode("utf-8", "replace")
        statement = body[at + schema_length + 1 :].decode("utf-8", "replace")
        means = meaning(statement, database)
        touched = [t for t in means.tables if self._touches(*t)]
        if means.effect in ("rows", "xa") or (means.effect == "lossy" and touched):
            raise UnknownEvent(
                f"a statement whose effect on rows the binlog does not show: {statement[:120]!r}",
                hint="Nothing was acknowledged. Rewind the cursor behind it and take a new snapshot of the table.",
                **self._place(),
                table=", ".join(f"{d}.{t}" for d, t in touched) or None,
            )
        if touched:
            start = Position(self._file, int(self._state[frame.OFFSET]))
            self._summary.ddl.append(Ddl(start, database, statement))
        if self._ends_transaction(means.effect, opens=means.opens_transaction):
            frame.end_transaction(self._state)

    def _touches(self, database: str, table: str) -> bool:
        if table != "*":
            return self._wanted(database, table)
        return any(slot.layout.schema.database == database for slot in self._slots) or self._wanted(database, "x")

    def _ends_transaction(self, effect: str, *, opens: bool) -> bool:
        if effect == "savepoint" or opens:
            return False
        if self._facts.flavor == "mariadb" and effect != "rollback":
            return bool(self._state[frame.STANDALONE])
        return True

    # --- errors and the end

    def _place(self, offset: int | None = None) -> dict[str, str | int]:
        at = int(self._state[frame.OFFSET]) if offset is None else offset
        return {"source": self._window.source, "file": self._file, "offset": at}

    def _fail(self, status: int, data: Bytes, event: int, end: int) -> None:
        if status == frame.BAD_CHECKSUM:
            raise ChecksumMismatch(
                f"the CRC32 of a {events.name(int(data[event + 4]))} event is wrong",
                hint="Check the file at the source: mysqlbinlog --verify-binlog-checksum.",
                **self._place(),
            )
        if status == frame.SERVER_ERROR:
            payload = data[event:end].tobytes()
            number = int.from_bytes(payload[:2], "little")
            text = payload[2:].decode("utf-8", "replace").removeprefix("#HY000")
            raise SourceError(
                f"the server refused to send the binlog: {text} (error {number})", hint="", **self._place()
            )
        if status == frame.END_OF_STREAM:
            raise SourceUnavailable(
                "the server has no binlog up to the window's end yet",
                hint="The task can be tried again.",
                **self._place(),
                stop=str(self._window.stop),
            )
        raise DecodeError(
            "the stream does not follow the format: a length or a position is wrong",
            hint="Nothing was acknowledged. Check that the cursor stands on an event of this server.",
            **self._place(),
        )

    def _fail_rows(self, status: int, layout: TableLayout, record: int) -> None:
        start = int(self._records[record, frame.START])
        place = {**self._place(start), "table": layout.schema.name}
        if status == rows.PARTIAL_IMAGE:
            raise UnsupportedValue(
                "a row image without all columns",
                hint="Set binlog_row_image=FULL at the source (also in sessions) and take a new snapshot of the table.",
                **place,
            )
        what = "a length leaves the event" if status == rows.BAD_LENGTH else "another number of columns than declared"
        raise DecodeError(f"a row image is wrong: {what}", hint="Nothing was acknowledged.", **place)

    def _summarize(self) -> WindowSummary:
        state, summary = self._state, self._summary
        summary.events = int(state[frame.EVENTS])
        summary.transactions = int(state[frame.TRANSACTIONS])
        if summary.transactions:
            summary.first_time = _EPOCH + timedelta(microseconds=int(state[frame.FIRST_TIME]))
            summary.last_time = _EPOCH + timedelta(microseconds=int(state[frame.LAST_TIME]))
            summary.gtid_first = self._gtid(int(state[frame.FIRST_SID]), int(state[frame.FIRST_GNO]))
            summary.gtid_last = self._gtid(int(state[frame.LAST_SID]), int(state[frame.LAST_GNO]))
        return summary

    def _gtid(self, sid: int, number: int) -> str:
        return f"{self._prefixes()[sid].decode()}{number}" if sid >= 0 else ""


_ROWS = (*range(23, 26), *range(30, 33))


def _kinds() -> np.ndarray:
    """What the scan does with each event type: 0 pass over, 1 look at, 2 give to Python."""
    kinds = np.full(256, 2, np.uint8)
    kinds[list(events.PASSED_OVER)] = 0
    kinds[[events.HEARTBEAT, events.HEARTBEAT_V2, 5, 13, 14]] = 0
    kinds[[events.QUERY, events.XID, events.TABLE_MAP, events.GTID, events.ANONYMOUS_GTID, events.MARIADB_GTID]] = 1
    kinds[list(_ROWS)] = 1
    return kinds


def _scratch_cells(columns: int, capacity: int) -> tuple[np.ndarray, np.ndarray]:
    return np.empty((columns, capacity), np.int64), np.empty((columns, capacity), np.int64)


def _scratch_marks(capacity: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.empty(capacity, np.uint8), np.empty(capacity, np.int64), np.empty(capacity, np.int64)


def _extended(rest: Bytes, more: Bytes, needed: int) -> Bytes:
    """Return both pieces behind each other, in an allocation large enough for all that is needed."""
    size = rest.shape[0] + more.shape[0]
    base = rest.base if isinstance(rest.base, np.ndarray) else None
    if base is not None and base.shape[0] >= size:
        base[rest.shape[0] : size] = more
        return base[:size]
    whole = np.empty(max(size, needed + (8 << 20)), np.uint8)
    whole[: rest.shape[0]] = rest
    whole[rest.shape[0] : size] = more
    return whole[:size]
