"""Statements that change rows."""

from __future__ import annotations

from random import Random

from tests.fuzz.sql.names import Words
from tests.fuzz.sql.tables import Column, Table


class Changes:
    """Makes them for one program.

    Args:
        random: of the program.
        words: spells its names.
    """

    def __init__(self, random: Random, words: Words) -> None:
        self.random, self.words = random, words

    def value(self, column: Column) -> str:
        """Return a literal of a column."""
        if column.nullable and self.random.random() < 0.12:
            return "NULL"
        if column.default and self.random.random() < 0.08:
            return "DEFAULT"
        return self.random.choice(column.type.values)

    def insert(self, table: Table, verb: str = "") -> str:
        """Return an INSERT, REPLACE or upsert of a few rows."""
        random, words = self.random, self.words
        verb = verb or random.choice(
            ["INSERT INTO", "INSERT IGNORE INTO", "INSERT IGNORE INTO", "REPLACE INTO", "INSERT", "upsert"]
        )
        columns = [one for one in table.written if not (one.default or one.nullable) or random.random() < 0.85]
        if not columns:
            return f"INSERT INTO {words.table(*table.pair)} () VALUES ()"
        rows = ", ".join(
            f"({', '.join(self.value(one) for one in columns)})" for _ in range(random.choice([1, 1, 2, 4]))
        )
        names = ", ".join(words.column(one.name) for one in columns)
        start = "INSERT INTO" if verb == "upsert" else verb
        sql = f"{start} {words.table(*table.pair)} ({names}) VALUES {rows}"
        return f"{sql} ON DUPLICATE KEY UPDATE {self._sets(table)}" if verb == "upsert" else sql

    def update(self, table: Table) -> str:
        """Return an UPDATE."""
        ignore = self.words.maybe(0.7, "IGNORE")
        return f"UPDATE {ignore}{self.words.table(*table.pair)} SET {self._sets(table)}{self._where(table)}"

    def delete(self, table: Table) -> str:
        """Return a DELETE."""
        return f"DELETE FROM {self.words.table(*table.pair)}{self._where(table)}"

    def of_two(self, first: Table, second: Table) -> str:
        """Return a statement over two tables."""
        one, other = (self.words.table(*table.pair) for table in (first, second))
        if self.random.random() < 0.5:
            return f"DELETE x FROM {one} AS x JOIN {other} AS y ON TRUE WHERE x.{self._any(first)} IS NOT NULL"
        return f"INSERT IGNORE INTO {one} ({self._any(first)}) SELECT {self._any(second)} FROM {other} LIMIT 2"

    def any(self, table: Table) -> str:
        """Return any of these."""
        return self.random.choice([self.insert, self.insert, self.insert, self.update, self.update, self.delete])(table)

    def _any(self, table: Table) -> str:
        return self.words.column(self.random.choice(table.written or table.columns).name)

    def _sets(self, table: Table) -> str:
        able = table.written
        if not able:
            return "x = 1"
        chosen = self.random.sample(able, min(len(able), self.random.choice([1, 1, 2])))
        return ", ".join(f"{self.words.column(one.name)} = {self.value(one)}" for one in chosen)

    def _where(self, table: Table) -> str:
        column = self.random.choice(table.columns)
        name = self.words.column(column.name)
        return self.random.choice(
            [
                "",
                f" WHERE {name} IS NOT NULL",
                f" ORDER BY {name} LIMIT 1",
                f" ORDER BY {name} DESC LIMIT 2",
                f" LIMIT {self.random.randint(1, 2)}",
            ]
        )
