"""The raw archive of a window in the place of a session of mysql-replication, for windows that the server no longer has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pymysql.protocol import MysqlPacket

from cdc_lib.model.raw_event import RawFacts
from cdc_lib.mysql.packets import payloads
from cdc_lib.ports import BinlogStream

_END = b"\xfe\0\0\0\0"
"""EOF packet: the server ends a dump with it, the archive does not have it."""


@dataclass(frozen=True, slots=True)
class Replay:
    """What stands in for the server.

    Args:
        stream: the server's packets, from the window's start to its end.
        facts: of the server when the window was drained.
    """

    stream: BinlogStream
    facts: RawFacts


class ReplayedSession:
    """Answers what mysql-replication asks, and gives the packets of the archive. Both of its sessions may be one of these.

    It takes what a session of pymysql has, by the names that it has there. Tested with mysql-replication 1.0.17.

    Args:
        replay: the archive.
    """

    charset = "utf8"

    def __init__(self, replay: Replay) -> None:
        self._replay = replay
        self._payloads = payloads(replay.stream)

    def cursor(self) -> _Variables:
        """Return an object that answers questions about variables."""
        return _Variables(self._replay.facts.variables)

    def get_server_info(self) -> str:
        """Return a version that says which kind of server it was."""
        return "MariaDB" if self._replay.facts.identity.flavor == "mariadb" else "MySQL"

    def close(self) -> None:
        """Close nothing: the archive is not opened here."""

    def _write_bytes(self, data: bytes) -> None:
        """Ignore the request of a dump: the archive begins where the window does."""

    def _read_packet(self) -> MysqlPacket:
        """Return the next packet."""
        return MysqlPacket(next(self._payloads, _END), "utf8")


class _Variables:
    """A cursor over the variables of a server that is not asked."""

    def __init__(self, variables: dict[str, str]) -> None:
        self._variables = variables
        self._sql = ""

    def execute(self, sql: str) -> None:
        """Note the question; a SET changes nothing."""
        self._sql = sql.lower()

    def fetchone(self) -> Any:
        """Return a row as the session's kind of cursor does; None for a variable that the server did not have."""
        if "binlog_checksum" in self._sql:
            value = self._variables.get("binlog_checksum")
            return None if value is None else ("binlog_checksum", value)
        value = self._variables.get("binlog_row_metadata")
        return None if value is None else {"Value": value}

    def close(self) -> None:
        """Close nothing."""
