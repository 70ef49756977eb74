"""What goes on at the source while steps are killed: the shop's transactions, new columns, new tables, crashes."""

from __future__ import annotations

from contextlib import suppress
from random import Random
from typing import Any

import pymysql

from tests.support.chaos.letters import Letters
from tests.support.chaos.transfers import Transfers
from tests.support.chaos.trials import Trials
from tests.support.servers import SqlServer
from tests.support.shop import seed
from tests.support.shop.workload import Workload

COLUMNS = ("INT NULL", "VARCHAR(40) NULL FIRST", "DECIMAL(20,6) NULL", "DATETIME(3) NULL", "BLOB NULL")
GROWING = ("customers", "products", "orders", "payments")
"""Tables that get new columns: the workload names the columns of its INSERTs there."""


class Customers:
    """Writes to a shop, through crashes of its server.

    Args:
        server: a running one.
        database: the shop's, which is made here.
        random: decides.
        rows: how many the shop begins with.
        trials: whether there are XA transactions, and rows that cannot be read.
    """

    def __init__(self, server: SqlServer, database: str, random: Random, rows: int, trials: Trials) -> None:
        self.server = server
        self.database = database
        self._random = random
        self._columns = 0
        self._tables = 0
        with server.connect() as connection:
            seed.create(connection, database)
            seed.fill(connection, rows, random.randrange(1 << 30))
        self._trials = trials
        self._transfers = Transfers(server, database, random)
        self._letters = Letters(server, database, random)
        self._begin()

    def _begin(self) -> None:
        self._connection = self.server.connect()
        self._workload = Workload(self._connection, self.database, self._random.randrange(1 << 30), {})

    def work(self) -> None:
        """Some transactions; now and then a new column, a new table with rows, or a new binlog file."""
        self._workload.run(self._random.randrange(1, 12))
        self._letters.work(faults=self._trials.quarantine)
        if self._trials.prepared:
            self._transfers.work(*([self._letters.prepared()] if self._trials.quarantine else []))
        chance = self._random.random()
        if chance < 0.06 and self._columns < 12:
            self._columns += 1
            table, definition = self._random.choice(GROWING), self._random.choice(COLUMNS)
            kind, _, place = definition.partition(" NULL")
            column = f"extra_{self._columns}"
            self._workload.alter(table, column, f"{kind} NULL{place}")
            # A lake table gets a column with the first row that has it.
            self.server.execute(f"UPDATE {table} SET {column} = '20260101' LIMIT 1", database=self.database)
        elif chance < 0.09 and self._tables < 3:
            self._tables += 1
            name = f"late_{self._tables}"
            self.server.execute(f"CREATE TABLE {name} LIKE payments", database=self.database)
            self.server.execute(f"INSERT INTO {name} SELECT * FROM payments", database=self.database)
        elif chance < 0.15:
            self.server.execute("FLUSH BINARY LOGS")

    @property
    def undecided(self) -> bool:
        """Whether a transaction is prepared."""
        return bool(self._transfers.prepared)

    def decide(self) -> None:
        """Leave no transaction prepared."""
        self._transfers.decide_all()

    def mend(self) -> None:
        """Leave nothing that a snapshot waits for or cannot read."""
        self.decide()
        self._letters.mend()

    def crash(self) -> None:
        """Kill the server in the middle of a transaction, and start it again."""
        with suppress(pymysql.MySQLError):
            self._connection.cursor().execute("UPDATE customers SET balance = -1 LIMIT 5")
        self.server.restart(kill=True)
        self.close()
        self._begin()

    def close(self) -> None:
        """Leave."""
        with suppress(pymysql.MySQLError, OSError):
            self._connection.close()

    def options(self) -> dict[str, Any]:
        """Return how to read the shop."""
        return {"host": self.server.host, "port": self.server.port, "user": "root", "password": ""}
