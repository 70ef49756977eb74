"""A position in a server's binlog with all that a cursor must know about it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from cdc_lib.model.commit import Commit
from cdc_lib.model.gtid import GtidSet
from cdc_lib.model.position import Point, Position
from cdc_lib.model.server_identity import ServerIdentity

CLOCK_TOLERANCE = timedelta(hours=1)
"""By how much a server's clock may be set back between two commits whose order its times decide."""


@dataclass(frozen=True, slots=True)
class SeenEnd:
    """The end of the binlog that a plan of windows saw: what a run could have read.

    Args:
        point: the end.
        at: when it was read, by the server's clock (UTC).
    """

    point: Point
    at: datetime


@dataclass(frozen=True, slots=True)
class BinlogCheckpoint:
    """A transaction boundary.

    Args:
        identity: server of the binlog.
        position: its position.
        time: commit time of the last transaction before it; else creation time of its file; None if both are unknown.
        gtid_set: GTIDs of all transactions before it.
        gtids_known: whether ``gtid_set`` identifies the position: the transactions before it have GTIDs.
        file_time: creation time of the binlog file, in whole seconds of the server's clock.
        last: commit of the last transaction before it; None if unknown.
    """

    identity: ServerIdentity
    position: Position
    time: datetime | None
    gtid_set: str
    gtids_known: bool
    file_time: datetime | None
    last: Commit | None = None

    def has_gtid(self, gtid: str) -> bool | None:
        """Whether the transaction of a GTID is before the checkpoint; None if GTIDs cannot decide it."""
        if not gtid or not self.gtids_known:
            return None
        flavor = self.identity.flavor
        return not GtidSet.parse(flavor, gtid).minus(GtidSet.parse(flavor, self.gtid_set))

    def has(self, gtid: str, time: datetime | None) -> bool:
        """Whether a transaction is before the checkpoint: by its GTID, or where GTIDs cannot decide, by its commit time.

        False where neither is known.
        """
        known = self.has_gtid(gtid)
        if known is not None:
            return known
        return time is not None and self.time is not None and time <= self.time

    def covers(self, other: BinlogCheckpoint) -> bool:
        """Whether every transaction before another checkpoint is before this one too; False where that is not known.

        GTIDs decide; without them the positions in one server's binlog, or the clock of the server that committed both last
        transactions, if they are further apart than :data:`CLOCK_TOLERANCE`.
        """
        flavor = self.identity.flavor
        if self.gtids_known and other.gtids_known:
            return not GtidSet.parse(flavor, other.gtid_set).minus(GtidSet.parse(flavor, self.gtid_set))
        if self.identity.is_same_server(other.identity):
            return other.position <= self.position
        if self.last is None or other.last is None or self.last.server_id != other.last.server_id:
            return False
        return other.last.time + CLOCK_TOLERANCE < self.last.time
