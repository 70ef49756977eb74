"""Finds one transaction boundary in a binlog stream, with its time and GTIDs."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import numpy.typing as npt

from cdc_lib.binlog.bytes.crc32 import TABLES
from cdc_lib.binlog.framing import boundary_kernel as walk
from cdc_lib.binlog.framing.damaged_file import EDITED_CURSOR, hint_of_damage
from cdc_lib.binlog.framing.file_header import checksum_bytes, gtids_before, time_of
from cdc_lib.binlog.framing.packets import HEADER, SID_SIZE
from cdc_lib.binlog.framing.receiver import HEADROOM, Bytes, Receiver, extended
from cdc_lib.binlog.framing.refusal import refusal
from cdc_lib.binlog.framing.scan_progress import gtid_sources
from cdc_lib.binlog.framing.tagged_gtid import FIELDS
from cdc_lib.errors import ChecksumMismatch, ConfigError, DecodeError, PositionNotFound, SourceError, SourceUnavailable
from cdc_lib.model.commit import Commit
from cdc_lib.model.gtid import GtidSet, Interval
from cdc_lib.model.position import FIRST_EVENT_OFFSET, Position, file_number
from cdc_lib.model.server_identity import Flavor
from cdc_lib.model.unclosed import Unclosed
from cdc_lib.ports import BinlogStream

Numbers = npt.NDArray[np.int64]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LASTS = (
    (walk.LAST_TIME, walk.TIME),
    (walk.LAST_ORIGINAL, walk.ORIGINAL),
    (walk.LAST_ORIGIN, walk.ORIGIN),
    (walk.LAST_NO_NUMBER, walk.NO_NUMBER),
)
"""State slots of the previous and of the current transaction."""
SearchTarget = datetime | Commit | GtidSet | Position
"""The first transaction at or after a time, by any clock or by one server's; the first one outside a GTID set; the one that
contains a position."""

LONGEST_STATEMENT = timedelta(hours=1)
"""Longest statement that a search by time allows for, in a binlog without commit times."""


@dataclass(frozen=True, slots=True)
class Boundary:
    """A transaction boundary.

    Args:
        position: its position.
        time: when the transaction before it committed; None if the scan saw none.
        file_time: when the file of the position was created.
        gtids: those of all transactions before it.
        found: whether the target transaction begins here; else the scan reached its end.
        last: commit of the transaction before it; None as for ``time``.
        earlier: for a time: whether any transaction before it is known to be earlier.
        doubt: for one server's clock: file number and offset of the first transaction after all that are known to be earlier,
            if another server committed it; it may be earlier or not.
        unclosed: scanned files without an end event.
        anonymous: whether the scan met a transaction without a GTID, in it or right after it.
        ends_anonymous: whether the last transaction before it is known to have no GTID.
    """

    position: Position
    time: datetime | None
    file_time: datetime
    gtids: GtidSet
    found: bool
    last: Commit | None = None
    earlier: bool = False
    doubt: tuple[int, int] | None = None
    unclosed: tuple[Unclosed, ...] = ()
    anonymous: bool = False
    ends_anonymous: bool = False


class BoundaryScan:
    """One scan from the start of a file.

    Args:
        source: name of the source, for messages.
        flavor: of the server.
        file: the file that the stream begins with, at its first event.
        stop: where the scan ends: the end of the binlog at its start.
        target: what to find.
        checksum: whether events end in a CRC32 when the stream begins.
    """

    def __init__(
        self, source: str, flavor: Flavor, file: str, stop: Position, target: SearchTarget, *, checksum: bool
    ) -> None:
        """Start at the file's first event."""
        self._source = source
        self._flavor = flavor
        self._stop = stop
        self._target = target
        self._state = np.zeros(walk.STATE_SIZE, np.int64)
        self._state[[walk.WANTED, walk.SID, walk.CLOCK]] = -1
        self._state[walk.CHECKSUM_BYTES] = 4 if checksum else 0
        self._sids = np.zeros((walk.MOST_SIDS, SID_SIZE), np.uint8)
        self._scratch = np.zeros(SID_SIZE, np.uint8)
        self._fields = np.zeros(FIELDS, np.int64)
        self._set = _as_arrays(target if isinstance(target, GtidSet) else GtidSet(flavor, {}))
        self._gtids: GtidSet | None = None
        self._file_time = _EPOCH
        self._file = file
        self._closed = False
        self._unclosed: list[Unclosed] = []
        self._begin()
        self._enter(file, FIRST_EVENT_OFFSET)

    def run(self, stream: BinlogStream) -> Boundary:
        """Scan to the target, or to the end.

        Raises:
            DecodeError: the bytes do not follow the format.
            PositionNotFound: the target position is not between two events.
            SourceError: the server refused, or the stream ended before the target and before the end.
        """
        rest: Bytes = np.empty(0, np.uint8)
        with Receiver(stream) as receiver:
            for buffer, end in receiver.buffers():
                begin = HEADROOM - rest.shape[0]
                if begin >= 0:
                    buffer[begin:HEADROOM] = rest
                    data, fill = buffer, end
                else:
                    data = extended(rest, buffer[HEADROOM:end], int(self._state[walk.NEEDED]))
                    begin, fill = 0, data.shape[0]
                at, boundary = self._walk(data, begin, fill)
                rest = data[at:fill].copy()
                receiver.release(buffer)
                if boundary is not None:
                    return boundary
        raise SourceUnavailable(
            "the server ended the binlog stream too early", hint="The task can be tried again.", **self._error_context()
        )

    # --- scanning

    def _begin(self) -> None:
        state = self._state
        if isinstance(self._target, datetime):
            state[walk.MODE] = walk.BY_TIME
            state[walk.WANTED] = (self._target - _EPOCH) // timedelta(microseconds=1)
            state[walk.ALLOWED] = LONGEST_STATEMENT // timedelta(microseconds=1)
        elif isinstance(self._target, Commit):
            state[walk.MODE] = walk.BY_TIME
            state[walk.WANTED] = (self._target.time - _EPOCH) // timedelta(microseconds=1)
            state[walk.CLOCK] = self._target.server_id
        elif isinstance(self._target, GtidSet):
            state[walk.MODE] = walk.BY_GTID
            state[walk.MISSING] = self._target.count
        else:
            state[walk.MODE] = walk.BY_OFFSET

    def _enter(self, file: str, offset: int) -> None:
        state = self._state
        if state[walk.BEGAN]:
            for last, now in _LASTS:
                state[last] = state[now]
        state[walk.BEGAN] = 0
        self._file, self._closed = file, False
        state[walk.FILE] = file_number(file)
        state[walk.OFFSET] = offset
        state[walk.STOP_OFFSET] = -1
        if isinstance(self._target, Position):
            here = file_number(file) == self._target.file_number
            state[walk.WANTED] = self._target.offset if here else -1
        elif file_number(file) == self._stop.file_number:
            state[walk.STOP_OFFSET] = self._stop.offset

    def _walk(self, data: Bytes, begin: int, fill: int) -> tuple[int, Boundary | None]:
        at = begin
        while True:
            status, at, event, end, after = walk.walk(
                data, at, fill, self._state, *self._set, self._sids, TABLES, self._scratch, self._fields
            )
            if status == walk.ASK:
                boundary = self._take(data, event, end)
                if boundary is not None:
                    return int(at), boundary
                at = after
            elif status == walk.FULL:
                self._make_room()
            elif status == walk.FOUND:
                return int(at), self._found(found=int(event) != int(at))
            elif status == walk.END_OF_STREAM:
                return int(at), self._at_end()
            elif status == walk.NEED_MORE:
                return int(at), None
            else:
                raise self._fault(status, data, event, end)

    def _take(self, data: Bytes, event: int, end: int) -> Boundary | None:
        """Handle an event about its file; return a boundary if the target position was the end of the previous file."""
        kind = int(data[event + 4])
        length = int.from_bytes(data[event + 9 : event + 13].tobytes(), "little")
        end_position = int.from_bytes(data[event + 13 : event + 17].tobytes(), "little")
        flags = int.from_bytes(data[event + 17 : event + 19].tobytes(), "little")
        made_up = bool(flags & 0x20) or end_position == 0
        body = data[event + HEADER : end].tobytes()
        if kind == 4 and made_up:
            return self._rotate(body)
        if kind in (3, 4):
            self._closed = True
        elif kind == 15:
            self._format(data[event : event + length].tobytes())
        else:
            self._take_gtids_before(gtids_before(self._flavor, kind, body))
        if not made_up:
            self._state[walk.OFFSET] += length
        return None

    def _take_gtids_before(self, gtids: GtidSet | None) -> None:
        """Count the transactions of the target that come later: some may be in no file, such as purged ones that were set."""
        if self._gtids is None:
            self._gtids = gtids
        if gtids is not None and isinstance(self._target, GtidSet):
            self._state[walk.MISSING] = self._target.minus(gtids).count

    def _rotate(self, body: bytes) -> Boundary | None:
        try:
            file, offset = body[8:].decode("utf-8"), int.from_bytes(body[:8], "little")
            number = Position(file, offset).file_number
        except (ValueError, ConfigError) as error:
            hint = hint_of_damage(self._error_context())
            raise DecodeError(f"a ROTATE event does not follow the format: {error}", hint=hint) from error
        if isinstance(self._target, Position) and number > self._target.file_number:
            return self._at_end()
        if number > self._stop.file_number:
            return self._found(found=False)
        if file != self._file:
            if not self._closed:
                self._unclosed.append(Unclosed(Position(self._file, int(self._state[walk.OFFSET])), file))
            self._enter(file, offset)
        return None

    def _format(self, event: bytes) -> None:
        self._state[walk.CHECKSUM_BYTES] = checksum_bytes(event, **self._error_context())
        self._file_time = time_of(event)

    def _make_room(self) -> None:
        state = self._state
        if state[walk.SID_COUNT] == walk.MOST_SIDS:
            context = self._error_context()
            raise DecodeError("more sources of GTIDs than servers have", hint=hint_of_damage(context), **context)
        self._gtids = self._seen()
        state[walk.RUNS] = 0

    # --- the end

    def _seen(self) -> GtidSet:
        state = self._state
        runs = state[walk.SLOTS : walk.SLOTS + 3 * int(state[walk.RUNS])].reshape(-1, 3)
        sources = gtid_sources(self._sids[: state[walk.SID_COUNT]], self._flavor)
        found: list[tuple[str, Interval]] = [(sources[sid], (first, last)) for sid, first, last in runs.tolist()]
        return (self._gtids or GtidSet(self._flavor, {})).union(GtidSet.of(self._flavor, found))

    def _found(self, *, found: bool) -> Boundary:
        state = self._state
        offset, before = int(state[walk.OFFSET]), not state[walk.BEGAN]
        gtids = self._seen()
        if isinstance(self._target, Position):
            if offset != self._target.offset:
                raise self._not_found()
            if state[walk.INSIDE]:
                offset, before = int(state[walk.BEGAN]), True
                if offset == 0:
                    raise self._not_found()
        if state[walk.SID] >= 0 and not state[walk.INSIDE]:
            source = gtid_sources(self._sids[: state[walk.SID_COUNT]], self._flavor)[int(state[walk.SID])]
            number = int(state[walk.GNO])
            gtids = gtids.union(GtidSet.of(self._flavor, [(source, (number, number))]))
        time, original, origin, anonymous = (int(state[last if before else now]) for last, now in _LASTS)
        doubt = (int(state[walk.DOUBT_FILE]), int(state[walk.DOUBT_OFFSET])) if state[walk.DOUBT_FILE] else None
        return Boundary(
            Position(self._file, offset),
            _at(time) if time else None,
            self._file_time,
            gtids,
            found,
            Commit(origin, _at(original)) if time else None,
            bool(state[walk.EARLIER]),
            doubt,
            tuple(self._unclosed),
            bool(state[walk.ANONYMOUS]),
            bool(anonymous),
        )

    def _at_end(self) -> Boundary:
        """Return the boundary at the end of the stream or of the target's file."""
        state = self._state
        if isinstance(self._target, Position):
            if state[walk.OFFSET] != self._target.offset or file_number(self._file) != self._target.file_number:
                raise self._not_found()
            return self._found(found=True)
        raise SourceUnavailable(
            "the server has no binlog up to the end that it reported",
            hint="The task can be tried again.",
            **self._error_context(),
        )

    def _not_found(self) -> PositionNotFound:
        return PositionNotFound(
            f"{self._target} is not the beginning of an event",
            hint=f"Use a position that SHOW BINLOG EVENTS or mysqlbinlog shows, or seek by time: cdc cursor locate. {EDITED_CURSOR}",
            **self._error_context(),
        )

    def _error_context(self) -> dict[str, str | int]:
        return {"source": self._source, "file": self._file, "offset": int(self._state[walk.OFFSET])}

    def _fault(self, status: int, data: Bytes, event: int, end: int) -> SourceError | DecodeError:
        if status == walk.SERVER_ERROR:
            return refusal(data[event:end].tobytes(), self._error_context())
        if status == walk.NO_GTID:
            return PositionNotFound(
                "the file has transactions without GTID events, of a server before MySQL 5.6.5: times are not found in it",
                hint="Name a position instead: mysqlbinlog shows positions and times. "
                f"cdc cursor rewind {self._source} --position FILE:OFFSET.",
                **self._error_context(),
            )
        context = self._error_context()
        hint = hint_of_damage(context)
        if status == walk.BAD_CHECKSUM:
            return ChecksumMismatch("the CRC32 of an event is wrong", hint=hint, **context)
        return DecodeError("the stream does not follow the format", hint=hint, **context)


def _at(microseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=microseconds)


def _as_arrays(gtids: GtidSet) -> tuple[Bytes, Numbers, Numbers]:
    """Return a set as arrays for the kernel: sources, where the runs of each start, and runs."""
    sids = np.zeros((len(gtids.runs), SID_SIZE), np.uint8)
    starts = np.zeros(len(gtids.runs) + 1, np.int64)
    runs: list[Interval] = []
    for row, (source, found) in enumerate(gtids.runs.items()):
        key = _key(gtids.flavor, source)
        sids[row, : len(key)] = np.frombuffer(key, np.uint8)
        runs += found
        starts[row + 1] = len(runs)
    return sids, starts, np.array(runs, np.int64).reshape(-1, 2)


def _key(flavor: Flavor, source: str) -> bytes:
    if flavor == "mariadb":
        return b"".join(int(part).to_bytes(4, "little") for part in source.split("-"))
    name, _, tag = source.partition(":")
    return uuid.UUID(name).bytes + bytes([len(tag)]) + tag.encode()
