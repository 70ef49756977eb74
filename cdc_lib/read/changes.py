"""What changed in a lake table between two of its snapshots, by key: inserted, updated and deleted rows.

Only files that one snapshot has and the other has not are read, and those whose deletes differ. So the cost follows the changes and
what maintenance rewrote in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from cdc_lib.apply.engine import connect, quoted
from cdc_lib.apply.key_rows import Rows
from cdc_lib.errors import ConfigError
from cdc_lib.read.columns import ReadColumn
from cdc_lib.read.snapshot import PinnedSnapshot, RowGroup, shown
from cdc_lib.read.table import TableReader

CHANGE = "_change_type"
"""The column that says what happened: ``insert``, ``update`` or ``delete``. No column of a lake table has this name."""


def net_changes(before: TableReader, after: TableReader, columns: Iterable[str] | None = None) -> pa.Table:
    """Return the rows that differ between two states of a table, by their keys.

    A row that changed and changed back is not in the result, nor one that maintenance moved to another file. In ``soft_delete``
    tables a marked row is a deleted one, in ``scd2`` tables the current versions are compared.

    Args:
        before: the table at the earlier snapshot.
        after: the same table at the later one.
        columns: names of the columns, of those after; None for all. A change of another column is a change too.

    Returns:
        A row for each key that changed, in key order: with its values afterwards, or before if it was deleted, and ``_change_type``.

    Raises:
        ConfigError: the table has no key, its key has changed, or it is in ``append`` mode.
        StoreError: a file cannot be read.
    """
    old, new = before.pinned, after.pinned
    _refuse(old, new)
    names = [column.name for column in new.columns.choose(columns)]
    every = new.columns.choose(None)
    removed, added = _FoundRows(every), _FoundRows(every)
    files = {file.path: file for file in old.files}
    for file in new.files:
        same = files.pop(file.path, None)
        if same is None:
            added.take_all(new, new.groups(file))
        elif old.deletes_of(same) != new.deletes_of(file):
            for one, other in zip(old.groups(same), new.groups(file), strict=True):
                live_before, live_after = _shown(old, one), _shown(new, other)
                removed.take(old, one, np.setdiff1d(live_before, live_after, assume_unique=True))
                added.take(new, other, np.setdiff1d(live_after, live_before, assume_unique=True))
    for file in files.values():
        removed.take_all(old, old.groups(file))
    return _compared(removed.table, added.table, [one.name for one in new.key.columns], names)


class _FoundRows:
    """Rows of one snapshot that the other may not have, in the columns of the later one."""

    def __init__(self, columns: Sequence[ReadColumn]) -> None:
        self._columns = columns
        self._parts = [pa.schema([column.field for column in columns]).empty_table()]

    @property
    def table(self) -> pa.Table:
        return pa.concat_tables(self._parts)

    def take(self, snapshot: PinnedSnapshot, group: RowGroup, rows: Rows) -> None:
        if len(rows):
            self._parts.append(snapshot.read(group, rows, self._columns))

    def take_all(self, snapshot: PinnedSnapshot, groups: Iterable[RowGroup]) -> None:
        for group in groups:
            self.take(snapshot, group, _shown(snapshot, group))


def _shown(snapshot: PinnedSnapshot, group: RowGroup) -> Rows:
    """Return the rows of a row group that a reader of the snapshot sees."""
    keys = snapshot.key_rows(group)
    return snapshot.live(group, shown(snapshot.mode, keys, np.arange(len(keys)), everything=False))


def _refuse(old: PinnedSnapshot, new: PinnedSnapshot) -> None:
    if "append" in (old.mode, new.mode):
        raise ConfigError(
            "the lake table is in append mode: its rows are the changes",
            hint="Scan it, with the columns _epoch, _binlog, _offset and _row for their order.",
            table=new.name,
        )
    if [one.field_id for one in old.key.columns] != [one.field_id for one in new.key.columns]:
        raise ConfigError(
            "the key of the table changed in between, so that rows cannot be compared by it",
            hint="Choose two cuts after the change.",
            table=new.name,
        )


def _compared(removed: pa.Table, added: pa.Table, key: Sequence[str], names: Sequence[str]) -> pa.Table:
    """Return the keys whose rows differ. NaN equals NaN here, and NULL equals NULL."""
    connection = connect()
    connection.execute("SET TimeZone = 'UTC'")
    for name, rows in (("removed", removed), ("added", added)):
        connection.register(name, rows.append_column(CHANGE, pa.repeat(True, rows.num_rows)))
    same_key = " AND ".join(f"r.{quoted(one)} IS NOT DISTINCT FROM a.{quoted(one)}" for one in key)
    differs = " OR ".join(f"r.{quoted(one)} IS DISTINCT FROM a.{quoted(one)}" for one in added.column_names)
    chosen = ", ".join(
        f"CASE WHEN a.{CHANGE} THEN a.{quoted(one)} ELSE r.{quoted(one)} END AS {quoted(one)}" for one in names
    )
    order = ", ".join(f"CASE WHEN a.{CHANGE} THEN a.{quoted(one)} ELSE r.{quoted(one)} END NULLS FIRST" for one in key)
    found = connection.sql(
        f"SELECT {chosen + ', ' if chosen else ''}CASE WHEN r.{CHANGE} IS NULL THEN 'insert' WHEN a.{CHANGE} IS NULL THEN 'delete' "
        f"ELSE 'update' END AS {CHANGE} FROM removed r FULL JOIN added a ON {same_key} "
        f"WHERE r.{CHANGE} IS NULL OR a.{CHANGE} IS NULL OR {differs} ORDER BY {order}"
    ).to_arrow_table()
    schema = pa.schema([*(added.schema.field(name) for name in names), (CHANGE, pa.string())])
    return found.cast(schema)
