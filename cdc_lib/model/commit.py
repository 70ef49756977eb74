"""When a transaction committed, by the clock of the server that committed it first."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Commit:
    """The commit of one transaction. Replication keeps both values, so another server's binlog can be searched for it.

    Args:
        server_id: ``server_id`` of the server that committed it first.
        time: commit time by that server's clock. Where the binlog has none (MariaDB, MySQL before 8.0): the second in
            which the committing statement began.
    """

    server_id: int
    time: datetime
