"""The changes at the source while steps are killed: the shop's transactions, new columns, new tables, crashes."""

from __future__ import annotations

from contextlib import suppress
from random import Random
from typing import Any

import pymysql

from demo.shop import seed
from demo.shop.workload import Workload
from tests.chaos.encoding_faults import EncodingFaults
from tests.chaos.people import People
from tests.chaos.scenarios import Scenarios
from tests.chaos.shapes import Shapes
from tests.chaos.site import Site
from tests.chaos.transfers import Transfers

COLUMNS = ("INT NULL", "VARCHAR(40) NULL FIRST", "DECIMAL(20,6) NULL", "DATETIME(3) NULL", "BLOB NULL")
GROWING = ("customers", "products", "orders", "payments")
"""Tables that get new columns: the INSERTs of the workload name their columns."""


class ChaosWorkload:
    """Writes to a shop on the current primary, through crashes and failovers.

    Args:
        site: the servers.
        database: the shop's, which is created here.
        random: the random generator.
        rows: number of rows of the shop at the start.
        scenarios: what else is written.
    """

    def __init__(self, site: Site, database: str, random: Random, rows: int, scenarios: Scenarios) -> None:
        self.site = site
        self.database = database
        self._random = random
        self._columns = 0
        self._tables = 0
        with site.primary.connect() as connection:
            seed.create(connection, database)
            seed.fill(connection, rows, random.randrange(1 << 30))
        self._scenarios = scenarios
        self._transfers = Transfers(site, database, random)
        self._encoding_faults = EncodingFaults(site, database, random)
        self._shapes = Shapes(site, database, random)
        self.people = People(site, database, random)
        self._begin()

    def _begin(self) -> None:
        self._connection = self.site.primary.connect()
        image = self._random.choice(("FULL", "MINIMAL", "NOBLOB")) if self._scenarios.images else "FULL"
        self._connection.cursor().execute(f"SET SESSION binlog_row_image = '{image}'")
        self._workload = workload = Workload(self._connection, self.database, self._random.randrange(1 << 30), {})
        if image != "FULL" and self.site.has_standby and self.site.primary.flavor == "mariadb":
            # MariaDB's standby then differs from its primary, so the lake could not equal both.
            workload.steps = [(weight, step) for weight, step in workload.steps if step != workload.replace]

    def work(self) -> None:
        """Run some transactions; sometimes add a column, a table with rows, or a binlog file."""
        self._workload.run(self._random.randrange(1, 12))
        self._encoding_faults.work(faults=self._scenarios.quarantine)
        self._shapes.work(statements=self._scenarios.statements)
        self.people.work()
        if self._scenarios.prepared:
            self._transfers.work(*([self._encoding_faults.prepared()] if self._scenarios.quarantine else []))
        chance = self._random.random()
        if chance < 0.06 and self._columns < 12:
            self._columns += 1
            table, definition = self._random.choice(GROWING), self._random.choice(COLUMNS)
            kind, _, order = definition.partition(" NULL")
            column = f"extra_{self._columns}"
            self._workload.alter(table, column, f"{kind} NULL{order}")
            # A lake table gets a column with the first row that has it.
            self._execute(f"UPDATE {table} SET {column} = '20260101' LIMIT 1")
        elif chance < 0.09 and self._tables < 3:
            self._tables += 1
            name = f"late_{self._tables}"
            self._execute(f"CREATE TABLE {name} LIKE payments")
            self._execute(f"INSERT INTO {name} SELECT * FROM payments")
        elif chance < 0.15:
            self._execute("FLUSH BINARY LOGS")

    @property
    def undecided(self) -> bool:
        """Whether a transaction is prepared."""
        return bool(self._transfers.prepared)

    def decide(self) -> None:
        """Decide all prepared transactions."""
        self._transfers.decide_all()

    def repair(self) -> None:
        """Decide prepared transactions and delete invalid text, so that snapshots can be read."""
        self.decide()
        self._encoding_faults.repair()

    def crash(self) -> None:
        """Kill the server in the middle of a transaction, and start it again."""
        self.begin_uncommitted()
        self.site.primary.restart(kill=True)
        self.follow()

    def begin_uncommitted(self) -> None:
        """Start a transaction that is never committed."""
        with suppress(pymysql.MySQLError):
            self._connection.cursor().execute("UPDATE customers SET balance = -1 LIMIT 5")

    def follow(self) -> None:
        """Continue on the current primary."""
        self.close()
        self._shapes.forget()
        self._begin()

    def tables(self) -> list[str]:
        """Return the names of all tables, as ``database.table``."""
        rows = self.site.primary.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = %s AND table_type = 'BASE TABLE' "
            "ORDER BY table_name",
            [self.database],
        )
        return [f"{self.database}.{name}" for (name,) in rows]

    def close(self) -> None:
        """Close the connection."""
        with suppress(pymysql.MySQLError, OSError):
            self._connection.close()

    def options(self) -> dict[str, Any]:
        """Return pymysql's options for reading the shop."""
        server = self.site.primary
        return {"host": server.host, "port": server.port, "user": "root", "password": ""}

    def _execute(self, statement: str) -> None:
        self.site.primary.execute(statement, database=self.database)
