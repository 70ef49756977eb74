"""Finds places in a server's binlog: by time, by GTIDs, or the transaction boundary at a position. Nothing is moved.

A file is chosen by its header, its first events; then it is walked from there, headers only, to the end that the binlog had
when the search began.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from cdc_lib.binlog.framing.boundary_scan import LONGEST_STATEMENT, Boundary, BoundaryScan, SearchTarget
from cdc_lib.binlog.framing.file_header import FileHeader, read_file_header
from cdc_lib.config import Credentials, ServerConfig
from cdc_lib.errors import PositionNotFound, PositionPurged, ServerChanged, UnsupportedServer
from cdc_lib.model.binlog_checkpoint import BinlogCheckpoint
from cdc_lib.model.commit import Commit
from cdc_lib.model.gtid import GtidSet
from cdc_lib.model.position import FIRST_EVENT_OFFSET, Position, file_number
from cdc_lib.mysql.binlog_stream import binlog_dump
from cdc_lib.mysql.server_facts import ServerFacts
from cdc_lib.plan.file_ends import check_ends

_HEAD, _WALK = "header", "walk"
SET_BACK = timedelta(hours=1)
"""A search by time is right where no clock was set back by more, and no two transactions changed places over more."""


@dataclass(frozen=True, slots=True)
class BinlogSearch:
    """Searches the binlog of one server as it was at one moment.

    Args:
        source: name of the source, for messages.
        server: how it is reached.
        credentials: log-in.
        facts: of the server at that moment.
    """

    source: str
    server: ServerConfig
    credentials: Credentials
    facts: ServerFacts
    _headers: dict[str, FileHeader] = field(default_factory=dict)

    @property
    def end(self) -> Position:
        """The end of the binlog at that moment."""
        if self.facts.binlog_end is None:
            raise UnsupportedServer("the server writes no binlog", hint="Start it with --log-bin.")
        return self.facts.binlog_end

    @property
    def files(self) -> list[str]:
        """The binlog files up to that end, oldest first."""
        return [name for name, _ in self.facts.files if file_number(name) <= self.end.file_number]

    def header_of(self, file: str) -> FileHeader:
        """Return what the first events of a file tell.

        Raises:
            PositionPurged: it is gone.
        """
        if file not in self._headers:
            start = Position(file, FIRST_EVENT_OFFSET)
            with binlog_dump(self.server, self.credentials, self.facts.identity, start, _HEAD) as stream:
                self._headers[file] = read_file_header(stream, self.facts.identity.flavor, file)
        return self._headers[file]

    # --- by time

    def by_time(self, time: datetime) -> BinlogCheckpoint:
        """Return the boundary before the first transaction that may have committed at a time or later.

        What counts is when a transaction committed: the later of this server's time and the first server's. Where the binlog
        has no commit times (MariaDB, MySQL before 8.0) it is when its statement began, and :data:`LONGEST_STATEMENT` more. It
        is the end of the binlog when there is no such transaction.

        A file is left out only when a transaction after it committed :data:`SET_BACK` before the time: so nothing is left
        out whose commit time is the time or later, unless the server's clock was set back by more than that.

        Raises:
            PositionNotFound: it is not known that what was purged is earlier.
        """
        headers = ((file, self.header_of(file).first) for file in self.files)
        times = ((file, one.time + (timedelta() if one.known else LONGEST_STATEMENT)) for file, one in headers if one)
        found = self._walk(walked_from(self.files[0], times, time), time)
        if not found.earlier and not self._begins_before(time):
            oldest = self.files[0]
            raise PositionNotFound(
                f"the oldest binlog file was made at {self.header_of(oldest).time:%Y-%m-%d %H:%M:%S} UTC, and no transaction in it "
                f"is known to be earlier than {time:%Y-%m-%d %H:%M:%S} UTC",
                hint=f"The server has its binlog from {oldest}:4 on: take that position, a later time, or a new snapshot.",
                source=self.source,
                oldest=oldest,
            )
        return self._place(found)

    def _begins_before(self, time: datetime) -> bool:
        """Whether everything that was purged committed before a time.

        A file that the server's start made tells when; any other tells when the statement began whose commit made it.
        """
        header = self.header_of(self.files[0])
        return header.time < time.replace(microsecond=0) and (header.at_start or not self._has_commit_times())

    def _has_commit_times(self) -> bool:
        """Whether the binlog has them; files without a transaction do not tell, and MariaDB writes none in any."""
        firsts = (first for file in self.files if (first := self.header_of(file).first) is not None)
        first = next(firsts, None)
        return self.facts.identity.flavor != "mariadb" if first is None else first.known

    def by_commit(self, last: Commit) -> BinlogCheckpoint:
        """Return a boundary before everything that was not read, where a transaction with this commit, or a later one, was.

        The clock is that of one server, the one that committed the last transaction that was read: others only copy its times.
        The boundary lies before the first transaction of that server with this time or a later one. So it lies before the
        last one that was read, no matter what any clock shows, and so before what follows it. Transactions of other servers have
        no time by that clock: after the last one known to be earlier, all of them are read.

        Raises:
            PositionNotFound: no transaction of that server is known to be earlier: what was purged, or never was in this
                binlog, may be later.
        """
        headers = ((file, self.header_of(file).first) for file in self.files)
        times = ((file, one.commit.time) for file, one in headers if one and one.commit.server_id == last.server_id)
        found = self._walk(walked_from(self.files[0], times, last.time), last)
        if not found.earlier:
            raise PositionNotFound(
                f"no transaction of server {last.server_id} in it is known to be earlier than "
                f"{last.time:%Y-%m-%d %H:%M:%S} UTC by that server's clock",
                source=self.source,
            )
        if found.doubt is None:
            return self._place(found)
        names = {file_number(name): name for name in self.files}
        return self.at(Position(names[found.doubt[0]], found.doubt[1]))

    # --- by GTIDs

    def by_gtid(self, gtids: GtidSet) -> BinlogCheckpoint:
        """Return the beginning of the first transaction that is not in a set.

        Raises:
            PositionPurged: transactions that are not in the set are in no file any more.
            ServerChanged: the server never had some transactions of the set.
        """
        executed = GtidSet.parse(self.facts.identity.flavor, self.facts.gtid_set)
        gtids = gtids.widened(executed)
        lacking = executed.lacks(gtids)
        if lacking:
            raise ServerChanged(
                f"the server does not have transactions of the set: {shortened(lacking)}",
                hint="Take a set that it has executed: SELECT @@GLOBAL.gtid_executed; MariaDB: @@GLOBAL.gtid_binlog_pos.",
                source=self.source,
            )
        files = self.files
        purged = gtids.lacks(self.before(files[0]))
        if purged:
            raise PositionPurged(
                f"transactions after the set are no longer in any binlog file: {shortened(purged)}",
                hint=f"The server has its binlog from {files[0]}:4 on: start with a snapshot, or take a later set.",
                source=self.source,
                oldest=files[0],
            )
        return self._place(self._walk(self._completed_in(files, gtids), gtids))

    def before(self, file: str) -> GtidSet:
        """Return the GTIDs in the files before one."""
        return self.header_of(file).gtids or GtidSet(self.facts.identity.flavor, {})

    def _completed_in(self, files: Sequence[str], gtids: GtidSet) -> str:
        """Return the newest file before which the set is not complete; what is before a file only grows."""
        low, high = 0, len(files)
        while high - low > 1:
            middle = (low + high) // 2
            if self.before(files[middle]).lacks(gtids):
                low = middle
            else:
                high = middle
        return files[low]

    # --- by position

    def at(self, position: Position) -> BinlogCheckpoint:
        """Return the boundary at a position: the position itself, or the beginning of the transaction around it.

        Raises:
            PositionPurged: its file is gone.
            PositionNotFound: the binlog does not reach so far, or no event begins there.
        """
        place = {"source": self.source, "position": str(position)}
        if position.file not in self.files:
            oldest, newest = self.files[0], self.files[-1]
            kind = PositionPurged if position.file_number < file_number(oldest) else PositionNotFound
            raise kind(
                f"the server has no file {position.file}: its binlog goes from {oldest} to {newest}",
                hint="SHOW BINARY LOGS lists the files.",
                **place,
            )
        size = dict(self.facts.files)[position.file]
        limit = self.end.offset if position.file == self.end.file else size
        if position.offset > limit:
            raise PositionNotFound(f"the file {position.file} has only {limit} bytes", hint="", **place)
        # The walk ends before the events that tell of the file when it is to end at one of them.
        found, header = self._walk(position.file, position), self.header_of(position.file)
        gtids = found.gtids.union(header.gtids) if header.gtids else found.gtids
        return self._place(replace(found, gtids=gtids, file_time=header.time))

    def first(self) -> BinlogCheckpoint:
        """Return the beginning of the oldest file."""
        return self.at(Position(self.files[0], FIRST_EVENT_OFFSET))

    # ---

    def _walk(self, file: str, wanted: SearchTarget) -> Boundary:
        start = Position(file, FIRST_EVENT_OFFSET)
        facts = self.facts
        scan = BoundaryScan(self.source, facts.identity.flavor, file, self.end, wanted, checksum=facts.checksum)
        with binlog_dump(self.server, self.credentials, self.facts.identity, start, _WALK) as stream:
            found = scan.run(stream)
        check_ends(self.source, self.server, self.credentials, facts, found.unclosed)
        return found

    def _place(self, boundary: Boundary) -> BinlogCheckpoint:
        return BinlogCheckpoint(
            self.facts.identity,
            boundary.position,
            boundary.time or boundary.file_time,
            str(boundary.gtids),
            self.facts.gtids_on and bool(boundary.gtids),
            boundary.file_time,
            boundary.last,
        )


def walked_from(oldest: str, firsts: Iterable[tuple[str, datetime]], time: datetime) -> str:
    """Return the file from which on a search for a time walks: all before it is known to be earlier.

    The transactions of a file committed before the first one after it. That one proves them earlier when it is itself earlier by
    :data:`SET_BACK`, unless the clock visibly went back by more just there. It is the first such file: where a clock was
    set back, there are several.

    Args:
        oldest: the oldest file.
        firsts: files, oldest first, with the time of their first transaction; those are left out of which none is known.
        time: that is looked for.
    """
    start, latest = oldest, None
    for file, at in firsts:
        if at >= time - SET_BACK or (latest is not None and at < latest - SET_BACK):
            break
        start, latest = file, at if latest is None else max(at, latest)
    return start


def shortened(gtids: GtidSet) -> str:
    """Write a set for a message."""
    text = str(gtids)
    return text if len(text) <= 200 else f"{text[:197]}..."
