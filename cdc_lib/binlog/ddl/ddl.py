"""What a statement in the binlog means for captured tables.

Only as much grammar as is needed to name the tables: the server writes statements as they were typed, in any vendor's syntax
and SQL mode, and a library that gives up on one of them would hide a TRUNCATE.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice, pairwise
from typing import Literal

from cdc_lib.model import lexer
from cdc_lib.model.lexer import DEFAULT_QUOTING, Quoting, Word
from cdc_lib.model.table_name import EVERY_TABLE

Effect = Literal[
    "none", "savepoint", "rollback", "rows", "alter", "columns", "create", "truncate", "drop", "rename", "lossy", "xa"
]  # fmt: skip
"""rows: data changed by a statement instead of row events; columns: an ALTER that gives columns other names; lossy: rows vanish or
move without row events, and not by one of the other effects."""

Name = tuple[str, str]
"""Database and table."""

_DML = {"INSERT", "UPDATE", "DELETE", "REPLACE", "LOAD", "CALL", "WITH", "SELECT", "DO"}
"""The last three reach the binlog only when they call a function that changes data, or are a DELETE with a WITH."""
_LOSSY_ALTERS = {
    *((verb, "PARTITION") for verb in ("TRUNCATE", "DROP", "EXCHANGE", "DISCARD", "IMPORT", "CONVERT")),
    *((verb, "TABLESPACE") for verb in ("DISCARD", "IMPORT")),
    ("CONVERT", "TABLE"),
}
_REMOVING = {"UNIQUE", "PRIMARY", "MODIFY", "CHANGE"}
_BEFORE_INDEX = {"OR", "REPLACE", "ONLINE", "OFFLINE", "UNIQUE", "FULLTEXT", "SPATIAL", "VECTOR"}
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
    """

    effect: Effect
    tables: tuple[Name, ...] = ()
    opens_transaction: bool = False
    renamed: tuple[tuple[Name, Name], ...] = ()
    if_missing: bool = False
    replaces: bool = False
    rekeys: bool = False

    def folded(self) -> Meaning:
        """Return the same with names in lower case, as servers compare them with lower_case_table_names=1."""
        renamed = tuple((_lower(old), _lower(new)) for old, new in self.renamed)
        return replace(self, tables=tuple(map(_lower, self.tables)), renamed=renamed)


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
    words = lexer.all_words(statement, quoting)
    if verb == "TRUNCATE":
        skip = 2 if keys[1:2] == ["TABLE"] else 1
        return Meaning("truncate", _names(words[skip:], database)[:1])
    replaces = keys[1:3] == ["OR", "REPLACE"]
    kind = keys[3:4] if replaces else keys[1:2]
    if kind and kind[0] in ("DATABASE", "SCHEMA"):
        names = words[4 if replaces else 2 :]
        return _of_database(names, database, drops=replaces or verb == "DROP")
    if "INDEX" in keys and {*keys[1 : keys.index("INDEX")]} <= _BEFORE_INDEX:
        on = next((i for i, word in enumerate(words) if word.key == "ON"), len(words))
        return Meaning("none", _names(words[on + 1 :], database)[:1])
    at = next((i for i, key in enumerate(keys) if key in ("TABLE", "TABLES")), None)
    if at is None or not {*keys[1:at]} <= {"OR", "REPLACE", "TEMPORARY", "ONLINE", "OFFLINE", "IGNORE"}:
        return Meaning("none")
    if "TEMPORARY" in keys[1:at]:
        return Meaning("none")
    rest = words[at + 1 :]
    found = _of_table(verb, _after_if(rest), database)
    if verb == "ALTER" and "IGNORE" in keys[1:at] and _REMOVING & {word.key for word in rest}:
        found = replace(found, effect="lossy")  # MariaDB leaves out rows with a key that another has
    if_missing = verb == "CREATE" and [word.key for word in rest[:3]] == ["IF", "NOT", "EXISTS"]
    return replace(found, if_missing=if_missing, replaces=verb == "CREATE" and replaces)


