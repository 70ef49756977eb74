"""The effects of statements on captured tables, and which statements need a new snapshot of a table."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from cdc_lib.binlog.ddl.ddl import Meaning, Name
from cdc_lib.binlog.ddl.effects import Naming, table_statements, taken_over
from cdc_lib.binlog.ddl.history.added_defaults import added_defaults
from cdc_lib.binlog.ddl.history.renames import renames
from cdc_lib.binlog.ddl.history.retyped import declares, recomputed, respelled, undecided
from cdc_lib.binlog.ddl.history.words import CannotFollow, words
from cdc_lib.binlog.ddl.redact import concealed
from cdc_lib.binlog.ddl.statement import Statement
from cdc_lib.binlog.framing.damaged_file import skip_event
from cdc_lib.binlog.framing.scan_progress import ErrorContext
from cdc_lib.config.shadows import bases
from cdc_lib.errors import TableReplaced, UnknownEvent
from cdc_lib.model.column_types import BOOLEAN
from cdc_lib.model.ddl_effect import AddedDefault, TableStatement
from cdc_lib.model.position import Position
from cdc_lib.model.schema import Column
from cdc_lib.model.schema_version import Definition
from cdc_lib.model.table_name import EVERY_TABLE, TableName

_RETYPING = re.compile("MODIFY|CHANGE|CONVERT", re.IGNORECASE)
"""Words of which a statement has one that gives columns another type or character set."""
_REPLACING = re.compile(r"DROP.*\bADD\b|\bADD\b.*DROP|DROP.*RENAME|RENAME.*DROP", re.IGNORECASE | re.DOTALL)
"""Words of which a statement has some that drops a column and gives its name to another one."""
_SHOWN = 120
"""Characters of a statement that an error shows."""


def _unknown(_database: str, _table: str) -> None:
    return None


@dataclass(frozen=True, slots=True)
class TableChanges:
    """Determines the effect of a statement on captured tables.

    Args:
        naming: how statements name tables.
        mariadb: whether the server is MariaDB.
        captured: whether a table is captured.
        known: a table's definition before the statement; None if that is not known.
    """

    naming: Naming
    mariadb: bool
    captured: Callable[[str, str], bool]
    known: Callable[[str, str], Definition | None] = _unknown

    def of(
        self, means: Meaning, followed: Sequence[Name], statement: Statement, position: Position, context: ErrorContext
    ) -> tuple[TableStatement, ...]:
        """Return what a statement does to captured tables, and to the shadows that tools make of them.

        Args:
            means: its meaning.
            followed: the captured tables among those that it names.
            statement: itself.
            position: where its event starts.
            context: source, file and offset, for errors.

        Raises:
            TableReplaced: a table has rows or values that are not in the binlog.
            UnknownEvent: the same, and no snapshot can read them.
        """
        if means.effect == "lossy":
            self._refuse_lost(followed, statement, context)
            return ()
        if found := {table: rows for table, rows in taken_over(means, self.naming).items() if table in followed}:
            shown = ", ".join(
                f"{TableName(*table)} has the rows of {TableName(*rows)}" for table, rows in found.items()
            )
            raise _replaced(f"a RENAME put another table's rows into a captured table: {shown}", found, context)
        statements = table_statements(means, followed, position, self.naming)
        shadowed = tuple(self._shadowed(means))
        if means.effect == "create":
            return statements + tuple(self._made_shadows(means, shadowed, statement, position))
        if means.effect not in ("alter", "columns") or not (followed or shadowed):
            return statements
        self._refuse_other_key(means, followed[:1], statement, context)
        own = self._of_columns(means, followed[:1], statement, position, context)
        return statements + own + tuple(self._of_shadows(means, shadowed, statement, position))

    def _refuse_other_key(
        self, means: Meaning, followed: Sequence[Name], statement: Statement, context: ErrorContext
    ) -> None:
        """Ask for reading a table again that may have another primary key: the lake keeps its rows by the one of before.

        Raises:
            TableReplaced: it has.
        """
        if keyed := [table for table in followed if means.rekeys and self.naming.kept(*table) == "rows"]:
            shown = concealed(statement.text, statement.quotings)[:_SHOWN]
            raise _replaced(f"a statement gave a captured table another primary key: {shown!r}", keyed, context)

    def _of_columns(
        self, means: Meaning, followed: Sequence[Name], statement: Statement, position: Position, context: ErrorContext
    ) -> tuple[TableStatement, ...]:
        """Return what an ALTER does to the columns of a captured table."""
        renamed: tuple[TableStatement, ...] | None = () if means.effect == "alter" else None
        self._refuse_respelled(followed, statement, context)
        try:
            if renamed is None:
                renamed = tuple(self._renamed(table, statement, position, context) for table in followed)
            added = self._added(statement, followed)
        except CannotFollow as why:
            if keyed := [table for table in followed if self._needs_snapshot(table, loses=renamed is None)]:
                shown = concealed(statement.text, statement.quotings)[:_SHOWN]
                message = f"a statement changed values in rows that it does not show ({why}): {shown!r}"
                raise _replaced(message, keyed, context) from why
            added = ()
        filled = [TableStatement("add_default", TableName(*table), position, added) for table in followed if added]
        retyped = [
            TableStatement("retype", TableName(*table), position, retyped=columns)
            for table in followed
            if (columns := self._retyped(statement, table, context))
        ]
        return (*(one for one in renamed or () if one.names), *filled, *retyped)

    def _refuse_respelled(self, followed: Sequence[Name], statement: Statement, context: ErrorContext) -> None:
        """Ask for reading a table again whose rows may show other values in a column of another type.

        Raises:
            TableReplaced: they may.
        """
        for table in followed:
            column = self._respelled(statement, table)
            if column and self.naming.kept(*table) == "rows":
                raise _changed_values(column, table, statement, context)

    def _retyped(self, statement: Statement, table: Name, context: ErrorContext) -> tuple[Column, ...]:
        """Return the stored columns whose former types are not known: those of the lake's rows decide in the merge.

        Raises:
            TableReplaced: the lake has one of them masked, so that it does not know its type.
        """
        found = self._undecided(statement, table) if self.naming.kept(*table) == "rows" else ()
        if any(not column.name for column in found) and self.naming.shaped(*table):
            raise _changed_values("?", table, statement, context)
        stored = {column.name: self.naming.stored(*table, column.name) if column.name else "" for column in found}
        for column, how in stored.items():
            if how not in (None, "", BOOLEAN):
                raise _changed_values(column, table, statement, context)
        return tuple(column for column in found if stored[column.name] is not None)

    def _undecided(self, statement: Statement, table: Name) -> tuple[Column, ...]:
        if not _RETYPING.search(statement.text):
            return ()
        return undecided(statement, self.known(*table), mariadb=self.mariadb)

    def _respelled(self, statement: Statement, table: Name) -> str:
        """Return a column whose values a statement may have changed; empty for none."""
        retypes = _RETYPING.search(statement.text)
        if not (retypes or _REPLACING.search(statement.text)):
            return ""
        known = self.known(*table)
        as_text = self.naming.date_texts(TableName(*table))
        if retypes and (column := respelled(statement, known, mariadb=self.mariadb, as_text=as_text)):
            return column
        return recomputed(statement, known, self.naming.made_of(*table), mariadb=self.mariadb)

    def _renamed(self, table: Name, statement: Statement, position: Position, context: ErrorContext) -> TableStatement:
        """Return which columns of a table have other names after a statement, of those that are stored.

        Raises:
            CannotFollow: the statement does not say, or another table's rows are in the lake's column.
            UnknownEvent: the source file stores a column otherwise under its new name.
        """
        found = renames(statement)
        if found and self.naming.shares(*table):
            raise CannotFollow("columns have other names, and other tables may share the lake table")
        for old, new in found:
            if self.naming.stored(*table, old) != self.naming.stored(*table, new):
                raise UnknownEvent(
                    f"column {old} was renamed to {new}, and the source file stores {new} differently from {old}",
                    hint="Name both under columns, masks and booleans in the source file, masks with a "
                    f"wildcard ({old}*, {new}*), since an exact name must be there.",
                    **context,
                    table=TableName(*table),
                    column=old,
                )
        names = tuple(pair for pair in found if self.naming.stored(*table, pair[0]) is not None)
        return TableStatement("rename_columns", TableName(*table), position, names=names)

    def _made_shadows(
        self, means: Meaning, shadowed: Sequence[TableName], statement: Statement, position: Position
    ) -> Iterator[TableStatement]:
        """Yield which shadows a CREATE makes; the merge compares the columns that it lists with those of the lake's rows."""
        columns, unclear = tuple[Column, ...](), ""
        try:
            columns = declares(statement, mariadb=self.mariadb) if shadowed else ()
        except CannotFollow as why:
            unclear = str(why)
        for table in shadowed:
            yield TableStatement("shadow", table, position)
            if means.like != table.pair:
                stored = tuple(one for one in columns if self.naming.stored(*table.pair, one.name) in ("", BOOLEAN))
                yield TableStatement("shadow_add_default", table, position, (), unclear, retyped=stored)

    def _of_shadows(
        self, means: Meaning, shadowed: Sequence[TableName], statement: Statement, position: Position
    ) -> Iterator[TableStatement]:
        """Yield what an ALTER does to the shadows of captured tables."""
        added: tuple[AddedDefault, ...] = ()
        unclear = "columns have other names" if means.effect == "columns" else ""
        changed = "" if unclear or not shadowed else self._respelled(statement, _names(shadowed)[0])
        unclear = f"values of column {changed} may be others" if changed else unclear
        if shadowed and not unclear:
            unclear = _left_out(statement)
        if not unclear:
            try:
                added = self._added(statement, _names(shadowed))
            except CannotFollow as why:
                unclear = str(why)
        retyped = self._undecided(statement, _names(shadowed)[0]) if shadowed and not unclear else ()
        for table in shadowed if added or unclear or retyped else ():
            yield TableStatement("shadow_add_default", table, position, added, unclear, retyped=retyped)

    def _refuse_lost(self, followed: Sequence[Name], statement: Statement, context: ErrorContext) -> None:
        """Ask for reading tables again whose partitions or files went or came without a row event.

        Raises:
            TableReplaced: the tables can be read again.
            UnknownEvent: no snapshot can replace the rows of these.
        """
        kept = {table: self.naming.kept(*table) for table in followed}
        shown = concealed(statement.text, statement.quotings)[:_SHOWN]
        if fixed := [TableName(*table) for table, how in kept.items() if how == "fixed"]:
            raise UnknownEvent(
                f"a statement whose effect on rows the binlog does not show: {shown!r}",
                hint="No snapshot can replace the rows of this table in the lake. If they may stay as they are, continue after "
                f"the statement: {skip_event(context)}.",
                **context,
                table=", ".join(fixed),
            )
        if kept:
            raise _replaced(f"a statement removed or added rows that it does not list: {shown!r}", list(kept), context)

    def _shadowed(self, means: Meaning) -> Iterator[TableName]:
        """Yield the captured tables of which a statement makes or changes the shadow."""
        for database, name in means.tables[:1] if self.naming.swaps else ():
            if name != EVERY_TABLE:
                yield from (TableName(database, base) for base in bases(name) if self.captured(database, base))

    def _needs_snapshot(self, table: Name, *, loses: bool) -> bool:
        """Whether a table must be read; where that cannot be, a column that is added stays null in older rows."""
        kept = self.naming.kept(*table)
        return kept == "rows" or loses

    def _added(self, statement: Statement, tables: Sequence[Name]) -> tuple[AddedDefault, ...]:
        if not tables or "ADD" not in statement.text.upper():
            return ()
        found = added_defaults(statement, mariadb=self.mariadb)
        if any(one.value is not None for one in found) and any(self.naming.shaped(*table) for table in tables):
            raise CannotFollow("columns of the table are left out or masked")
        for one in found:
            if one.value not in (None, "0", "1") and any(self.naming.stored(*t, one.column) == BOOLEAN for t in tables):
                raise CannotFollow("a column that is a boolean in the lake gets another value than 0 and 1")
        return found


def _names(tables: Sequence[TableName]) -> list[Name]:
    return [table.pair for table in tables]


def _replaced(message: str, tables: Sequence[Name] | dict[Name, Name], context: ErrorContext) -> TableReplaced:
    names = ", ".join(TableName(*table) for table in tables)
    return TableReplaced(message, hint="The table is read again automatically.", **context, table=names)


def _changed_values(column: str, table: Name, statement: Statement, context: ErrorContext) -> TableReplaced:
    shown = concealed(statement.text, statement.quotings)[:_SHOWN]
    message = f"a statement may have changed the values of column {column} in rows that it does not show: {shown!r}"
    return _replaced(message, [table], context)


def _left_out(statement: Statement) -> str:
    """Return why a tool may leave rows out that it copies with INSERT IGNORE; empty if it does not."""
    try:
        has_key = not {"UNIQUE", "PRIMARY"}.isdisjoint(word.key for word in words(statement))
    except CannotFollow as why:
        return str(why)
    return "rows with a key that another row has may be left out" if has_key else ""
