"""What a statement in the binlog means for captured tables.

Only as much grammar as is needed to name the tables: sqlglot's tokenizer takes care of quotes and comments.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sqlglot.dialects.mysql import MySQL
from sqlglot.errors import TokenError
from sqlglot.tokens import Token

Effect = Literal["none", "savepoint", "rollback", "rows", "alter", "create", "lossy", "xa"]
"""rows: data changed by a statement instead of row events; lossy: rows vanish or move without row events."""

_DML = {"INSERT", "UPDATE", "DELETE", "REPLACE", "LOAD", "CALL"}
_NOISE = {"TEMPORARY", "IF", "NOT", "EXISTS", "ONLINE", "OFFLINE", "IGNORE", "TABLE", "TABLES", "OR", "REPLACE"}
_LOSSY_ALTERS = (
    "TRUNCATE PARTITION",
    "DROP PARTITION",
    "EXCHANGE PARTITION",
    "DISCARD",
    "IMPORT",
    "RENAME TO",
    "RENAME AS",
)


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a statement does, and to which tables.

    Args:
        effect: what it does.
        tables: (database, table) of the tables that it names; a database alone has ``*`` for the table.
        opens_transaction: row events follow in the same transaction.
    """

    effect: Effect
    tables: tuple[tuple[str, str], ...] = ()
    opens_transaction: bool = False


def meaning(statement: str, database: str) -> Meaning:
    """Return what a statement means.

    Args:
        statement: its text.
        database: its default database, for names without one.
    """
    words = statement.split(None, 2)
    head = words[0].upper() if words else ""
    second = words[1].upper() if len(words) > 1 else ""
    if head in ("SAVEPOINT", "RELEASE") or (head == "ROLLBACK" and second in ("TO", "WORK")):
        return Meaning("savepoint")
    if head == "ROLLBACK":
        return Meaning("rollback")
    if head == "XA":
        return Meaning("xa")
    try:
        tokens = MySQL.Tokenizer().tokenize(statement)
    except TokenError:
        # Statements that name tables and matter here are plain; what cannot be cut into words is vendor syntax.
        return Meaning("none")
    return _of_tokens(tokens, database, statement)


def _of_tokens(tokens: list[Token], database: str, statement: str) -> Meaning:
    texts = [token.text.upper() for token in tokens]
    if not texts:
        return Meaning("none")
    head = texts[0]
    if head in _DML:
        return Meaning("rows")
    if head not in ("TRUNCATE", "DROP", "RENAME", "ALTER", "CREATE"):
        return Meaning("none")
    if head in ("DROP", "ALTER", "CREATE") and not {"TABLE", "TABLES", "DATABASE", "SCHEMA"} & set(texts[1:4]):
        return Meaning("none")
    if {"DATABASE", "SCHEMA"} & set(texts[1:3]):
        names = [token.text for token in tokens[2:] if token.text.upper() not in _NOISE]
        return Meaning("lossy" if head == "DROP" else "none", ((names[0], "*"),) if names else ())
    if "TEMPORARY" in texts[1:3]:
        return Meaning("none")
    tables = _names(tokens[1:], database, several=head in ("DROP", "RENAME"))
    if head == "CREATE":
        return Meaning("create", tables[:1], opens_transaction=statement.rstrip().upper().endswith("START TRANSACTION"))
    if head == "ALTER":
        rest = " ".join(texts)
        return Meaning("lossy" if any(words in rest for words in _LOSSY_ALTERS) else "alter", tables[:1])
    return Meaning("lossy", tables)


def _names(tokens: list[Token], database: str, *, several: bool) -> tuple[tuple[str, str], ...]:
    """Return the table names at the front of the tokens, parted by commas or TO."""
    names: list[tuple[str, str]] = []
    index = 0
    while index < len(tokens) and tokens[index].text.upper() in _NOISE:
        index += 1
    while index < len(tokens):
        first = tokens[index].text
        if index + 2 < len(tokens) and tokens[index + 1].text == ".":
            names.append((first, tokens[index + 2].text))
            index += 3
        else:
            names.append((database, first))
            index += 1
        if not several or index >= len(tokens) or tokens[index].text.upper() not in (",", "TO"):
            break
        index += 1
    return tuple(names)
