"""A table that sometimes gets invalid text, so that it is quarantined."""

from __future__ import annotations

from contextlib import suppress
from random import Random

import pymysql

from tests.chaos.site import Site

INVALID_TEXT = "_cp1250 X'6181C462'"
"""0x81 is not a character of cp1250."""


class EncodingFaults:
    """Writes texts, some of them invalid.

    Args:
        site: the servers.
        database: where the table is created.
        random: the random generator.
    """

    def __init__(self, site: Site, database: str, random: Random) -> None:
        self._site = site
        self._random = random
        self.table = f"{database}.texts"
        self._execute(f"CREATE TABLE {self.table} (id INT PRIMARY KEY, v VARCHAR(40) CHARACTER SET cp1250 NULL)")

    def work(self, *, faults: bool) -> None:
        """Change one row; with faults, it may write invalid text or truncate the table."""
        chance, key = self._random.random(), self._random.randrange(30)
        statement = f"REPLACE INTO {self.table} VALUES ({key}, 'text {self._random.randrange(1000)}')"
        if chance < 0.3:
            statement = f"DELETE FROM {self.table} WHERE id = {key}"
        elif faults and chance < 0.45:
            statement = f"REPLACE INTO {self.table} VALUES ({key}, {INVALID_TEXT})"
        elif faults and chance < 0.48:
            statement = f"TRUNCATE TABLE {self.table}"
        with suppress(pymysql.MySQLError):  # a prepared transaction holds a lock
            self._execute(statement)

    def prepared(self) -> str:
        """Return a statement for a transaction that is prepared."""
        value = INVALID_TEXT if self._random.random() < 0.2 else "'prepared'"
        return f"REPLACE INTO {self.table} VALUES ({100 + self._random.randrange(20)}, {value})"

    def repair(self) -> None:
        """Delete the invalid rows; no transaction may be prepared."""
        self._execute(f"DELETE FROM {self.table} WHERE HEX(v) LIKE '%81%'")

    def _execute(self, statement: str) -> None:
        with self._site.primary.connect() as session, session.cursor() as cursor:
            for sql in ("SET SESSION innodb_lock_wait_timeout = 2", "SET SESSION lock_wait_timeout = 2", statement):
                cursor.execute(sql)
