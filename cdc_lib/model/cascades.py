"""Foreign keys with cascades: a statement changes rows of tables that it does not name. Pure.

MariaDB, and MySQL before 9.6, run cascades inside the storage engine; their binlog has no events for these rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

TableName = tuple[str, str]
"""Database and table."""

OnCascade = Literal["snapshot", "stop", "ignore"]
"""Policy for a table whose rows a cascade may have changed: re-snapshot it, stop the window, or ignore it."""


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """A foreign key that changes rows of the child table when the parent changes.

    Args:
        child: table with the foreign key.
        parent: referenced table.
        columns: names of the referenced columns.
        on_delete: whether a DELETE in the parent changes the child (CASCADE, SET NULL, SET DEFAULT).
        on_update: whether an UPDATE of the referenced columns does.
    """

    child: TableName
    parent: TableName
    columns: tuple[str, ...]
    on_delete: bool
    on_update: bool


@dataclass(frozen=True, slots=True)
class Cascades:
    """Row changes that a server may not write to its binlog.

    Args:
        logged: whether the server does write them.
        keys: the foreign keys that change rows; not used if they are logged.
        unseen: tables whose foreign keys the server does not show.
    """

    logged: bool = True
    keys: tuple[ForeignKey, ...] = ()
    unseen: tuple[TableName, ...] = ()

    def parents(self) -> frozenset[TableName]:
        """Return the parent tables, whose changes may cascade."""
        return frozenset() if self.logged else frozenset(key.parent for key in self.keys)

    def databases(self) -> frozenset[str]:
        """Return the databases of the tables that foreign keys refer to."""
        return frozenset(key.parent[0] for key in self.keys)

    def columns_of(self, parent: TableName) -> frozenset[str]:
        """Return the columns of a parent, in lower case, whose updates cascade."""
        keys = (key for key in self.keys if key.parent == parent and key.on_update)
        return frozenset(name.lower() for key in keys for name in key.columns)

    def below(self, parent: TableName, how: Literal["delete", "update"]) -> frozenset[TableName]:
        """Return the tables that a DELETE or UPDATE in a parent may change, over all levels.

        A changed table may pass on both kinds of change: a SET NULL is an UPDATE for the next level.
        """
        first = [key.child for key in self.keys if key.parent == parent and self._acts(key, how)]
        return self.reached(first)

    def reached(self, tables: Iterable[TableName]) -> frozenset[TableName]:
        """Return the given tables and all tables that their changes may cascade to."""
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
