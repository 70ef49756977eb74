"""Tables with DDL: columns are added, dropped and renamed, tables truncated, swapped and re-created."""

from __future__ import annotations

from random import Random

from tests.chaos.site import Site
from tests.chaos.source_writer import SourceWriter

MODES = {"shape_soft": "soft_delete", "shape_past": "scd2"}
POLICIES = {
    "shape_b": {"drop_column": "follow", "drop_table": "follow"},
    "shape_soft": {"drop_column": "follow", "drop_table": "keep"},
}
"""By table, what the lake does otherwise than by default; every table still equals the source at the end."""
TABLES = ("shape_a", "shape_b", *MODES)
FIRST = "(id INT PRIMARY KEY, v VARCHAR(40) NULL, n INT NULL, k INT NOT NULL DEFAULT 0)"
TYPES = {
    "i": ("INT", ("NULL", "NOT NULL DEFAULT 7", "NULL DEFAULT 8"), "id"),
    "s": ("VARCHAR(30)", ("NULL", "NOT NULL DEFAULT 'new'"), "CONCAT('own ', id)"),
    "d": ("DECIMAL(9,3)", ("NULL", "NULL DEFAULT 1.5"), "id + 0.125"),
    "t": ("DATETIME(3)", ("NULL",), "'2026-01-02 03:04:05.678'"),
}
"""For each kind of column: type, constraints and a value; the kind is part of a column's name, and names are reused."""
NAMES = 3


class Shapes(SourceWriter):
    """Writes to tables and alters them."""

    def __init__(self, site: Site, database: str, random: Random) -> None:
        super().__init__(site, database, random)
        for table in TABLES:
            self._execute(f"CREATE TABLE {table} {FIRST}")

    def work(self, *, statements: bool) -> None:
        """Change some rows, and sometimes alter the table."""
        table = self._random.choice(TABLES)
        for _ in range(self._random.randrange(1, 5)):
            key, value = self._random.randrange(40), self._random.randrange(1000)
            change = self._random.choice((
                f"REPLACE INTO {table} (id, v, n) VALUES ({key}, 'row {value}', {value})",
                f"UPDATE {table} SET n = {value} WHERE id > {key} LIMIT 5",
                f"DELETE FROM {table} WHERE id = {key}",
            ))  # fmt: skip
            self._execute(change)
        if statements and self._random.random() < 0.3:
            changes = [self._add] * 3 + [self._drop, self._rename, self._exchange, self._round, self._empty, self._swap]
            changes += [self._make_again] if table in MODES else [self._make_again, self._rekey]
            self._random.choice(changes)(table)

    def forget(self) -> None:
        """Continue on another server, whose tables may differ."""
        for table in TABLES:
            self._execute(f"CREATE TABLE IF NOT EXISTS {table} {FIRST}")
            self._execute(f"DROP TABLE IF EXISTS {table}_next, {table}_gone")

    def _add(self, table: str) -> None:
        kind = self._random.choice(list(TYPES))
        if name := self._free(table, kind):
            spelled, ways, value = TYPES[kind]
            self._execute(f"ALTER TABLE {table} ADD COLUMN {name} {spelled} {self._random.choice(ways)}")
            # A lake table gets a column with the first row event that has it; unchanged rows have no event.
            self._execute(f"REPLACE INTO {table} (id, v) VALUES (41, 'with it {self._random.randrange(10**9)}')")
            self._execute(f"UPDATE {table} SET {name} = {value} WHERE id < 20")

    def _drop(self, table: str) -> None:
        if more := self._more(table):
            self._execute(f"ALTER TABLE {table} DROP COLUMN {self._random.choice(more)}")

    def _rename(self, table: str) -> None:
        more = self._more(table)
        if more and (name := self._free(table, kind_of(old := self._random.choice(more)))):
            self._execute(f"ALTER TABLE {table} RENAME COLUMN {old} TO {name}")

    def _exchange(self, table: str) -> None:
        more = self._more(table)
        pairs = [(a, b) for a in more for b in more if a < b and kind_of(a) == kind_of(b)]
        if pairs:
            a, b = self._random.choice(pairs)
            self._execute(f"ALTER TABLE {table} RENAME COLUMN {a} TO {b}, RENAME COLUMN {b} TO {a}")

    def _round(self, table: str) -> None:
        """Drop the fractions of seconds of a column in all rows, without row events."""
        if more := [name for name in self._more(table) if kind_of(name) == "t"]:
            self._execute(f"ALTER TABLE {table} MODIFY {self._random.choice(more)} DATETIME NULL")

    def _rekey(self, table: str) -> None:
        columns = self._random.choice(("id", "id, k", "k, id"))
        self._execute(f"ALTER TABLE {table} DROP PRIMARY KEY, ADD PRIMARY KEY ({columns})")

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
        self._execute(f"INSERT INTO {table} (id, v, n) VALUES (43, 'made again', 1)")

    def _more(self, table: str) -> list[str]:
        """Return the columns that were added."""
        rows = self._site.primary.execute(f"SHOW COLUMNS FROM {table}", database=self._database)
        return [row[0] for row in rows if row[0].startswith("c_")]

    def _free(self, table: str, kind: str) -> str:
        """Return a column name of a kind that the table does not have now; it may have had it before."""
        names = {f"c_{kind}{number}" for number in range(NAMES)} - {*self._more(table)}
        return self._random.choice(sorted(names)) if names else ""


def kind_of(column: str) -> str:
    """Return the kind of a column that was added."""
    return column[2]
