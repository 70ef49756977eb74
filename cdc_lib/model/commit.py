"""When a transaction committed, by the clock of the server that committed it first."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Commit:
    """The commit of one transaction; replication leaves both as they are, so that another server's binlog can be searched for it.

    Args:
        server_id: number of the server that committed it first.
        time: when, by that server's clock. Where the binlog has no commit times (MariaDB, MySQL before 8.0): the second in which
            the statement began that committed.
    """

    server_id: int
    time: datetime
