"""Whose rows tables have after RENAME, copies and swaps, and whether the source file hides their columns under the new names.

Law: a column that the file masks or leaves out is stored as it is under no other name of its table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field

from cdc_lib.binlog.ddl.ddl import Meaning, Name
from cdc_lib.binlog.ddl.history.renames import renames
from cdc_lib.binlog.ddl.history.words import CannotFollow, WordReader, parted, words
from cdc_lib.binlog.ddl.statement import Statement
from cdc_lib.binlog.ddl.statement_text import UNKNOWN as NO_TEXT
from cdc_lib.binlog.framing.scan_progress import ErrorContext
from cdc_lib.config.shadows import named_after
from cdc_lib.errors import MaskLost
from cdc_lib.model.table_name import EVERY_TABLE, TableName

UNKNOWN: Name = ("", "")
"""Stands for a table whose hidden columns have other names: no rule of the file covers them."""
COLUMN = "*"
"""In the place of a database: a table has a column of this name from some table that hides it."""

_EFFECTS = {"columns", "rename", "create", "drop", "lossy"}

_COLUMNS = re.compile("CHANGE|COLUMN", re.IGNORECASE)
"""Words of which an ALTER has one that gives a column another name."""
_KEYS = {
    "PRIMARY",
    "UNIQUE",
    "KEY",
    "INDEX",
    "FULLTEXT",
    "SPATIAL",
    "VECTOR",
    "CONSTRAINT",
    "FOREIGN",
    "CHECK",
    "PERIOD",
}
"""First words of the parts of a CREATE TABLE that are no columns."""


def _nothing(_one: Name, _other: Name) -> str:
    return ""


def _shown(_table: Name, _column: str) -> bool:
    return False


def _nowhere(_columns: Collection[str]) -> Collection[str]:
    return ()


@dataclass(frozen=True, slots=True)
class Hiding:
    """What the source file masks or leaves out.

    Args:
        shown_under: a column of the first table that is hidden there, and would be stored as it is under the name of the second.
        hides: whether a column of a table is hidden.
        shapes: whether a table has hidden columns.
        elsewhere: those of the columns that any table hides.
        captures: whether a table is captured.
    """

    shown_under: Callable[[Name, Name], str] = _nothing
    hides: Callable[[Name, str], bool] = _shown
    shapes: Callable[[Name], bool] = lambda _table: False
    elsewhere: Callable[[Collection[str]], Collection[str]] = _nowhere
    captures: Callable[[str, str], bool] = lambda _database, _table: False


@dataclass(frozen=True, slots=True)
class MaskedRows:
    """Follows through the statements of one reading whose rows tables have.

    Args:
        hiding: what the source file hides; None if nothing.
        origins: by table, the tables whose rows or columns it has; what is known before the first statement.
        known: captured tables that lost a mask, or are left out: they raise no error.
    """

    hiding: Hiding | None = None
    origins: dict[Name, frozenset[Name]] = field(default_factory=dict)
    known: set[Name] = field(default_factory=set)

    def take(self, means: Meaning, statement: Statement, context: ErrorContext) -> None:
        """Take a statement. After an error it is taken again, with the error's table among the known ones.

        Raises:
            MaskLost: a captured table has values that the file hides, under a name of its own or of a column that does not.
        """
        if self.hiding is None or means.effect not in _EFFECTS:
            return
        copied = self._copied(self.hiding, means, statement)
        renamed = self._renamed(self.hiding, means, statement)
        if renamed:
            table = means.renamed[-1][1] if means.renamed else means.tables[0]
            copied[table] = copied.get(table, self._of(table)) | {UNKNOWN}
        for table, origins in copied.items():
            if table not in self.known and self.hiding.captures(*table):
                why = renamed if UNKNOWN in origins else ""
                if why := why or next(self._lost(self.hiding, table, origins), ""):
                    raise _error(why, table, origins, context)
        self.origins.update(copied)

    def lost(self, table: Name, rows_of: Collection[Name]) -> None:
        """Learn of a table that lost a mask.

        Args:
            table: its name.
            rows_of: the tables whose rows it may have; itself if its own columns have other names.
        """
        self.known.add(table)
        self.origins[table] = self._of(table) | {UNKNOWN if one == table else one for one in rows_of}

    def rows_of(self, table: Name) -> set[TableName]:
        """Return the tables whose rows a table may have; itself if its own columns have other names."""
        return {TableName(*(table if one == UNKNOWN else one)) for one in self._of(table)}

    def _renamed(self, hiding: Hiding, means: Meaning, statement: Statement) -> str:
        """Return why a statement shows hidden columns of its own table under other names; empty if it does not."""
        if means.effect not in ("columns", "rename", "lossy") or not _COLUMNS.search(statement.text):
            return ""
        own, table = means.tables[0], means.renamed[-1][1] if means.renamed else means.tables[0]
        origins = self._of(own) | {own}
        try:
            found = renames(statement)
        except CannotFollow as why:
            hidden = any(origin[0] == COLUMN or hiding.shapes(origin) for origin in origins)
            return f"hidden columns of {TableName(*own)} may have other names: {why}" if hidden else ""
        for old, new in found:
            hidden = any(_hides(hiding, origin, old) for origin in origins)
            if hidden and not hiding.hides(table, new):
                return f"column {old} was renamed to {new}, and the source file stores {new} differently from {old}"
        return ""

    def _of(self, table: Name) -> frozenset[Name]:
        """Return whose rows a table has; a tool's table has those of the table that its name says.

        Tables of several names that are no text have one name here: each may have the rows of another.
        """
        no_text = frozenset({UNKNOWN} if NO_TEXT in table[1] else ())
        return self.origins.get(table, frozenset()) | self._tool(table) | no_text

    @staticmethod
    def _tool(table: Name) -> frozenset[Name]:
        return frozenset((table[0], base) for base in named_after(table[1]))

    def _copied(self, hiding: Hiding, means: Meaning, statement: Statement) -> dict[Name, frozenset[Name]]:
        """Return whose rows the tables have that a statement makes, moves or drops."""
        found: dict[Name, frozenset[Name]] = {}
        if means.effect == "rename":
            for old, new in means.renamed:
                found[new] = found.get(old, self._of(old)) | {old}
                found[old] = frozenset()
        elif means.effect == "create":
            like = self._of(means.like) | {means.like} if means.like is not None else frozenset()
            selected = _created(statement) if means.opens_transaction or statement.with_rows else ()
            columns = {(COLUMN, column) for column in hiding.elsewhere(selected)}
            found = {table: like | columns | self._tool(table) for table in means.tables[:1]}
        elif means.effect == "lossy":
            first, *others = means.tables
            for other in others:
                found[other] = self._of(first) | {first}
                found[first] = found.get(first, self._of(first)) | self._of(other) | {other}
        elif means.effect == "drop":
            dropped = {database for database, table in means.tables if table == EVERY_TABLE}
            found = dict.fromkeys([*means.tables, *(one for one in self.origins if one[0] in dropped)], frozenset())
        return found

    @staticmethod
    def _lost(hiding: Hiding, table: Name, origins: Collection[Name]) -> Iterator[str]:
        """Yield why a table would store hidden columns as they are."""
        name = TableName(*table)
        for origin in sorted(origins):
            if origin == UNKNOWN:
                yield f"{name} has the rows of a table in which masked columns have other names"
            elif origin[0] == COLUMN:
                if not hiding.hides(table, origin[1]):
                    yield (
                        f"{name} was made by a SELECT, and its column {origin[1]}, which is masked or left out in other tables, "
                        "would be stored as it is"
                    )
            elif column := hiding.shown_under(origin, table):
                yield (
                    f"column {column} of {TableName(*origin)} is masked or left out, and {name}, which has its rows or its "
                    "columns, would store it as it is"
                )


def _hides(hiding: Hiding, origin: Name, column: str) -> bool:
    return column.lower() == origin[1].lower() if origin[0] == COLUMN else hiding.hides(origin, column)


def _error(why: str, table: Name, origins: Collection[Name], context: ErrorContext) -> MaskLost:
    name = TableName(*table)
    rows_of = ", ".join(name if one == UNKNOWN else TableName(*one) for one in sorted(origins))
    return MaskLost(
        why,
        hint=f"Name {name} and its columns under masks or columns in the source file, or exclude it under tables.",
        **context,
        table=name,
        rows_of=rows_of or None,
    )


def _created(statement: Statement) -> list[str]:
    """Return the columns of a CREATE TABLE that a server made of a SELECT; none where it is not read."""
    try:
        read = WordReader(words(statement))
        while read.more and read.key() != "(":
            read.take()
        parts = parted(read.inner()) if read.more else []
    except CannotFollow:
        return []
    return [part[0].text for part in parts if part and not (part[0].kind == "word" and part[0].key in _KEYS)]