_kept_meaning = lru_cache(maxsize=_KEPT)(_meaning)


def _after_if(words: Sequence[Word]) -> Sequence[Word]:
    """Step over IF EXISTS and IF NOT EXISTS."""
    if [word.key for word in words[:2]] == ["IF", "EXISTS"]:
        return words[2:]
    return words[3:] if [word.key for word in words[:3]] == ["IF", "NOT", "EXISTS"] else words


def _of_database(words: Sequence[Word], database: str, *, drops: bool) -> Meaning:
    names = _after_if(words)
    if not names:
        return Meaning("none")
    # ALTER DATABASE may go without a name.
    name = database if names[0].key in ("CHARACTER", "CHARSET", "COLLATE", "DEFAULT", "ENCRYPTION") else names[0].text
    return Meaning("drop" if drops else "none", ((name, EVERY_TABLE),))


def _of_table(verb: str, words: Sequence[Word], database: str) -> Meaning:
    tables = _names(words, database)
    if verb == "DROP":
        return Meaning("drop", tables)
    if verb == "RENAME":
        return Meaning("rename", tables, renamed=tuple(zip(tables[::2], tables[1::2], strict=False)))
    tables = tables[:1]
    if verb == "CREATE":
        opens = [word.key for word in words[-2:]] == ["START", "TRANSACTION"]
        return Meaning("create", tables, opens_transaction=opens)
    return _of_alter(words, tables, database)


def _of_alter(words: Sequence[Word], tables: tuple[Name, ...], database: str) -> Meaning:
    keys = [word.key for word in words]
    lossy = [pair[0] for pair in pairwise(keys) if pair in _LOSSY_ALTERS]
    columns = ("RENAME", "COLUMN") in pairwise(keys)
    renamed: tuple[tuple[Name, Name], ...] = ()
    for i, key in enumerate(keys):
        # The clause that renames the table may go without TO; the others name what they rename.
        renames = key == "RENAME" and keys[i + 1 : i + 2] not in (["COLUMN"], ["INDEX"], ["KEY"])
        columns = columns or (key == "CHANGE" and _renames_column(words[i + 1 :]))
        if renames or key == "TABLE":
            name_at = i + 2 if keys[i + 1 : i + 2] in (["TO"], ["AS"], ["="]) else i + 1
            named = _names(words[name_at:], database)[:1]
            # A new name that is the old one is none.
            renamed = (*renamed, *((tables[0], new) for new in named if renames and tables and tables[0] != new))
            tables = (*tables, *named)
    effect: Effect = "lossy" if lossy else "rename" if renamed else "columns" if columns else "alter"
    rekeys = ("PRIMARY", "KEY") in pairwise(keys)
    return Meaning(effect, tables, renamed=renamed, rekeys=rekeys)


def _lower(name: Name) -> Name:
    return name[0].lower(), name[1].lower()


def _renames_column(words: Sequence[Word]) -> bool:
    """Whether what is after CHANGE gives the column another name, not only another type."""
    if words and words[0].key == "COLUMN":
        words = words[1:]
    names = _after_if(words)[:2]
    return len(names) == 2 and names[0].text.casefold() != names[1].text.casefold()


def _names(words: Sequence[Word], database: str) -> tuple[tuple[str, str], ...]:
    """Return the table names at the front of the words, parted by commas or TO."""
    names: list[tuple[str, str]] = []
    words = _after_if(words)
    index = 0
    while index < len(words):
        if index + 2 < len(words) and words[index + 1].key == ".":
            names.append((words[index].text, words[index + 2].text))
            index += 3
        else:
            names.append((database, words[index].text))
            index += 1
        if index + 1 < len(words) and words[index].key == "WAIT":
            index += 2
        elif index < len(words) and words[index].key == "NOWAIT":
            index += 1
        if index >= len(words) or words[index].key not in (",", "TO"):
            break
        index += 1
    return tuple(names)
