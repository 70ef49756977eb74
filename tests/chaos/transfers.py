"""XA transactions at the source: prepared now, committed or rolled back later, with reused ids."""

from __future__ import annotations

from contextlib import suppress
from random import Random

import pymysql

from tests.chaos.site import Site
from tests.chaos.source_writer import SourceWriter
from tests.harness.binlog import xa

XIDS = ("x0", "x1", "x2", "x3")
KEYS_PER_XID = 10
"""Each xid has its own keys, so that no statement waits for the locks of a prepared transaction."""
PATIENT = ("SET SESSION innodb_lock_wait_timeout = 3", "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")


class Transfers(SourceWriter):
    """Writes to a table with a key and to one without, mostly in XA transactions."""

    def __init__(self, site: Site, database: str, random: Random) -> None:
        super().__init__(site, database, random)
        self._execute("CREATE TABLE transfers (id INT PRIMARY KEY, v VARCHAR(40) NULL, n INT NULL)")
        self._execute("CREATE TABLE ledger (v VARCHAR(40), n INT)")

    @property
    def prepared(self) -> set[str]:
        """The xids of the primary's prepared transactions; a promoted standby may lack some."""
        return {
            data if isinstance(data, str) else data.decode() for *_, data in self._site.primary.execute("XA RECOVER")
        }

    def work(self, *others: str) -> None:
        """Prepare or decide an XA transaction, or change rows without one.

        Args:
            *others: statements that may go into a transaction that is prepared.
        """
        xid = self._random.choice(XIDS)
        if xid in self.prepared:
            self._decide(xid, commit=self._random.random() < 0.7)
        elif self._random.random() < 0.7:
            more = [other for other in others if self._random.random() < 0.3]
            with suppress(pymysql.MySQLError):
                xa.prepare(self._site.primary, self._database, f"'{xid}'", *self._changes(xid), *more)
        else:
            with suppress(pymysql.MySQLError), self._site.primary.connect(database=self._database) as session:
                for statement in self._changes(xid):
                    session.cursor().execute(statement)

    def decide_all(self) -> None:
        """Decide all prepared transactions."""
        for xid in sorted(self.prepared):
            self._decide(xid, commit=self._random.random() < 0.7)

    def _decide(self, xid: str, *, commit: bool) -> None:
        (xa.commit if commit else xa.rollback)(self._site.primary, f"'{xid}'")

    def _changes(self, xid: str) -> list[str]:
        random, first = self._random, XIDS.index(xid) * KEYS_PER_XID

        def key() -> int:
            return first + random.randrange(KEYS_PER_XID)

        change = f"REPLACE INTO transfers VALUES ({key()}, '{xid}', {random.randrange(10**6)})"
        more = (
            lambda: f"REPLACE INTO transfers VALUES ({key()}, '{xid} again', {random.randrange(10**6)})",
            lambda: f"UPDATE transfers SET n = n + 1, v = '{xid} more' WHERE id = {key()}",
            lambda: f"DELETE FROM transfers WHERE id = {key()}",
            lambda: f"UPDATE IGNORE transfers SET id = {key()} WHERE id = {key()}",
            lambda: f"INSERT INTO ledger VALUES ('{xid}', {random.randrange(3)})",
        )
        return [*PATIENT, change, *(random.choice(more)() for _ in range(random.randrange(4)))]
