"""Finds positions in a server's binlog: by time, by GTIDs, or the transaction boundary at a position. It moves no cursor.

A file is chosen by its header, its first events. The scan goes from there over event headers, to the end that the binlog had
when the search began.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from cdc_lib.binlog.framing.boundary_scan import LONGEST_STATEMENT, Boundary, BoundaryScan, SearchTarget
from cdc_lib.binlog.framing.file_header import FileHeader, read_file_header
from cdc_lib.config import Credentials, ServerConfig
from cdc_lib.errors import PositionNotFound, PositionPurged, ServerChanged
from cdc_lib.model.binlog_checkpoint import BinlogCheckpoint
from cdc_lib.model.commit import Commit
from cdc_lib.model.gtid import GtidSet
from cdc_lib.model.position import FIRST_EVENT_OFFSET, Position, file_number
from cdc_lib.mysql.binlog_stream import binlog_dump
from cdc_lib.mysql.server_facts import ServerFacts
from cdc_lib.plan.file_ends import check_ends

SET_BACK = timedelta(hours=1)
"""Tolerance of a search by time: clocks set back, and commit times out of order, by at most this."""


@dataclass(frozen=True, slots=True)
class BinlogSearch:
    """Searches the binlog of one server as it was at one moment.

    Args:
        source: name of the source, for messages.
        server: its address.
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
        return self.facts.end

    @property
    def files(self) -> list[str]:
        """The binlog files up to that end, oldest first."""
        return [name for name, _ in self.facts.files if file_number(name) <= self.end.file_number]

    def header_of(self, file: str) -> FileHeader:
        """Return the header of a file: its first events.

        Raises:
            PositionPurged: the server no longer has the file.
        """
        if file not in self._headers:
            start = Position(file, FIRST_EVENT_OFFSET)
            with binlog_dump(self.server, self.credentials, self.facts.identity, start) as stream:
                self._headers[file] = read_file_header(stream, self.facts.identity.flavor, file)
        return self._headers[file]

    # --- by time

    def by_time(self, time: datetime) -> BinlogCheckpoint:
        """Return the boundary before the first transaction that may have committed at or after a time.

        The commit time counts: the later of this server's and the original server's. A binlog without commit times (MariaDB,
        MySQL before 8.0) has only when the statement began; :data:`LONGEST_STATEMENT` is added to that. Without such a
        transaction it is the end of the binlog.

        A file is skipped only if a transaction after it committed :data:`SET_BACK` before the time. So no transaction of that
        time or later is skipped, unless the server's clock was set back by more.

        Raises:
            PositionNotFound: purged transactions may be of that time or later.
        """
        headers = ((file, self.header_of(file).first) for file in self.files)
        times = ((file, one.time + (timedelta() if one.known else LONGEST_STATEMENT)) for file, one in headers if one)
        found = self._scan(first_file_to_scan(self.files[0], times, time), time)
        if not found.earlier and not self._begins_before(time):
            oldest = self.files[0]
            raise PositionNotFound(
                f"the oldest binlog file was made at {self.header_of(oldest).time:%Y-%m-%d %H:%M:%S} UTC, and no transaction in it "
                f"is known to be earlier than {time:%Y-%m-%d %H:%M:%S} UTC",
                hint=f"The server has its binlog from {oldest}:4 on: take that position, a later time, or a new snapshot.",
                source=self.source,
                oldest=oldest,
            )
        return self.checkpoint(found)

    def _begins_before(self, time: datetime) -> bool:
        """Whether all purged transactions committed before a time.

        A file that a server start created has that start's time; any other file has the time when the statement began whose
        commit rotated the binlog.
        """
        header = self.header_of(self.files[0])
        return header.time < time.replace(microsecond=0) and (header.at_start or not self._has_commit_times())

    def _has_commit_times(self) -> bool:
        """Whether transactions have commit times; unknown from files without transactions, and never on MariaDB."""
        firsts = (first for file in self.files if (first := self.header_of(file).first) is not None)
        first = next(firsts, None)
        return self.facts.identity.flavor != "mariadb" if first is None else first.known

    def by_commit(self, last: Commit) -> BinlogCheckpoint:
        """Return a boundary before everything unread, given the last commit that was read.

        Only one clock counts: that of the server that committed the last transaction read; replicas copy its times. The
        boundary lies before the first transaction of that server with this time or a later one. So it lies before the last
        transaction read, and before all that follow, also where other clocks differ. Transactions of other servers have no time
        by that clock: all of them after the last one known to be earlier are read.

        Raises:
            PositionNotFound: no transaction of that server is known to be earlier; purged ones, or ones never in this binlog,
                may be later.
        """
        headers = ((file, self.header_of(file).first) for file in self.files)
        times = ((file, one.commit.time) for file, one in headers if one and one.commit.server_id == last.server_id)
        found = self._scan(first_file_to_scan(self.files[0], times, last.time), last)
        if not found.earlier:
            raise PositionNotFound(
                f"no transaction of server {last.server_id} in it is known to be earlier than "
                f"{last.time:%Y-%m-%d %H:%M:%S} UTC by that server's clock",
                source=self.source,
            )
        if found.doubt is None:
            return self.checkpoint(found)
        names = {file_number(name): name for name in self.files}
        return self.at(Position(names[found.doubt[0]], found.doubt[1]))

    # --- by GTIDs

    def by_gtid(self, gtids: GtidSet) -> BinlogCheckpoint:
        """Return the start of the first transaction that is not in a GTID set; raises as :meth:`boundary_of`."""
        return self.checkpoint(self.boundary_of(gtids))

    def boundary_of(self, gtids: GtidSet) -> Boundary:
        """Return the start of the first transaction that is not in a GTID set.

        A transaction without a GTID counts as in the set if a transaction of the set follows it.

        Raises:
            PositionPurged: transactions that are not in the set were purged.
            ServerChanged: the server never had some transactions of the set.
        """
        executed = GtidSet.parse(self.facts.identity.flavor, self.facts.gtid_set)
        lacking = executed.lacks(gtids)
        if lacking:
            raise ServerChanged(
                f"the server does not have transactions of the set: {shortened(lacking)}",
                hint="Take a set that it has executed: SELECT @@GLOBAL.gtid_executed; MariaDB: @@GLOBAL.gtid_binlog_pos.",
                source=self.source,
            )
        files, included = self.files, gtids.widened(executed)
        purged = included.lacks(self.before(files[0]))
        if purged:
            raise PositionPurged(
                f"transactions after the set are no longer in any binlog file: {shortened(purged)}",
                hint=f"The server has its binlog from {files[0]}:4 on: start with a snapshot, or take a later set.",
                source=self.source,
                oldest=files[0],
            )
        start = last_file_within(files, self.before, included)
        if self.facts.identity.flavor == "mysql":
            start = min(start, last_file_without_all(files, self.before, included), key=file_number)
        return self._scan(start, included)

    def may_lack_anonymous(self, gtids: GtidSet) -> bool:
        """Whether transactions without GTIDs may have been purged after a GTID set: the oldest file comes after all of it."""
        return not self.facts.all_have_gtids and not self.before(self.files[0]).lacks(gtids)

    def before(self, file: str) -> GtidSet:
        """Return the GTIDs in the files before one."""
        return self.header_of(file).gtids or GtidSet(self.facts.identity.flavor, {})

    # --- by position

    def at(self, position: Position) -> BinlogCheckpoint:
        """Return the boundary at a position: the position itself, or the start of the transaction that contains it.

        Raises:
            PositionPurged: its file was purged.
            PositionNotFound: it lies after the end of the binlog, or no event begins there.
        """
        context = {"source": self.source, "position": str(position)}
        if position.file not in self.files:
            oldest, newest = self.files[0], self.files[-1]
            kind = PositionPurged if position.file_number < file_number(oldest) else PositionNotFound
            raise kind(
                f"the server has no file {position.file}: its binlog goes from {oldest} to {newest}",
                hint="SHOW BINARY LOGS lists the files.",
                **context,
            )
        size = dict(self.facts.files)[position.file]
        limit = self.end.offset if position.file == self.end.file else size
        if position.offset > limit:
            raise PositionNotFound(f"the file {position.file} has only {limit} bytes", hint="", **context)
        # A scan that ends within the file's first events does not see all of them.
        found, header = self._scan(position.file, position), self.header_of(position.file)
        gtids = found.gtids.union(header.gtids) if header.gtids else found.gtids
        return self.checkpoint(replace(found, gtids=gtids, file_time=header.time))

    def first(self) -> BinlogCheckpoint:
        """Return the start of the oldest file."""
        return self.at(Position(self.files[0], FIRST_EVENT_OFFSET))

    # ---

    def _scan(self, file: str, target: SearchTarget) -> Boundary:
        start = Position(file, FIRST_EVENT_OFFSET)
        facts = self.facts
        scan = BoundaryScan(self.source, facts.identity.flavor, file, self.end, target, checksum=facts.checksum)
        with binlog_dump(self.server, self.credentials, self.facts.identity, start) as stream:
            boundary = scan.run(stream)
        check_ends(self.source, self.server, self.credentials, facts, boundary.unclosed)
        return boundary

    def checkpoint(self, boundary: Boundary) -> BinlogCheckpoint:
        """Return a boundary with the server's identity."""
        return BinlogCheckpoint(
            self.facts.identity,
            boundary.position,
            boundary.time or boundary.file_time,
            str(boundary.gtids),
            self._shows_what_was_read(boundary),
            boundary.file_time,
            boundary.last,
        )

    def _shows_what_was_read(self, boundary: Boundary) -> bool:
        """Whether the GTIDs before a boundary identify it: the transaction before it has one."""
        if not (self.facts.gtids_on and boundary.gtids) or boundary.ends_anonymous:
            return False
        return boundary.last is not None or self.facts.all_have_gtids


