"""Spellings: every form in which the servers' grammar lets a statement name a table or a column, and what may stand between words."""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random

_BARE = re.compile(r"[A-Za-z_$\u0080-\uffff][0-9A-Za-z_$\u0080-\uffff]*")
_WORDS = frozenset(
    [
        "select",
        "key",
        "order",
        "table",
        "add",
        "if",
        "only",
        "ignore",
        "index",
        "to",
        "as",
        "from",
        "set",
        "and",
        "or",
        "not",
        "null",
        "by",
    ]
)


@dataclass
class Words:
    """Spells names and keywords.

    Args:
        random: of the program.
        flavor: of the server.
        ansi: whether double quotes hold names in the session.
        database: the session's default database.
    """

    random: Random
    flavor: str
    ansi: bool = False
    database: str = ""
    dots: float = 0.12

    def column(self, name: str) -> str:
        """Return a column's name in one of its forms."""
        return self._part(name)

    def table(self, database: str, name: str) -> str:
        """Return a table's name in one of its forms."""
        random, part = self.random, self._part(name)
        if database == self.database and random.random() < 0.6:
            # MariaDB, and MySQL of long ago, take a dot before a name for the default database.
            if random.random() < self.dots:
                return f".{random.choice(['', '', ' ', '/**/'])}{part}"
            return part
        dot = random.choice([".", ".", ".", " . ", ". ", " .", "./* . */", "/**/."])
        return f"{self._part(database)}{dot}{part}"

    def _part(self, name: str) -> str:
        random = self.random
        if _BARE.fullmatch(name) and name.lower() not in _WORDS and random.random() < 0.55:
            return name
        if self.ansi and random.random() < 0.4:
            return '"' + name.replace('"', '""') + '"'
        return "`" + name.replace("`", "``") + "`"

    def spaced(self, statement: str) -> str:
        """Return a statement with other white space, comments or letter case around its first keywords."""
        random = self.random
        if random.random() < 0.75:
            return statement
        head, space, tail = statement.partition(" ")
        between = random.choice(
            [" ", "  ", "\n", "\t", " /* c; ` ' */ ", " /**/ ", " -- c ' `\n", ' # c " x\n', "\r\n"]
        )
        head = random.choice(
            [head, head.lower(), head.title(), f"/* first */ {head}", f" {head}", f"/*!40000 {head} */", f"/*!{head}*/"]
        )
        return f"{head}{between if space else ''}{tail}"

    def maybe(self, chance: float, *choices: str) -> str:
        """Return one of some words with a space after it, or nothing."""
        return f"{self.random.choice(choices)} " if self.random.random() < chance else ""
