"""The progress of a reading through a window: its position and its summary."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import numpy as np
import numpy.typing as npt

from cdc_lib.binlog.framing import packets
from cdc_lib.binlog.framing.damaged_file import file_of_number, restore_or_continue
from cdc_lib.errors import PositionNotFound
from cdc_lib.model.commit import Commit
from cdc_lib.model.ddl_effect import TableStatement
from cdc_lib.model.gtid import GtidSet, Interval
from cdc_lib.model.gtid_gap import GtidGap, GtidsRead
from cdc_lib.model.last_transaction import LastTransaction
from cdc_lib.model.manifest import Ddl
from cdc_lib.model.position import FIRST_EVENT_OFFSET, Position, file_number
from cdc_lib.model.server_identity import Flavor
from cdc_lib.model.unclosed import Unclosed
from cdc_lib.model.window import Window
from cdc_lib.model.xa import Decision, Prepared

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

ErrorContext = dict[str, str | int]
"""Context of an error: source, file and offset."""


@dataclass(slots=True)
class WindowSummary:
    """The summary of a window: without transactions, GTIDs are empty and times None.

    ``unclosed`` are the files that end without a ROTATE or STOP. ``gtid_gaps`` are the GTIDs that a file names and that were not read
    before it. ``gtids_read`` is what a file that begins at the window's end must name at most; None if that is not known.
    """

    events: int = 0
    transactions: int = 0
    rows: int = 0
    first_time: datetime | None = None
    last_time: datetime | None = None
    last_commit: Commit | None = None
    last_transaction: LastTransaction | None = None
    gtid_first: str = ""
    gtid_last: str = ""
    gtid_set: str = ""
    file_times: dict[str, datetime] = field(default_factory=dict)
    unclosed: tuple[Unclosed, ...] = ()
    gtid_gaps: tuple[GtidGap, ...] = ()
    gtids_read: GtidsRead | None = None
    ddl: list[Ddl] = field(default_factory=list)
    statements: list[TableStatement] = field(default_factory=list)
    prepared: tuple[Prepared, ...] = ()
    xa_decisions: tuple[Decision, ...] = ()


class ScanProgress:
    """The state of the scan kernels, with named accessors for Python.

    Args:
        window: what is read.
        flavor: MySQL or MariaDB.
        checksum: whether events end in a CRC32 when the stream begins.
        before: GTIDs of all transactions before the window; None if unknown. At a file's start its header says it.
    """

    def __init__(self, window: Window, flavor: Flavor, *, checksum: bool, before: GtidSet | None = None) -> None:
        """Start at the window's start."""
        self.window = window
        self.flavor = flavor
        self.release: tuple[int, ...] = ()  # version of the server that wrote the file; empty until the stream says it
        self.file = window.start.file
        self.state = np.zeros(packets.STATE_SIZE, np.int64)
        self.state[packets.CHECKSUM_BYTES] = 4 if checksum else 0
        self.state[packets.SID] = self.state[packets.FIRST_SID] = self.state[packets.LAST_SID] = -1
        self.sids = np.zeros((packets.FIRST_SIDS, packets.SID_SIZE), np.uint8)
        self.file_times: dict[str, datetime] = {}
        self._noted = GtidSet(flavor, {})
        self.summary = WindowSummary()
        self.closed = False
        self.unclosed: tuple[Unclosed, ...] = ()
        self._before = None if window.start.offset == FIRST_EVENT_OFFSET else before
        self._former = ""  # the file before this one
        self._gtid_gaps: tuple[GtidGap, ...] = ()
        self.enter_file(window.start.file, window.start.offset)

    @property
    def stopped(self) -> bool:
        """Whether the window's end is reached."""
        state = self.state
        return bool(state[packets.IN_TRANSACTION] == 0 and state[packets.OFFSET] == state[packets.STOP_OFFSET])

    @property
    def position(self) -> Position:
        """Where the next event starts."""
        return Position(self.file, int(self.state[packets.OFFSET]))

    @property
    def commit_time(self) -> datetime:
        """When the current transaction was committed or prepared."""
        return _EPOCH + timedelta(microseconds=int(self.state[packets.COMMIT_TIME]))

    @property
    def gtid(self) -> str:
        """GTID of the current transaction; empty without one."""
        return self._gtid(int(self.state[packets.SID]), int(self.state[packets.GNO]))

    def error_context(self, record: npt.NDArray[np.int64] | None = None) -> ErrorContext:
        """Return the context of an error here, or at a record of :func:`cdc_lib.binlog.framing.packets.scan`.

        Rows are decoded after their events were passed: the reading may be in a later file by then.
        """
        file, offset = self.file, int(self.state[packets.OFFSET])
        if record is not None:
            file, offset = file_of_number(self.file, int(record[packets.FILE])), int(record[packets.START])
        return {"source": self.window.source, "file": file, "offset": offset}

    def enter_file(self, file: str, offset: int) -> None:
        """Continue in a file.

        Raises:
            PositionNotFound: the window's end lies in an earlier one.
        """
        stop = self.window.stop
        if file_number(file) > stop.file_number:
            raise PositionNotFound(
                f"the file ended before the window's end {stop}",
                hint="The server's file is shorter than when the window was planned. "
                + restore_or_continue(self.window.source, file),
                **self.error_context(),
            )
        if file != self.file and not self.closed:
            self.unclosed += (Unclosed(self.position, file),)
        if file != self.file:
            self._former = self.file
        self.file, self.closed = file, False
        self.state[packets.FILE_NUMBER] = file_number(file)
        self.state[packets.OFFSET] = offset
        self.state[packets.STOP_OFFSET] = stop.offset if file_number(file) == stop.file_number else -1

    def check_stop(self) -> None:
        """Check that the window's end is a transaction boundary.

        Raises:
            PositionNotFound: it lies inside an event or a transaction.
        """
        if 0 <= self.state[packets.STOP_OFFSET] < self.state[packets.OFFSET]:
            raise PositionNotFound(
                f"the window's end {self.window.stop} is not a transaction boundary",
                hint="Rewind the cursor to a position that SHOW BINARY LOG STATUS has shown.",
                **self.error_context(),
            )

    def step_over(self, length: int) -> None:
        """Continue after an event with this length in the file; 0 for an artificial event."""
        self.state[packets.EVENTS] += 1
        self.state[packets.OFFSET] += length

    def make_room_for_gtids(self) -> None:
        """Collect the runs of GTIDs, and double the table of GTID sources if it is full."""
        self._noted = self.gtids
        self.state[packets.RUNS] = 0
        if self.state[packets.SID_COUNT] < self.sids.shape[0]:
            return
        wider = np.zeros((2 * self.sids.shape[0], packets.SID_SIZE), np.uint8)
        wider[: self.sids.shape[0]] = self.sids
        self.sids = wider

    @property
    def gtids(self) -> GtidSet:
        """The GTIDs of all transactions that began so far."""
        runs = self.state[packets.SLOTS : packets.SLOTS + 3 * int(self.state[packets.RUNS])].reshape(-1, 3)
        sources = gtid_sources(self.sids[: self.state[packets.SID_COUNT]], self.flavor)
        found: list[tuple[str, Interval]] = [(sources[sid], (first, last)) for sid, first, last in runs.tolist()]
        return self._noted.union(GtidSet.of(self.flavor, found)) if found else self._noted

    def take_earlier_gtids(self, named: GtidSet) -> None:
        """Compare the GTIDs that the file names before it with those that were read."""
        read = self._gtids_read
        if read is None:
            self._before = named
        elif (gap := read.gap(self.file, named)) is not None:
            self._gtid_gaps += (gap,)
            self._before = read.gtids.union(named)

    @property
    def _gtids_read(self) -> GtidsRead | None:
        return GtidsRead(self._former, self._before.union(self.gtids)) if self._before is not None else None

    def gtid_prefixes(self) -> list[bytes]:
        """Return the prefix before the number in the GTIDs of each source seen."""
        between = ":" if self.flavor == "mysql" else "-"
        sources = gtid_sources(self.sids[: self.state[packets.SID_COUNT]], self.flavor)
        return [f"{source}{between}".encode() for source in sources]

    def summarize(self) -> WindowSummary:
        """Fill counts, times and GTIDs into the summary, and return it."""
        state, summary = self.state, self.summary
        summary.events = int(state[packets.EVENTS])
        summary.transactions = int(state[packets.TRANSACTIONS])
        summary.file_times = self.file_times
        summary.unclosed = self.unclosed
        summary.gtid_gaps, summary.gtids_read = self._gtid_gaps, self._gtids_read
        if summary.transactions:
            summary.first_time = _EPOCH + timedelta(microseconds=int(state[packets.FIRST_TIME]))
            summary.last_time = _EPOCH + timedelta(microseconds=int(state[packets.LAST_TIME]))
            original = _EPOCH + timedelta(microseconds=int(state[packets.LAST_ORIGINAL]))
            summary.last_commit = Commit(int(state[packets.LAST_ORIGIN]), original)
            summary.gtid_first = self._gtid(int(state[packets.FIRST_SID]), int(state[packets.FIRST_GNO]))
            summary.gtid_last = self._gtid(int(state[packets.LAST_SID]), int(state[packets.LAST_GNO]))
            summary.gtid_set = str(self.gtids)
            summary.last_transaction = self._last_transaction(summary.gtid_last)
        return summary

    def _last_transaction(self, gtid: str) -> LastTransaction | None:
        """Return the last transaction; None if no GTID event begins it, as before MySQL 5.6.5."""
        begin, number = int(self.state[packets.LAST_BEGIN]), int(self.state[packets.LAST_FILE])
        if begin == 0:
            return None
        position = Position(file_of_number(self.file, number), begin)
        return LastTransaction(position, gtid, int(self.state[packets.LAST_DIGEST]), self.window.stop)

    def _gtid(self, sid: int, number: int) -> str:
        return f"{self.gtid_prefixes()[sid].decode()}{number}" if sid >= 0 else ""


def gtid_sources(sids: npt.NDArray[np.uint8], flavor: Flavor) -> list[str]:
    """Return each GTID source as text; MySQL's tag follows the UUID."""
    if flavor == "mariadb":
        return [f"{domain}-{server}" for domain, server in sids[:, :8].copy().view("<u4").tolist()]
    return [_mysql_source(sid.tobytes()) for sid in sids]


def _mysql_source(sid: bytes) -> str:
    tag = sid[17 : 17 + sid[16]].decode("ascii", "replace")
    return f"{uuid.UUID(bytes=sid[:16])}:{tag}" if tag else str(uuid.UUID(bytes=sid[:16]))
