"""XA transactions at the source: prepared now, committed or rolled back later, under ids that are used again and again."""

from __future__ import annotations

from contextlib import suppress
from random import Random

import pymysql

from tests.chaos.site import Site
from tests.harness import xa

XIDS = ("x0", "x1", "x2", "x3")
SHARE = 10
"""Each id has rows of its own, so many: what a prepared transaction holds locked nobody else waits for."""
PATIENT = ("SET SESSION innodb_lock_wait_timeout = 3", "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")


class Transfers:
    """Writes to a table with a key and to one without, mostly in XA transactions.

    Args:
        site: the servers.
        database: where the two tables are made.
        random: decides.
    """

    def __init__(self, site: Site, database: str, random: Random) -> None:
        self._site = site
        self._database = database
        self._random = random
        self._execute("CREATE TABLE transfers (id INT PRIMARY KEY, v VARCHAR(40) NULL, n INT NULL)")
        self._execute("CREATE TABLE ledger (v VARCHAR(40), n INT)")

    @property
    def prepared(self) -> set[str]:
        """Ids of the transactions that are prepared, as the primary has them: a standby that took over may lack some."""
        return {
            data if isinstance(data, str) else data.decode() for *_, data in self._site.primary.execute("XA RECOVER")
        }

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
            with suppress(pymysql.MySQLError):
                xa.prepare(self._site.primary, self._database, f"'{xid}'", *self._changes(xid), *more)
        else:
            with suppress(pymysql.MySQLError), self._site.primary.connect(database=self._database) as session:
                for statement in self._changes(xid):
                    session.cursor().execute(statement)

    def decide_all(self) -> None:
        """Leave nothing prepared."""
        for xid in sorted(self.prepared):
            self._decide(xid, commit=self._random.random() < 0.7)

    def _decide(self, xid: str, *, commit: bool) -> None:
        (xa.commit if commit else xa.rollback)(self._site.primary, f"'{xid}'")

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
        self._site.primary.execute(statement, database=self._database)
