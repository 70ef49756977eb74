"""The table definitions that are valid while a window is read.

They start with the stored versions at the window's start, and follow every statement. A definition is computed only when rows
need it: a table without rows costs nothing, and a statement that is not understood stops the window only if rows follow it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

from cdc_lib.binlog.ddl.ddl import meaning
from cdc_lib.binlog.ddl.history.advance import Entity, advance
from cdc_lib.binlog.ddl.history.alter import leaves_definition
from cdc_lib.binlog.ddl.history.column import Rules
from cdc_lib.binlog.ddl.history.words import CannotFollow
from cdc_lib.binlog.ddl.statement import Statement
from cdc_lib.errors import TableReplaced, UnknownSchema
from cdc_lib.model.position import Position
from cdc_lib.model.schema_version import Definition
from cdc_lib.model.table_name import TableName


@dataclass(frozen=True, slots=True)
class UnknownDefinition:
    """A definition that is not known.

    Args:
        position: from after which on.
        statement: what made it so; None when it never was known.
        why: a reason for people.
        unseen: whether it changed without a statement in the binlog: the server does not tell which rows came before that.
    """

    position: Position
    statement: Statement | None
    why: str
    unseen: bool = False


State = Definition | UnknownDefinition | None
"""None: there is no such table."""

Base = Callable[[Entity], tuple[Position, State]]
"""Gives what the store knows of a table at the window's start, and from where on that holds."""

Reread = Callable[[Entity, UnknownDefinition], Definition]
"""Reads a lost definition from the server, if it still is what it was; raises TableReplaced or UnknownSchema."""

Gap = Callable[[], list[tuple[Position, Statement]]]
"""Gives the statements before the window that the store may not know yet."""


@dataclass(frozen=True, slots=True)
class Change:
    """What a statement of the window made of a table."""

    entity: Entity
    position: Position
    statement: Statement
    state: State


