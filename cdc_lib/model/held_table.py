"""A table that the lake leaves out of merges while its snapshot is read, or while a person decides about a statement."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cdc_lib.model.position import Point, Position
from cdc_lib.model.schema_policy import Behaviour, SchemaPolicy
from cdc_lib.model.schema_question import SchemaQuestion
from cdc_lib.model.table_name import TableName


@dataclass(frozen=True, slots=True)
class StoppedAt:
    """A statement at which a table stopped.

    Args:
        question: the statement; of routed tables that share a lake table, one of them has it.
        behaviour: what the source file, or an answer, said about it then: the table waits until that changes.
    """

    question: SchemaQuestion
    behaviour: Behaviour | None

    def is_undecided(self, policy: SchemaPolicy) -> bool:
        """Whether the policy of the statement's table, with its answers, still says the same."""
        return policy.at(self.question.kind, self.question.point) == self.behaviour


@dataclass(frozen=True, slots=True)
class HeldTable:
    """A table with a place of its own in the stream, from which on its changes wait.

    The lake takes them with its snapshot, or once it is decided what the lake does about a statement.

    Args:
        table: ``database.table`` at the source.
        epoch: of the position.
        position: the start of the first window that is merged without changes of the table.
        stopped: the statement at which it stopped; None for a table that waits for its snapshot.
    """

    table: TableName
    epoch: int
    position: Position
    stopped: StoppedAt | None = None

    @property
    def point(self) -> Point:
        """The position as a point."""
        return Point.at(self.epoch, self.position)

    @classmethod
    def at(cls, table: TableName, place: tuple[int, Position]) -> HeldTable:
        """Return a table that is held from a place (epoch and position) on."""
        return cls(table, *place)


def held_in(held: Iterable[HeldTable], epoch: int, start: Position) -> frozenset[TableName]:
    """Return the tables whose changes are not merged with a window that starts here."""
    return frozenset(one.table for one in held if one.point <= Point.at(epoch, start))


def by_name(held: Iterable[HeldTable]) -> Mapping[TableName, HeldTable]:
    """Return held tables by their names."""
    return {one.table: one for one in held}