def last_file_within(files: Sequence[str], before: Callable[[str], GtidSet], gtids: GtidSet) -> str:
    """Return the newest file with only transactions of a GTID set before it; the oldest file if there is none.

    So no file is passed over that has a transaction outside the set, such as one of a standby alone.

    Args:
        files: oldest first.
        before: returns the GTIDs in the files before one; they only grow.
        gtids: the set.
    """
    return _newest(files, lambda file: not gtids.lacks(before(file)))


def last_file_without_all(files: Sequence[str], before: Callable[[str], GtidSet], gtids: GtidSet) -> str:
    """Return the newest file with transactions of a GTID set in it or after it; the oldest file if there is none.

    After the set's last transaction there may be files with transactions without GTIDs alone.

    Args:
        files: oldest first.
        before: as in :func:`last_file_within`.
        gtids: the set.
    """
    return _newest(files, lambda file: bool(before(file).lacks(gtids)))


def _newest(files: Sequence[str], holds: Callable[[str], bool]) -> str:
    """Return the newest file for which a condition holds, which once lost does not hold again; the oldest file if there is none."""
    low, high = 0, len(files)
    while high - low > 1:
        middle = (low + high) // 2
        if holds(files[middle]):
            low = middle
        else:
            high = middle
    return files[low]


def first_file_to_scan(oldest: str, firsts: Iterable[tuple[str, datetime]], time: datetime) -> str:
    """Return the file where a scan for a time starts: all transactions before it are known to be earlier.

    The transactions of a file committed before the first transaction after it. If that one is earlier by :data:`SET_BACK`, so
    are they, unless the clock visibly went back by more between them. The scan starts at the first file without this proof:
    where a clock was set back, there are several.

    Args:
        oldest: the oldest file.
        firsts: files, oldest first, with the time of their first transaction; files without a known time are omitted.
        time: the time to find.
    """
    start, latest = oldest, None
    for file, at in firsts:
        if at >= time - SET_BACK or (latest is not None and at < latest - SET_BACK):
            break
        start, latest = file, at if latest is None else max(at, latest)
    return start


def shortened(gtids: GtidSet) -> str:
    """Return a set as text, cut for a message."""
    text = str(gtids)
    return text if len(text) <= 200 else f"{text[:197]}..."
