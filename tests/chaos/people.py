"""Tables of people at the source, some of whom are erased; each has a mail that nobody else ever has."""

from __future__ import annotations

from contextlib import suppress
from random import Random

import pymysql

from tests.chaos.site import Site
from tests.chaos.source_writer import SourceWriter

MODES = {"people_soft": "soft_delete", "people_past": "scd2"}
TABLES = ("people", *MODES)


class People(SourceWriter):
    """Writes to the tables."""

    def __init__(self, site: Site, database: str, random: Random) -> None:
        super().__init__(site, database, random)
        self._mails = 0
        for table in TABLES:
            self._execute(f"CREATE TABLE {table} (id INT PRIMARY KEY, mail VARCHAR(60) NOT NULL, n INT NULL)")

    def work(self) -> None:
        """Add a person, perhaps with the number of one that was erased, change some, or delete one."""
        table, number = self._random.choice(TABLES), self._random.randrange(60)
        self._mails += 1
        mail = f"{table}.{number}.{self._mails}@chaos.example"
        for statement in (
            f"INSERT IGNORE INTO {table} VALUES ({number}, '{mail}', 0)",
            f"UPDATE {table} SET n = n + 1 WHERE id > {number} LIMIT 3",
            f"DELETE FROM {table} WHERE id = {self._random.randrange(240)}",
        ):
            with suppress(pymysql.MySQLError):  # the server was killed
                self._execute(statement)

    def leave(self, table: str) -> dict[int, str]:
        """Delete some people of a table; returns their mails by their numbers."""
        found = self._execute(f"SELECT id, mail FROM {table} ORDER BY id")
        left = dict(self._random.sample(found, min(len(found), self._random.randint(1, 3))))
        if left:
            self._execute(f"DELETE FROM {table} WHERE id IN ({', '.join(map(str, left))})")
        return left
