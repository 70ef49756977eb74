"""XA transactions at the source: prepared now, committed or rolled back later, under ids that are used again and again."""

from __future__ import annotations

from contextlib import suppress
from random import Random

import pymysql

from tests.support import xa
from tests.support.servers import SqlServer

XIDS = ("x0", "x1", "x2", "x3")
SHARE = 10
"""Each id has rows of its own, so many: what a prepared transaction holds locked nobody else waits for."""
PATIENT = ("SET SESSION innodb_lock_wait_timeout = 3", "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")


class Transfers:
    """Writes to a table with a key and to one without, mostly in XA transactions.

    Args:
        server: a running one.
        database: where the two tables are made.
        random: decides.

    Attributes:
        prepared: ids of the transactions that are prepared.
    """

    def __init__(self, server: SqlServer, database: str, random: Random) -> None:
        self._server = server
        self._database = database
        self._random = random
        self.prepared: set[str] = set()
        self._execute("CREATE TABLE transfers (id INT PRIMARY KEY, v VARCHAR(40) NULL, n INT NULL)")
        self._execute("CREATE TABLE ledger (v VARCHAR(40), n INT)")

    def work(self, *others: str) -> None:
        """Prepare, decide, or change rows as everybody does.

        Args:
            *others: statements that may go into a transaction that is prepared.
        """
        xid = self._random.choice(XIDS)
        if xid in self.prepared:
            self._decide(xid, commit=self._random.random() < 0.7)
        elif self._random.random() < 0.7:
            more = [one for one in others if self._random.random() < 0.3]
            self._try(xid, lambda: xa.prepare(self._server, self._database, f"'{xid}'", *self._changes(xid), *more))
        else:
            with suppress(pymysql.MySQLError), self._server.connect(database=self._database) as session:
                for statement in self._changes(xid):
                    session.cursor().execute(statement)

    def decide_all(self) -> None:
        """Leave nothing prepared."""
        for xid in sorted(self.prepared):
            self._decide(xid, commit=self._random.random() < 0.7)

    def _try(self, xid: str, prepare) -> None:
        with suppress(pymysql.MySQLError):
            prepare()
            self.prepared.add(xid)

    def _decide(self, xid: str, *, commit: bool) -> None:
        (xa.commit if commit else xa.rollback)(self._server, f"'{xid}'")
        self.prepared.discard(xid)

    def _changes(self, xid: str) -> list[str]:
        random, first = self._random, XIDS.index(xid) * SHARE

        def key() -> int:
            return first + random.randrange(SHARE)

        first_one = f"REPLACE INTO transfers VALUES ({key()}, '{xid}', {random.randrange(10**6)})"
        more = (
            lambda: f"REPLACE INTO transfers VALUES ({key()}, '{xid} again', {random.randrange(10**6)})",
            lambda: f"UPDATE transfers SET n = n + 1, v = '{xid} more' WHERE id = {key()}",
            lambda: f"DELETE FROM transfers WHERE id = {key()}",
            lambda: f"UPDATE IGNORE transfers SET id = {key()} WHERE id = {key()}",
            lambda: f"INSERT INTO ledger VALUES ('{xid}', {random.randrange(3)})",
        )
        return [*PATIENT, first_one, *(random.choice(more)() for _ in range(random.randrange(4)))]

    def _execute(self, statement: str) -> None:
        self._server.execute(statement, database=self._database)
