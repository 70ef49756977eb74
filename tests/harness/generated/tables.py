"""Random tables and random ALTER statements that a server accepts."""

from __future__ import annotations

import random

TYPES = (
    "INT", "BIGINT UNSIGNED", "SMALLINT", "DECIMAL(12,3)", "DOUBLE", "FLOAT", "DATE", "DATETIME(3)", "TIME", "YEAR",
    "VARCHAR(40)", "VARCHAR(40) CHARACTER SET latin1", "CHAR(7) COLLATE latin1_bin", "VARBINARY(12)", "BINARY(3)", "TINYTEXT",
    "TEXT", "TEXT CHARACTER SET latin1", "MEDIUMTEXT", "BLOB", "BIT(9)", "ENUM('a','b')", "ENUM('x','z''a') CHARSET latin1",
    "SET('p','q','r')", "JSON", "BOOLEAN", "TEXT(100)", "NVARCHAR(8)",
)  # fmt: skip
KEYED = ("INT", "BIGINT UNSIGNED", "SMALLINT", "DATE", "VARCHAR(40)", "VARBINARY(12)", "ENUM('a','b')")
CHARSETS = ("utf8mb4", "latin1", "utf8mb3")


class RandomTable:
    """Tracks the columns of a table, so that the next change can name them.

    Args:
        chance: the random generator.
    """

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.number = 0
        self.columns: list[str] = []
        self.keyed: list[str] = []
        self.keys: list[str] = []
        self.primary = False

    def _name(self) -> str:
        self.number += 1
        return self.chance.choice(("c", "Col", "größe ", "sel`ect"))[:6].rstrip() + str(self.number)

    @staticmethod
    def _quoted(name: str) -> str:
        return "`" + name.replace("`", "``") + "`"

    def _column(self, types: tuple[str, ...] = TYPES) -> tuple[str, str]:
        name = self._name()
        null = self.chance.choice((" NOT NULL", " NULL", ""))
        return name, f"{self._quoted(name)} {self.chance.choice(types)}{null}"

    def create(self) -> str:
        """Return the CREATE TABLE."""
        parts = []
        for types in (KEYED, KEYED, TYPES, TYPES, TYPES):
            name, text = self._column(types)
            parts.append(text)
            self.columns.append(name)
            if types is KEYED:
                self.keyed.append(name)
        self.primary = self.chance.random() < 0.5
        if self.primary:
            parts.append(f"PRIMARY KEY ({self._quoted(self.keyed[0])})")
            parts[0] = parts[0].removesuffix(" NULL") if not parts[0].endswith("NOT NULL") else parts[0]
        parts.append(f"UNIQUE KEY uk ({self._quoted(self.keyed[1])})")
        self.keys.append("uk")
        return f"CREATE TABLE a ({', '.join(parts)}) DEFAULT CHARSET {self.chance.choice(CHARSETS)}"

    def alter(self) -> str:
        """Return an ALTER TABLE of one change."""
        change = self.chance.choice(
            (self._add, self._add, self._drop, self._modify, self._change, self._charset, self._unique, self._drop_key)
        )
        return f"ALTER TABLE a {change()}"

    def _place(self) -> str:
        after = f" AFTER {self._quoted(self.chance.choice(self.columns))}"
        return self.chance.choice(("", " FIRST", after))

    def _free(self) -> str | None:
        """Return a column that is in no key."""
        free = [name for name in self.columns if name not in self.keyed]
        return self.chance.choice(free) if free else None

    def _add(self) -> str:
        place = self._place()
        name, text = self._column()
        self.columns.append(name)
        return f"ADD COLUMN {text}{place}"

    def _drop(self) -> str:
        name = self._free()
        if name is None:
            return self._add()
        self.columns.remove(name)
        return f"DROP COLUMN {self._quoted(name)}"

    def _modify(self) -> str:
        name = self._free()
        if name is None:
            return self._add()
        self.columns.remove(name)
        place = self._place()
        self.columns.append(name)
        return f"MODIFY {self._quoted(name)} {self.chance.choice(TYPES)}{place}"

    def _change(self) -> str:
        name = self._free()
        if name is None:
            return self._add()
        new, text = self._column()
        self.columns.remove(name)
        place = self._place()
        self.columns.append(new)
        return f"CHANGE COLUMN {self._quoted(name)} {text}{place}"

    def _charset(self) -> str:
        charset = self.chance.choice(CHARSETS)
        return self.chance.choice((f"CONVERT TO CHARACTER SET {charset}", f"CHARACTER SET {charset}"))

    def _unique(self) -> str:
        place = self._place()
        name, text = self._column(KEYED)
        self.columns.append(name)
        self.keyed.append(name)
        self.keys.append(f"uk{self.number}")
        return f"ADD {text}{place}, ADD UNIQUE KEY uk{self.number} ({self._quoted(name)})"

    def _drop_key(self) -> str:
        if not self.keys:
            return self._unique()
        key = self.chance.choice(self.keys)
        self.keys.remove(key)
        return f"DROP INDEX {key}"
