"""The definitions that are in force while a window is read.

They begin with what the store knows at the window's start and go on with every statement that comes by. A definition is
worked out when rows need it, not before: a table that nobody writes to costs nothing, and a statement that is not understood
stops the window only when rows stand behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from cdc_lib.decode.ddl import meaning
from cdc_lib.decode.history.advance import Entity, advance
from cdc_lib.decode.history.column import Rules
from cdc_lib.decode.history.words import CannotFollow
from cdc_lib.decode.statement import Statement
from cdc_lib.errors import UnknownSchema
from cdc_lib.model.history import Definition
from cdc_lib.model.position import Position
from cdc_lib.model.schema import TableSchema


@dataclass(frozen=True, slots=True)
class Lost:
    """A definition that is not known.

    Args:
        position: from behind which on.
        statement: what made it so; empty when it never was known.
        why: a reason for people.
    """

    position: Position
    statement: str
    why: str


State = Definition | Lost | None
"""None: there is no such table."""

Base = Callable[[Entity], tuple[Position, State]]
"""Gives what the store knows of a table at the window's start, and from where on that holds."""

Reread = Callable[[Entity, Lost], Definition]
"""Reads a lost definition from the server, if it still is what it was; raises UnknownSchema."""

Gap = Callable[[], list[tuple[Position, Statement]]]
"""Gives the statements in front of the window that the store may not know yet."""


@dataclass(frozen=True, slots=True)
class Change:
    """What a statement of the window made of a table."""

    entity: Entity
    position: Position
    statement: str
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
        self._states: dict[Entity, list[tuple[Position, State]]] = {}
        self._done: dict[Entity, int] = {}

    def took(self, position: Position, statement: Statement) -> None:
        """Take a statement that defines something; its event starts at the position."""
        self._own.append((position, statement))

    def schema(self, database: str, table: str) -> TableSchema:
        """Return the columns that are in force now.

        Raises:
            UnknownSchema: they are not known, and cannot be read any more.
        """
        entity = (database, table)
        state = self._after(entity, len(self._statements()))
        if isinstance(state, Lost):
            state = self._reread(entity, state)
            self._states[entity].append((self._states[entity][-1][0], state))
        if state is None:
            raise UnknownSchema(
                "rows of a table that was dropped before",
                hint="Nothing was acknowledged. Check the statements of the binlog in front of these rows.",
                table=f"{database}.{table}",
            )
        return state.schema

    def changes(self, wanted: Callable[[Entity], bool]) -> Iterator[Change]:
        """Yield what the window's own statements made of tables, in the order of the stream."""
        for position, statement in self._own:
            for entity in touched(statement, fold=self._rules.fold):
                if wanted(entity):
                    self._after(entity, len(self._statements()))
                    state = [state for at, state in self._states[entity] if at == position][-1]
                    yield Change(entity, position, statement.text, state)

    def _statements(self) -> list[tuple[Position, Statement]]:
        if self._before is None:
            self._before = self._gap()
        return [*self._before, *self._own]

    def _after(self, entity: Entity, count: int) -> State:
        """Return the state behind the first so many statements."""
        statements = self._statements()
        if entity not in self._states:
            self._states[entity] = [self._base(entity)]
            self._done[entity] = 0
        states = self._states[entity]
        while self._done[entity] < count:
            number = self._done[entity]
            self._done[entity] += 1
            position, statement = statements[number]
            if states[0][0] < position and _touches(statement, entity, fold=self._rules.fold):
                states.append((position, self._advanced(entity, number, position, statement)))
        first = states[0][0]
        last = statements[count - 1][0] if count else first
        return next(state for at, state in reversed(states) if at <= last or at == first)

    def _advanced(self, entity: Entity, number: int, position: Position, statement: Statement) -> State:
        def before(other: Entity) -> Definition | None:
            state = self._states[other][-1][1] if other == entity else self._after(other, number)
            if isinstance(state, Lost):
                name = ".".join(filter(None, other))
                raise CannotFollow(f"the definition of {name} in front of it is not known: {state.why}")
            return state

        try:
            return advance(entity, statement, before, self._rules)
        except CannotFollow as why:
            return Lost(position, statement.text, str(why))


def touched(statement: Statement, *, fold: bool) -> list[Entity]:
    """Return the tables and the database that a statement defines anew.

    Args:
        statement: any.
        fold: see :class:`cdc_lib.decode.history.column.Rules`.
    """
    means = meaning(statement.text, statement.database)
    if means.effect == "truncate":  # takes the rows and leaves the definition
        return []
    found = [(database, "" if table == "*" else table) for database, table in means.tables]
    if fold:
        found = [(database.lower(), table.lower()) for database, table in found]
    return list(dict.fromkeys(found))


def _touches(statement: Statement, entity: Entity, *, fold: bool) -> bool:
    found = touched(statement, fold=fold)
    if entity in found:
        return True
    return (entity[0], "") in found and meaning(statement.text, statement.database).effect == "drop"
