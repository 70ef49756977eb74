"""The low watermark: a position such that the next SELECT sees every change before it.

The end of the binlog alone is not enough: a transaction is written to the binlog first and committed in the engine a moment
later (with semi-synchronous replication up to its time-out later). A SELECT in between does not see it, although its position
lies before the end. The row would have a watermark after a change that it lacks, and that change would count as an old
one. So the end is read first, and then:

- MariaDB: a consistent snapshot names its exact binlog position (``binlog_snapshot_file`` and ``_position``).
- MySQL: ``gtid_owned`` lists the transactions with GTIDs that are written but not committed; the SELECT waits for them.
- MySQL unless ``gtid_mode`` is ``ON``: nothing lists transactions without GTIDs; the SELECT waits ``settle`` seconds. The mode is
  read after the end of the binlog, because it can change while the server runs: it becomes ``ON`` only when they are committed.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import pymysql
from pymysql.connections import Connection

from cdc_lib.errors import SourceError, SourceUnavailable
from cdc_lib.model.position import Position
from cdc_lib.model.schema import TableSchema
from cdc_lib.mysql.server_facts import ServerFacts, read_binlog_end
from cdc_lib.mysql.statements import rows_of

SETTLE_SECONDS = 3.0
_WAIT_SECONDS = 60


@dataclass(slots=True)
class Watermarks:
    """The low watermarks of the SELECTs of one table, one after the other.

    A position that was read ``settle`` seconds ago needs no wait. So without GTIDs only the first SELECT waits, and the first
    one after the table's definition changed: an older position would lie before the statement that changed it.
    """

    settle: float = SETTLE_SECONDS
    _schema: TableSchema | None = None
    _read: deque[tuple[float, Position]] = field(default_factory=deque)
    """When positions were read (monotonic clock), the oldest first."""

    def before_select(
        self, connection: Connection[Any], facts: ServerFacts, schema: TableSchema | None = None
    ) -> Position:
        """Return the low watermark for a SELECT on the same connection.

        On MariaDB a transaction with a consistent snapshot stays open; the SELECT must run in it.

        Args:
            connection: a session on the server; always the same server.
            facts: of the server.
            schema: of the table, read before; not needed for a single SELECT.

        Raises:
            SourceUnavailable: transactions in the binlog are not committed in time.
        """
        try:
            if facts.identity.flavor == "mariadb":
                return _mariadb(connection)
            binlog_end, exact = _mysql(connection, facts)
        except pymysql.MySQLError as error:
            raise SourceError(f"the watermark cannot be read: {error}") from error
        if exact:
            self._read.clear()
            return binlog_end
        if schema != self._schema or (self._read and binlog_end < self._read[-1][1]):
            self._read.clear()
        self._schema = schema
        self._read.append((time.monotonic(), binlog_end))
        return self._settled()

    def _settled(self) -> Position:
        """Return the newest position that was read long enough ago; waits for the oldest one."""
        time.sleep(max(0.0, self._read[0][0] + self.settle - time.monotonic()))
        while len(self._read) > 1 and self._read[1][0] + self.settle <= time.monotonic():
            self._read.popleft()
        return self._read[0][1]


def low_watermark(connection: Connection[Any], facts: ServerFacts, *, settle: float = SETTLE_SECONDS) -> Position:
    """Return the low watermark for a SELECT on the same connection.

    On MariaDB a transaction with a consistent snapshot stays open; the SELECT must run in it.

    Raises:
        SourceUnavailable: transactions in the binlog are not committed in time.
    """
    return Watermarks(settle).before_select(connection, facts)


def _mysql(connection: Connection[Any], facts: ServerFacts) -> tuple[Position, bool]:
    """Return the end of the binlog, and whether a SELECT now sees every change before it."""
    binlog_end = read_binlog_end(connection, facts)
    mode, owned = rows_of(connection, "SELECT @@GLOBAL.gtid_mode, @@GLOBAL.gtid_owned")[0]
    _wait_for_owned(connection, str(owned or ""))
    return binlog_end, str(mode).upper() == "ON"


def _mariadb(connection: Connection[Any]) -> Position:
    rows_of(connection, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    rows_of(connection, "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
    values = dict(rows_of(connection, "SHOW STATUS LIKE 'binlog_snapshot_%'"))
    status = {str(name).lower(): str(value) for name, value in values.items()}
    return Position(status["binlog_snapshot_file"], int(status["binlog_snapshot_position"]))


def _wait_for_owned(connection: Connection[Any], owned: str) -> None:
    if not owned:
        return
    # Each GTID is followed by its owner as "#thread".
    gtids = ",".join(_without_owners(part) for part in owned.replace("\n", "").split(","))
    timed_out = rows_of(connection, "SELECT WAIT_FOR_EXECUTED_GTID_SET(%s, %s)", (gtids, _WAIT_SECONDS))[0][0]
    if timed_out:
        raise SourceUnavailable(
            f"transactions that are in the binlog are not committed after {_WAIT_SECONDS} seconds",
            hint="SHOW FULL PROCESSLIST shows commits that wait. Where they wait for a semi-synchronous replica: start it, or SET "
            "GLOBAL rpl_semi_sync_source_enabled = OFF.",
            gtids=gtids,
        )


def _without_owners(part: str) -> str:
    """``uuid:7#31:9#32`` as ``uuid:7:9``."""
    return ":".join(interval.split("#")[0] for interval in part.strip().split(":"))
