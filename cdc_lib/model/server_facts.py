"""The state of the connected server that decisions about a cursor need."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from cdc_lib.model.server_identity import ServerIdentity


@dataclass(frozen=True, slots=True)
class ServerState:
    """A server's binlog at one moment.

    Args:
        identity: which server it is.
        files: binlog files and their sizes in bytes, oldest first.
        gtids_on: whether every new transaction of the server's clients has a GTID.
        gtid_set: executed GTIDs.
        gtid_purged: executed GTIDs that are in no binlog file.
        file_time: when the file of the cursor's position was created; None if the server has no file of that name.
        oldest_time: when the oldest file was created; None without files.
        logs_replicated: whether the binlog has the changes that the server replicates.
        other_past: the evidence that the transaction before the cursor is not the one that was read; empty if there is none.
        all_have_gtids: whether every new transaction has a GTID, also one that is replicated.
    """

    identity: ServerIdentity
    files: tuple[tuple[str, int], ...]
    gtids_on: bool
    gtid_set: str
    gtid_purged: str
    file_time: datetime | None
    oldest_time: datetime | None
    logs_replicated: bool = True
    other_past: str = ""
    all_have_gtids: bool = True
