"""Finds places in a server's binlog: by time, by GTIDs, or the transaction boundary at a position. Nothing is moved.

A file is chosen by its head, its first events; then it is walked from there, headers only, to the end that the binlog had
when the search began.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from cdc_lib.config import Credentials, ServerConfig
from cdc_lib.decode.boundary_scan import Boundary, BoundaryScan, Wanted
from cdc_lib.decode.file_head import FileHead, read_file_head
from cdc_lib.errors import PositionNotFound, PositionPurged, ServerSwitched, UnsupportedServer
from cdc_lib.model.gtid import GtidSet
from cdc_lib.model.place import Place
from cdc_lib.model.position import FIRST_EVENT_OFFSET, Position, file_number
from cdc_lib.source.facts import ServerFacts
from cdc_lib.source.stream import binlog_dump

_HEAD, _WALK = "head", "walk"


@dataclass(frozen=True, slots=True)
class Seeker:
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
    _heads: dict[str, FileHead] = field(default_factory=dict)

    @property
    def end(self) -> Position:
        """The end of the binlog at that moment."""
        if self.facts.head is None:
            raise UnsupportedServer("the server writes no binlog", hint="Start it with --log-bin.")
        return self.facts.head

    @property
    def files(self) -> list[str]:
        """The binlog files up to that end, oldest first."""
        return [name for name, _ in self.facts.files if file_number(name) <= self.end.file_number]

    def head_of(self, file: str) -> FileHead:
        """Return what the first events of a file tell.

        Raises:
            PositionPurged: it is gone.
        """
        if file not in self._heads:
            start = Position(file, FIRST_EVENT_OFFSET)
            with binlog_dump(self.server, self.credentials, self.facts.identity, start, _HEAD) as stream:
                self._heads[file] = read_file_head(stream, self.facts.identity.flavor, file)
        return self._heads[file]

    # --- by time

    def by_time(self, time: datetime) -> Place:
        """Return the last boundary such that all transactions before it committed before a time.

        Transactions that committed at that time or later lie behind it, also where the server's clock was set back, between
        files or within one: it is the beginning of the first of them, or the end of the binlog when there is none.

        Raises:
            PositionNotFound: the oldest file was made at that time or later.
        """
        second = time.replace(microsecond=0)
        before: str | None = None
        # Clocks are set back at times: a search by halves would find one of several places then, and perhaps not the first.
        for file in self.files:
            if self.head_of(file).time >= second:
                break
            before = file
        if before is None:
            oldest = self.files[0]
            raise PositionNotFound(
                f"the oldest binlog file was made at {self.head_of(oldest).time:%Y-%m-%d %H:%M:%S} UTC, not before "
                f"{time:%Y-%m-%d %H:%M:%S} UTC",
                hint=f"The server has its binlog from {oldest}:4 on: take that position, a later time, or a new snapshot.",
                source=self.source,
                oldest=oldest,
            )
        return self._place(self._walk(before, time))

    # --- by GTIDs

    def by_gtid(self, gtids: GtidSet) -> Place:
        """Return the beginning of the first transaction that is not in a set.

        Raises:
            PositionPurged: transactions that are not in the set are in no file any more.
            ServerSwitched: the server never had some transactions of the set.
        """
        executed = GtidSet.parse(self.facts.identity.flavor, self.facts.gtid_set)
        gtids = gtids.widened(executed)
        lacking = executed.lacks(gtids)
        if lacking:
            raise ServerSwitched(
                f"the server does not have transactions of the set: {shortened(lacking)}",
                hint="Take a set that it has executed: SELECT @@GLOBAL.gtid_executed; MariaDB: @@GLOBAL.gtid_binlog_pos.",
                source=self.source,
            )
        files = self.files
        purged = gtids.lacks(self.before(files[0]))
        if purged:
            raise PositionPurged(
                f"transactions behind the set are in no binlog file any more: {shortened(purged)}",
                hint=f"The server has its binlog from {files[0]}:4 on: start with a snapshot, or take a later set.",
                source=self.source,
                oldest=files[0],
            )
        return self._place(self._walk(self._completed_in(files, gtids), gtids))

    def before(self, file: str) -> GtidSet:
        """Return the GTIDs in the files before one."""
        return self.head_of(file).gtids or GtidSet(self.facts.identity.flavor, {})

    def _completed_in(self, files: Sequence[str], gtids: GtidSet) -> str:
        """Return the newest file before which the set is not complete; what stands before a file only grows."""
        low, high = 0, len(files)
        while high - low > 1:
            middle = (low + high) // 2
            if self.before(files[middle]).lacks(gtids):
                low = middle
            else:
                high = middle
        return files[low]

    # --- by position

    def at(self, position: Position) -> Place:
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
        found, head = self._walk(position.file, position), self.head_of(position.file)
        gtids = found.gtids.union(head.gtids) if head.gtids else found.gtids
        return self._place(replace(found, gtids=gtids, file_time=head.time))

    def first(self) -> Place:
        """Return the beginning of the oldest file."""
        return self.at(Position(self.files[0], FIRST_EVENT_OFFSET))

    # ---

    def _walk(self, file: str, wanted: Wanted) -> Boundary:
        start = Position(file, FIRST_EVENT_OFFSET)
        facts = self.facts
        scan = BoundaryScan(self.source, facts.identity.flavor, file, self.end, wanted, checksum=facts.checksum)
        with binlog_dump(self.server, self.credentials, self.facts.identity, start, _WALK) as stream:
            return scan.run(stream)

    def _place(self, boundary: Boundary) -> Place:
        known = self.facts.identity.flavor == "mariadb" or self.facts.variables.get("gtid_mode", "OFF").upper() == "ON"
        return Place(
            self.facts.identity,
            boundary.position,
            boundary.time or boundary.file_time,
            str(boundary.gtids),
            known and bool(boundary.gtids),
            boundary.file_time,
        )


def shortened(gtids: GtidSet) -> str:
    """Write a set for a message."""
    text = str(gtids)
    return text if len(text) <= 200 else f"{text[:197]}..."