class WindowHistory:
    """Follows definitions through one window.

    Args:
        base: see :data:`Base`.
        gap: see :data:`Gap`.
        reread: see :data:`Reread`.
        rules: what decides about statements beside their words.
    """

    def __init__(self, base: Base, gap: Gap, reread: Reread, rules: Rules) -> None:
        """Know nothing yet."""
        self._base = base
        self._gap = gap
        self._reread = reread
        self._rules = rules
        self._before: list[tuple[Position, Statement]] | None = None
        self._own: list[tuple[Position, Statement]] = []
        self._all: list[tuple[Position, Statement]] = []  # those before the window and its own
        self._numbers: dict[Entity, list[int]] = {}  # which of these a table or database is in
        self._named: list[list[Entity]] = []  # by number, what a statement names
        self._drops: dict[str, list[int]] = {}  # which of these drop a database
        self._tables: dict[str, list[Entity]] = {}  # of a database, those that a statement names
        self._states: dict[Entity, list[tuple[Position, State]]] = {}
        self._done: dict[Entity, int] = {}
        # Definitions of databases that the server does not have any more.
        self._refused: set[tuple[Entity, Position]] = set()

    def took(self, position: Position, statement: Statement) -> None:
        """Take a statement that defines something; its event starts at the position."""
        self._own.append((position, statement))

    def definition(self, database: str, table: str) -> Definition:
        """Return the definition that is in force now.

        Raises:
            UnknownSchema: they are not known, and cannot be read any more.
            TableReplaced: they changed without a statement, so that only the table itself tells its rows.
        """
        entity = (database, table)
        state = self._after(entity, len(self._statements()))
        if isinstance(state, UnknownDefinition) and state.unseen:
            raise TableReplaced(state.why, hint="The table is read again automatically.", table=TableName(*entity))
        if isinstance(state, UnknownDefinition):
            state = self._read(entity, state)
        if state is None:
            raise UnknownSchema(
                "rows of a table that was dropped before",
                hint="mysqlbinlog shows the statements before these rows. To continue after this file: cdc cursor rewind to the "
                "beginning of the next one, then cdc snapshot of all tables.",
                table=TableName(database, table),
            )
        return state

    def known(self, database: str, table: str) -> Definition | None:
        """Return the definition that is in force now; None if the statements and the store do not say, or there is no such table."""
        state = self._after((database, table), len(self._statements()))
        return state if isinstance(state, Definition) else None

    def entities(self) -> Iterable[Entity]:
        """Return the tables and databases that the window's own statements define, each once."""
        self._index()
        return dict.fromkeys(entity for named in self._named[self._first_own :] for entity in named)

    def mentioned(self) -> Iterable[Entity]:
        """Return the tables and databases that the window's own statements define or change, also in their comments alone; each once."""
        own = (mentioned(statement, fold=self._rules.fold) for _, statement in self._own)
        return dict.fromkeys(chain.from_iterable(own))

    def dropped_databases(self) -> Collection[str]:
        """Return the databases that the window's own statements drop or replace, each once."""
        self._index()
        return [name for name, numbers in self._drops.items() if numbers[-1] >= self._first_own]

    def changes(self, is_kept: Callable[[Entity], bool], tables: Mapping[str, Iterable[Entity]]) -> Iterator[Change]:
        """Yield what the window's own statements made of tables, in the order of the stream.

        Args:
            is_kept: whether the changes of a table or database are asked for.
            tables: of each of the :meth:`dropped_databases` the tables that are known from before the window.
        """
        self._index()
        made: dict[Entity, dict[Position, State]] = {}
        for number in range(self._first_own, len(self._all)):
            position, statement = self._all[number]
            for entity in filter(is_kept, self._changed_by(number, tables)):
                if entity not in made:
                    self._after(entity, len(self._all))
                    made[entity] = dict(self._states[entity])
                yield Change(entity, position, statement, made[entity][position])

    def _changed_by(self, number: int, tables: Mapping[str, Iterable[Entity]]) -> Iterable[Entity]:
        """Return what a statement names, and the tables of a database that it drops."""
        named = self._named[number]
        dropped = [one[0] for one in named if not one[1] and number in self._drops.get(one[0], ())]
        if not dropped:
            return named
        made = chain.from_iterable(self._tables.get(database, ()) for database in dropped)
        known = chain.from_iterable(tables.get(database, ()) for database in dropped)
        there = {*(one for one in made if self._numbers[one][0] < number), *known}
        return [*named, *(one for one in sorted(there) if self._after(one, number) is not None)]

    def is_temporary(self, entity: Entity) -> bool:
        """Whether a table is not there after the window, and no statement before the window made it."""
        self._index()
        numbers = self._numbers.get(entity, [])
        if not entity[1] or not numbers or numbers[0] < self._first_own:
            return False
        if _drops(self._all[numbers[-1]][1]):
            return True  # the definitions before it need not be known
        return not isinstance(self._after(entity, len(self._all)), Definition)

    def _statements(self) -> list[tuple[Position, Statement]]:
        if self._before is None:
            self._before = self._gap()
            self._all = list(self._before)
        self._all += self._own[len(self._all) - len(self._before) :]
        return self._all

    @property
    def _first_own(self) -> int:
        """Number of the window's first own statement."""
        return len(self._all) - len(self._own)

    def _index(self) -> None:
        """Enter new statements under what they name; each is parsed once."""
        statements = self._statements()
        for number in range(len(self._named), len(statements)):
            statement = statements[number][1]
            found = touched(statement, fold=self._rules.fold)
            self._named.append(found)
            for one in found:
                if one[1] and one not in self._numbers:
                    self._tables.setdefault(one[0], []).append(one)
                self._numbers.setdefault(one, []).append(number)
            for database in (one[0] for one in found if not one[1] and _drops(statement)):
                self._drops.setdefault(database, []).append(number)

    def _in(self, entity: Entity) -> list[int]:
        """Return the numbers of the statements that name a table or its database."""
        self._index()
        return sorted({*self._numbers.get(entity, ()), *self._numbers.get((entity[0], ""), ())})

    def _after(self, entity: Entity, count: int) -> State:
        """Return the state after the first so many statements."""
        statements = self._statements()
        if entity not in self._states:
            self._states[entity] = [self._base(entity)]
            self._done[entity] = 0
        states = self._states[entity]
        numbers = self._in(entity)
        for number in numbers[bisect_left(numbers, self._done[entity]) : bisect_left(numbers, count)]:
            if number < self._done[entity]:
                continue  # it was done on the way to another table's state
            self._done[entity] = number + 1
            position, statement = statements[number]
            if states[0][0] < position:
                states.append((position, self._advanced(entity, number, position, statement)))
        self._done[entity] = max(self._done[entity], count)
        first = states[0][0]
        last = statements[count - 1][0] if count else first
        return next(state for at, state in reversed(states) if at <= last or at == first)

    def _read(self, entity: Entity, lost: UnknownDefinition) -> Definition:
        """Read a lost definition; see :data:`Reread`."""
        definition = self._reread(entity, lost)
        self._states[entity] = [(at, definition if state is lost else state) for at, state in self._states[entity]]
        return definition

    def _looked_up(self, database: Entity, lost: UnknownDefinition) -> Definition | UnknownDefinition:
        """Read a lost definition of a database, on which one of its tables may depend; the server is asked once."""
        if (database, lost.position) in self._refused:
            return lost
        try:
            return self._read(database, lost)
        except (TableReplaced, UnknownSchema):
            self._refused.add((database, lost.position))
            return lost

    def _advanced(self, entity: Entity, number: int, position: Position, statement: Statement) -> State:
        def before(other: Entity) -> Definition | None:
            state = self._states[other][-1][1] if other == entity else self._after(other, number)
            if isinstance(state, UnknownDefinition) and not other[1] and other != entity:
                state = self._looked_up(other, state)
            if isinstance(state, UnknownDefinition):
                name = TableName(*other) if other[1] else other[0]
                raise CannotFollow(f"the definition of {name} before it is not known: {state.why}")
            return state

        try:
            return advance(entity, statement, before, self._rules)
        except CannotFollow as why:
            last = self._states[entity][-1][1]
            # A statement on its database that does not say whether the table is there leaves it as it is.
            if entity not in self._named[number] or (isinstance(last, UnknownDefinition) and last.unseen):
                return last
            return UnknownDefinition(position, statement, str(why))


def touched(statement: Statement, *, fold: bool) -> list[Entity]:
    """Return the tables and the database that a statement defines again.

    Args:
        statement: any.
        fold: see :class:`cdc_lib.binlog.ddl.history.column.Rules`.
    """
    found = mentioned(statement, fold=fold)
    may_leave = meaning(statement.text, statement.database, statement.quotings[0]).effect in ("alter", "none")
    return [] if may_leave and found and found[0][1] and leaves_definition(statement) else found


def mentioned(statement: Statement, *, fold: bool) -> list[Entity]:
    """Return the tables and the database that a statement defines or alters; see :func:`touched`."""
    means = meaning(statement.text, statement.database, statement.quotings[0])
    if means.effect == "truncate":  # takes the rows and leaves the definition
        return []
    found = list(means.tables)
    if fold:
        found = [(database.lower(), table.lower()) for database, table in found]
    return list(dict.fromkeys(found))


def _drops(statement: Statement) -> bool:
    return meaning(statement.text, statement.database, statement.quotings[0]).effect == "drop"
