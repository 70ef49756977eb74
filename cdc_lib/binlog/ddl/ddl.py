"""What a statement in the binlog means for captured tables.

Only as much grammar as is needed to name the tables: the server writes statements as they were typed, in any vendor's syntax
and SQL mode, and a library that gives up on one of them would hide a TRUNCATE.

Law: a statement names tables only as the servers' grammar does. What is read otherwise is not understood, and names none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice, pairwise
from typing import Literal

from cdc_lib.binlog.ddl.history.words import CannotFollow, WordReader
from cdc_lib.model import lexer
from cdc_lib.model.lexer import DEFAULT_QUOTING, Quoting, Word
from cdc_lib.model.table_name import EVERY_TABLE

Effect = Literal[
    "none", "savepoint", "rollback", "rows", "alter", "columns", "create", "truncate", "drop", "rename", "lossy", "xa", "unread"
]  # fmt: skip
"""rows: data changed by a statement instead of row events; columns: an ALTER that gives columns other names; lossy: rows vanish or
move without row events, and not by one of the other effects; unread: it concerns tables, and which is not certain."""

Name = tuple[str, str]
"""Database and table."""

_DML = {"INSERT", "UPDATE", "DELETE", "REPLACE", "LOAD", "CALL", "WITH", "SELECT", "DO"}
"""The last three reach the binlog only when they call a function that changes data, or are a DELETE with a WITH."""
_LOSSY_ALTERS = {
    *((verb, "PARTITION") for verb in ("TRUNCATE", "DROP", "EXCHANGE", "DISCARD", "IMPORT", "CONVERT")),
    *((verb, "TABLESPACE") for verb in ("DISCARD", "IMPORT")),
    ("CONVERT", "TABLE"),
}
_REMOVING = {"UNIQUE", "PRIMARY", "MODIFY", "CHANGE", "CONVERT"}
_BEFORE_INDEX = {"OR", "REPLACE", "ONLINE", "OFFLINE", "UNIQUE", "FULLTEXT", "SPATIAL", "VECTOR"}
_OF_OWN_DATABASE = {"CHARACTER", "COLLATE", "DEFAULT", "READ"}
"""Words after ALTER DATABASE without a name; none is a name without quotes."""
_FRONT = 5
"""Words of ``CREATE OR REPLACE TEMPORARY TABLE``, the longest way to say what is meant."""
_KEPT = 16384
"""Meanings that are kept: those of a window are needed again at its end, and when it is read again."""
_LONGEST_KEPT = 2048
"""Maximum characters of a statement whose meaning is kept; bounds the memory."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a statement does, and to which tables.

    Args:
        effect: what it does.
        tables: (database, table) of the tables that it names; a database alone has ``*`` for the table.
        opens_transaction: row events follow in the same transaction.
        renamed: tables and their new names, in the order in which they are renamed.
        if_missing: a CREATE that does nothing where there is such a table.
        replaces: a CREATE that drops such a table first.
        rekeys: an ALTER that speaks of the primary key.
        like: of a CREATE, the table whose columns it takes.
    """

    effect: Effect
    tables: tuple[Name, ...] = ()
    opens_transaction: bool = False
    renamed: tuple[tuple[Name, Name], ...] = ()
    if_missing: bool = False
    replaces: bool = False
    rekeys: bool = False
    like: Name | None = None

    def folded(self) -> Meaning:
        """Return the same with names in lower case, as servers compare them with lower_case_table_names=1."""
        renamed = tuple((_lower(old), _lower(new)) for old, new in self.renamed)
        like = _lower(self.like) if self.like is not None else None
        return replace(self, tables=tuple(map(_lower, self.tables)), renamed=renamed, like=like)


def without_set_statement(statement: str, quoting: Quoting = DEFAULT_QUOTING) -> str:
    """Return the statement after MariaDB's ``SET STATEMENT variable = value, ... FOR``, which is logged with it."""
    keys: list[str] = []
    start = depth = 0
    for token in lexer.tokens(statement, quoting):
        if token.lastgroup in ("space", "comment", "mark"):
            continue
        key = token[0].upper() if token.lastgroup in ("word", "sign") else ""
        depth += (key == "(") - (key == ")")
        if len(keys) < 2:
            keys.append(key)
            if keys != ["SET", "STATEMENT"][: len(keys)]:
                break
        elif key == "FOR" and depth == 0:
            start, keys = token.end(), []
    return statement[start:].lstrip() if start else statement


def meaning(statement: str, database: str, quoting: Quoting = DEFAULT_QUOTING) -> Meaning:
    """Return what a statement means.

    Args:
        statement: its text.
        database: its default database, for names without one.
        quoting: of its session.
    """
    return (_kept_meaning if len(statement) <= _LONGEST_KEPT else _meaning)(statement, database, quoting)


def _meaning(statement: str, database: str, quoting: Quoting) -> Meaning:
    front = list(islice(lexer.words(statement, quoting), _FRONT))
    keys = [word.key for word in front]
    verb = keys[0] if keys else ""
    if verb in ("SAVEPOINT", "RELEASE") or (verb == "ROLLBACK" and "TO" in keys[1:3]):
        return Meaning("savepoint")
    if verb == "ROLLBACK":
        return Meaning("rollback")
    if verb == "XA":
        return Meaning("xa")
    if verb in _DML:
        return Meaning("rows")
    if verb not in ("DROP", "RENAME", "ALTER", "CREATE", "TRUNCATE"):
        return Meaning("none")
    try:
        return _of_definition(verb, keys, lexer.all_words(statement, quoting), database)
    except CannotFollow:
        return Meaning("unread")


