"""A place in a server's binlog with all that a cursor has to know of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from cdc_lib.model.commit import Commit
from cdc_lib.model.position import Position
from cdc_lib.model.server_identity import ServerIdentity


@dataclass(frozen=True, slots=True)
class BinlogCheckpoint:
    """A transaction boundary.

    Args:
        identity: server that it lies on.
        position: of it.
        time: when the last transaction before it committed; when its file was made where none is known; None without either.
        gtid_set: GTIDs of all transactions before it.
        gtids_known: whether ``gtid_set`` tells the place: transactions before it have GTIDs.
        file_time: when the file of the position was made, in whole seconds of the server's clock.
        last: commit of the last transaction before it; None where none is known.
    """

    identity: ServerIdentity
    position: Position
    time: datetime | None
    gtid_set: str
    gtids_known: bool
    file_time: datetime | None
    last: Commit | None = None

    def with_time(self, time: datetime) -> BinlogCheckpoint:
        """Return the same place with another time."""
        return replace(self, time=time)
