"""A primary and its standby on real servers, and their failover."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import pymysql

from tests.harness.servers import MariaDbServer, MySqlServer, SqlServer
from tests.harness.servers.skew import wrong_clock
from tests.harness.servers.sql import Settings

KINDS = ("mysql with GTIDs", "mysql without GTIDs", "mariadb")
_WAIT_SECONDS = 180
_LOCK_WAITS: Settings = {
    "innodb-lock-wait-timeout": 10,
    "loose-replica-transaction-retries": 2,
    "loose-slave-transaction-retries": 2,
}
"""How long a standby waits for a lock. A former primary keeps the gap locks of its prepared XA transactions, which are not
replicated: what the new primary writes between those rows cannot be applied, and STOP REPLICA waits for it. The servers' own
defaults make that more than eight minutes."""


class StandbyStopped(AssertionError):
    """The standby does not apply what the primary writes; the message shows what it does instead."""

    def __init__(self, standby: SqlServer) -> None:
        questions = ("SHOW REPLICA STATUS", "SHOW FULL PROCESSLIST", "XA RECOVER", "SHOW ENGINE INNODB STATUS")
        answers = (standby.execute(standby.in_server_syntax(question)) for question in questions)
        shown = "\n".join(" | ".join(map(str, row)) for answer in answers for row in answer)
        super().__init__(f"the standby did not apply an event within {_WAIT_SECONDS} s\n{shown}")


@dataclass(frozen=True)
class Pair:
    """A primary and a standby that replicates from it."""

    kind: str
    primary: SqlServer
    standby: SqlServer

    @property
    def has_gtids(self) -> bool:
        return self.kind != "mysql without GTIDs"

    def wait(self, table: str) -> None:
        """Wait until the standby shows a row that is written to the primary now.

        Raises:
            StandbyStopped: it does not show the row in time.
        """
        mark = secrets.randbits(31)
        self.primary.execute(f"REPLACE INTO {table} VALUES (0, {mark})")
        deadline = time.monotonic() + _WAIT_SECONDS
        while not self._shows(table, mark):
            if time.monotonic() > deadline:
                raise StandbyStopped(self.standby)
            time.sleep(0.05)

    def _shows(self, table: str, mark: int) -> bool:
        try:
            return bool(self.standby.execute(f"SELECT v FROM {table} WHERE id = 0 AND v = {mark}"))
        except (pymysql.err.ProgrammingError, pymysql.err.OperationalError):  # table or database is not replicated yet
            return False

    def hold(self) -> None:
        """Let the standby lag: it receives events but does not apply them."""
        self.standby.execute(self.standby.in_server_syntax("STOP REPLICA SQL_THREAD"))

    def cut_off(self) -> None:
        """Stop replication: what is written from now on is lost with the primary."""
        self.standby.execute(self.standby.in_server_syntax("STOP REPLICA"))

    def promote(self) -> None:
        """Kill the primary as a power cut would, and promote the standby with the events that it has."""
        self.primary._end(kill=True)
        self.release()

    def release(self) -> None:
        """Remove the replication settings of the standby."""
        self.standby.execute(self.standby.in_server_syntax("STOP REPLICA"))
        self.standby.execute(self.standby.in_server_syntax("RESET REPLICA ALL"))


@contextmanager
def replicated(kind: str, settings: Settings | None = None, skews: tuple[float, float] = (0, 0)) -> Iterator[Pair]:
    """Start a primary and a standby that replicates from its first event; each clock may be wrong by some seconds."""
    password = secrets.token_hex(12)
    with ExitStack() as stack:
        primary, standby = (
            stack.enter_context(server_of(kind, number, password, settings, skew))
            for number, skew in enumerate(skews, 1)
        )
        follow(kind, primary, standby)
        yield Pair(kind, primary, standby)


def server_of(kind: str, number: int, password: str, settings: Settings | None = None, skew: float = 0) -> SqlServer:
    """Return a server that can be a primary or a standby; ``number`` is its server id, ``skew`` the error of its clock."""
    options: Settings = {"server-id": number, **_LOCK_WAITS, **(settings or {})}
    server: SqlServer
    if kind == "mariadb":
        server = MariaDbServer(settings={"log-slave-updates": "ON", **options}, cdc_password=password)
    else:
        gtids = {"gtid-mode": "OFF", "enforce-gtid-consistency": "OFF"} if kind == "mysql without GTIDs" else {}
        server = MySqlServer(settings={**gtids, **options}, cdc_password=password)
    server.environment = wrong_clock(skew)
    return server


def follow(kind: str, primary: SqlServer, standby: SqlServer) -> None:
    """Start replication from the standby's GTIDs; without GTIDs from the primary's first event."""
    if kind == "mariadb":
        # gtid_current_pos includes what the server wrote while it was a primary.
        standby.execute("SET GLOBAL gtid_slave_pos = @@gtid_current_pos")
        standby.execute(
            f"CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = {primary.port}, MASTER_USER = 'root', "
            "MASTER_CONNECT_RETRY = 1, MASTER_USE_GTID = slave_pos, MASTER_SSL = 0"
        )
        standby.execute("START SLAVE")
        return
    begin = "SOURCE_AUTO_POSITION = 1"
    if kind == "mysql without GTIDs":
        begin = "SOURCE_LOG_FILE = 'binlog.000001', SOURCE_LOG_POS = 4"
    change = (
        f"CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = {primary.port}, SOURCE_USER = 'root', "
        # Since 8.4 a standby gives up after 10 tries unless it is given another number.
        f"SOURCE_CONNECT_RETRY = 1, SOURCE_RETRY_COUNT = 600, GET_SOURCE_PUBLIC_KEY = 1, {begin}"
    )
    standby.execute(standby.in_server_syntax(change))
    standby.execute(standby.in_server_syntax("START REPLICA"))
