"""Tables whose shape changes: columns come, go and get other names, rows go all at once, other tables take their names."""

from __future__ import annotations

from random import Random

from tests.support.chaos.site import Site

TABLES = ("shape_a", "shape_b")
FIRST = "(id INT PRIMARY KEY, v VARCHAR(40) NULL, n INT NULL)"
TYPES = ("INT NULL", "VARCHAR(30) NULL", "INT NOT NULL DEFAULT 7", "DECIMAL(9,3) NULL DEFAULT 1.5", "DATE NULL")


class Shapes:
    """Writes to tables and changes them; every column that is added has a name of its own.

    Args:
        site: the servers.
        database: where the tables are made.
        random: decides.
    """

    def __init__(self, site: Site, database: str, random: Random) -> None:
        self._site = site
        self._database = database
        self._random = random
        self._names = 0
        for table in TABLES:
            self._execute(f"CREATE TABLE {table} {FIRST}")

    def work(self, *, statements: bool) -> None:
        """Change some rows, and now and then the table."""
        table = self._random.choice(TABLES)
        for _ in range(self._random.randrange(1, 5)):
            key, value = self._random.randrange(40), self._random.randrange(1000)
            change = self._random.choice((
                f"REPLACE INTO {table} (id, v, n) VALUES ({key}, 'row {value}', {value})",
                f"UPDATE {table} SET n = {value} WHERE id > {key} LIMIT 5",
                f"DELETE FROM {table} WHERE id = {key}",
            ))  # fmt: skip
            self._execute(change)
        if statements and self._random.random() < 0.15:
            change = self._random.choice(
                (self._add, self._add, self._drop, self._rename, self._empty, self._swap, self._make_again)
            )
            change(table)

    def forget(self) -> None:
        """Go on with what another server has: nothing of the former one is remembered but the names that were used."""
        for table in TABLES:
            self._execute(f"CREATE TABLE IF NOT EXISTS {table} {FIRST}")
            self._execute(f"DROP TABLE IF EXISTS {table}_next, {table}_gone")

    def _add(self, table: str) -> None:
        self._execute(f"ALTER TABLE {table} ADD COLUMN {self._name()} {self._random.choice(TYPES)}")
        # A lake table gets a column with the first row that has it.
        self._execute(f"REPLACE INTO {table} (id, v) VALUES (41, 'with it')")

    def _drop(self, table: str) -> None:
        if more := self._more(table):
            self._execute(f"ALTER TABLE {table} DROP COLUMN {self._random.choice(more)}")

    def _rename(self, table: str) -> None:
        if more := self._more(table):
            self._execute(f"ALTER TABLE {table} RENAME COLUMN {self._random.choice(more)} TO {self._name()}")

    def _empty(self, table: str) -> None:
        self._execute(f"TRUNCATE TABLE {table}")

    def _swap(self, table: str) -> None:
        self._execute(f"CREATE TABLE {table}_next LIKE {table}")
        self._execute(f"INSERT INTO {table}_next SELECT * FROM {table} WHERE id % 2 = 0")
        self._execute(f"REPLACE INTO {table}_next (id, v) VALUES (42, 'swapped')")
        self._execute(f"RENAME TABLE {table} TO {table}_gone, {table}_next TO {table}")
        self._execute(f"DROP TABLE {table}_gone")

    def _make_again(self, table: str) -> None:
        self._execute(f"DROP TABLE {table}")
        self._execute(f"CREATE TABLE {table} {FIRST}")
        self._execute(f"INSERT INTO {table} VALUES (43, 'made again', 1)")

    def _more(self, table: str) -> list[str]:
        """Return the columns that were added."""
        rows = self._site.primary.execute(f"SHOW COLUMNS FROM {table}", database=self._database)
        return [row[0] for row in rows if row[0].startswith("c_")]

    def _name(self) -> str:
        self._names += 1
        return f"c_{self._names}"

    def _execute(self, statement: str) -> None:
        self._site.primary.execute(statement, database=self._database)