def _of_definition(verb: str, keys: Sequence[str], words: Sequence[Word], database: str) -> Meaning:
    """Return what a statement means that may define or empty something.

    Raises:
        CannotFollow: the tables are not certain.
    """
    if verb == "TRUNCATE":
        return _truncates(WordReader(words[2 if keys[1:2] == ["TABLE"] else 1 :]), database)
    replaces = keys[1:3] == ["OR", "REPLACE"]
    kind = keys[3:4] if replaces else keys[1:2]
    if kind and kind[0] in ("DATABASE", "SCHEMA"):
        return _of_database(verb, WordReader(words[4 if replaces else 2 :]), database, replaces=replaces)
    if "INDEX" in keys and {*keys[1 : keys.index("INDEX")]} <= _BEFORE_INDEX:
        on = next((i for i, word in enumerate(words) if word.key == "ON"), len(words))
        return Meaning("none", (WordReader(words[on + 1 :]).table(database),))
    at = next((i for i, key in enumerate(keys) if key in ("TABLE", "TABLES")), None)
    if at is None or not {*keys[1:at]} <= {"OR", "REPLACE", "TEMPORARY", "ONLINE", "OFFLINE", "IGNORE"}:
        return Meaning("none")
    if "TEMPORARY" in keys[1:at]:
        return Meaning("none")
    read = WordReader(words[at + 1 :])
    if_missing = read.accept("IF", "NOT", "EXISTS")
    read.accept("IF", "EXISTS")
    if verb == "DROP":
        return _drops(read, database)
    if verb == "RENAME":
        return _renames(read, database)
    if verb == "CREATE":
        opens = [word.key for word in words[-2:]] == ["START", "TRANSACTION"]
        made = read.table(database)
        read.accept("(")
        like = read.table(database) if read.accept("LIKE") else None
        return Meaning("create", (made,), opens, if_missing=if_missing, replaces=replaces, like=like)
    found = _of_alter(read, database)
    if "IGNORE" in keys[1:at] and _REMOVING & {word.key for word in words}:
        found = replace(found, effect="lossy")  # MariaDB leaves out rows with a key that another has
    return found


_kept_meaning = lru_cache(maxsize=_KEPT)(_meaning)


def _truncates(read: WordReader, database: str) -> Meaning:
    table = read.table(database)
    read.wait()
    if read.accept_any("DROP", "REUSE") and not read.accept("STORAGE"):
        raise CannotFollow("STORAGE is missing")
    read.end()
    return Meaning("truncate", (table,))


def _of_database(verb: str, read: WordReader, database: str, *, replaces: bool) -> Meaning:
    read.accept("IF", "NOT", "EXISTS") or read.accept("IF", "EXISTS")
    own = read.key() in _OF_OWN_DATABASE or (read.key() == "COMMENT" and read.key(1) in ("", "="))
    name = database if own and verb == "ALTER" else read.name()
    return Meaning("drop" if replaces or verb == "DROP" else "none", ((name, EVERY_TABLE),))


def _drops(read: WordReader, database: str) -> Meaning:
    tables = [read.table(database)]
    while read.accept(","):
        tables.append(read.table(database))
    read.wait()
    read.accept_any("RESTRICT", "CASCADE")
    read.end()
    return Meaning("drop", tuple(tables))


def _renames(read: WordReader, database: str) -> Meaning:
    renamed = []
    another = True
    while another:
        old = read.table(database)
        read.wait()
        if not read.accept("TO"):
            raise CannotFollow("TO is missing")
        renamed.append((old, read.table(database)))
        another = read.accept(",")
    read.end()
    return Meaning("rename", tuple(name for pair in renamed for name in pair), renamed=tuple(renamed))


def _of_alter(read: WordReader, database: str) -> Meaning:
    tables = [read.table(database)]
    words = read.rest()
    keys = [word.key for word in words]
    if keys == ["TRUNCATE", "PARTITION", "ALL"]:
        return Meaning("truncate", (tables[0],))
    lossy = any(pair in _LOSSY_ALTERS for pair in pairwise(keys)) or any(
        word.text.upper() == "BLACKHOLE" and "ENGINE" in keys[max(0, i - 2) : i] for i, word in enumerate(words)
    )  # that engine keeps no rows
    columns = ("RENAME", "COLUMN") in pairwise(keys)
    renamed: tuple[tuple[Name, Name], ...] = ()
    for i, key in enumerate(keys):
        # The clause that renames the table may go without TO; the others name what they rename.
        renames = key == "RENAME" and keys[i + 1 : i + 2] not in (["COLUMN"], ["INDEX"], ["KEY"])
        columns = columns or (key == "CHANGE" and _renames_column(WordReader(words[i + 1 :])))
        if renames or key == "TABLE":
            named = WordReader(words[i + 1 :])
            named.accept_any("TO", "AS", "=")
            tables.append(named.table(database))
            if renames and tables[0] != tables[-1]:  # a new name that is the old one is none
                renamed = (*renamed, (tables[0], tables[-1]))
    effect: Effect = "lossy" if lossy else "rename" if renamed else "columns" if columns else "alter"
    rekeys = ("PRIMARY", "KEY") in pairwise(keys)
    return Meaning(effect, tuple(tables), renamed=renamed, rekeys=rekeys)


def _lower(name: Name) -> Name:
    return name[0].lower(), name[1].lower()


def _renames_column(read: WordReader) -> bool:
    """Whether what is after CHANGE gives the column another name, not only another type."""
    read.accept("COLUMN")
    read.accept("IF", "EXISTS")
    return read.column().casefold() != read.column().casefold()
