"""A table that the lake leaves out of merges while its snapshot is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cdc_lib.model.position import Point, Position
from cdc_lib.model.table_name import TableName


@dataclass(frozen=True, slots=True)
class HeldTable:
    """A table with a place of its own in the stream: the lake takes its changes from there on with its snapshot.

    Args:
        table: ``database.table`` at the source.
        epoch: of the position.
        position: the start of the first window that is merged without changes of the table.
    """

    table: TableName
    epoch: int
    position: Position

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
