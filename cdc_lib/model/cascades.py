"""Foreign keys by which a server changes rows of other tables than those that a statement names: pure.

MariaDB, and MySQL before 9.6, run cascades inside the storage engine, and their binlog has none of the rows that these change.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

TableName = tuple[str, str]
"""Database and table."""

OnCascade = Literal["snapshot", "stop", "ignore"]
"""What becomes of a table whose rows a cascade may have changed: it is read again, the window stops, or nothing."""


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """A foreign key that changes rows of its own table when its parent changes.

    Args:
        child: the table that has it.
        parent: the table that it refers to.
        columns: names of the parent's columns.
        on_delete: whether a delete in the parent changes the child (CASCADE, SET NULL, SET DEFAULT).
        on_update: whether other values in the parent's columns do.
    """

    child: TableName
    parent: TableName
    columns: tuple[str, ...]
    on_delete: bool
    on_update: bool


@dataclass(frozen=True, slots=True)
class Cascades:
    """What a server changes without writing it to its binlog.

    Args:
        logged: whether it does write it.
        keys: the foreign keys that change rows; of no interest where that is logged.
        unseen: tables whose keys the server does not show.
    """

    logged: bool = True
    keys: tuple[ForeignKey, ...] = ()
    unseen: tuple[TableName, ...] = ()

    def parents(self) -> frozenset[TableName]:
        """Return the tables whose changes must be looked at."""
        return frozenset() if self.logged else frozenset(key.parent for key in self.keys)

    def columns_of(self, parent: TableName) -> frozenset[str]:
        """Return the columns, in lower case, whose values in a parent change other tables."""
        keys = (key for key in self.keys if key.parent == parent and key.on_update)
        return frozenset(name.lower() for key in keys for name in key.columns)

    def below(self, parent: TableName, how: Literal["delete", "update"]) -> frozenset[TableName]:
        """Return the tables that a delete in a parent, or other values in its columns, may change, over all levels.

        What is changed may be changed in any way: a SET NULL is an update to the next level.
        """
        first = [key.child for key in self.keys if key.parent == parent and self._acts(key, how)]
        return self.reached(first)

    def reached(self, tables: Iterable[TableName]) -> frozenset[TableName]:
        """Return tables whose rows are changed, with all that this may change in turn."""
        found: set[TableName] = set()
        left = list(tables)
        while left:
            table = left.pop()
            if table not in found:
                found.add(table)
                left += (key.child for key in self.keys if key.parent == table)
        return frozenset(found)

    def _acts(self, key: ForeignKey, how: Literal["delete", "update"]) -> bool:
        return key.on_delete if how == "delete" else key.on_update
