"""A table of which rows are no text now and then, so that it is quarantined."""

from __future__ import annotations

from contextlib import suppress
from random import Random

import pymysql

from tests.chaos.site import Site

NO_TEXT = "_cp1250 X'6181C462'"
"""0x81 of cp1250 is a byte without a character."""


class EncodingFaults:
    """Writes letters, some of them not to be read.

    Args:
        site: the servers.
        database: where the table is made.
        random: decides.
    """

    def __init__(self, site: Site, database: str, random: Random) -> None:
        self._site = site
        self._random = random
        self.table = f"{database}.letters"
        self._execute(f"CREATE TABLE {self.table} (id INT PRIMARY KEY, v VARCHAR(40) CHARACTER SET cp1250 NULL)")

    def work(self, *, faults: bool) -> None:
        """Write one; with faults it may be one that nobody can read, or all are gone at once."""
        chance, key = self._random.random(), self._random.randrange(30)
        statement = f"REPLACE INTO {self.table} VALUES ({key}, 'letter {self._random.randrange(1000)}')"
        if chance < 0.3:
            statement = f"DELETE FROM {self.table} WHERE id = {key}"
        elif faults and chance < 0.45:
            statement = f"REPLACE INTO {self.table} VALUES ({key}, {NO_TEXT})"
        elif faults and chance < 0.48:
            statement = f"TRUNCATE TABLE {self.table}"
        with suppress(pymysql.MySQLError):  # a prepared transaction holds what it needs
            self._execute(statement)

    def prepared(self) -> str:
        """Return a statement for a transaction that is prepared."""
        value = NO_TEXT if self._random.random() < 0.2 else "'prepared'"
        return f"REPLACE INTO {self.table} VALUES ({100 + self._random.randrange(20)}, {value})"

    def mend(self) -> None:
        """Take away what cannot be read; no transaction may be prepared."""
        self._execute(f"DELETE FROM {self.table} WHERE HEX(v) LIKE '%81%'")

    def _execute(self, statement: str) -> None:
        with self._site.primary.connect() as session, session.cursor() as cursor:
            for one in ("SET SESSION innodb_lock_wait_timeout = 2", "SET SESSION lock_wait_timeout = 2", statement):
                cursor.execute(one)
