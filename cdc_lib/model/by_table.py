"""Changes a drain cursor for many tables in one pass. Pure.

A cursor's records of one table depend on no other table. So each table is changed alone, in a cursor with its records only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from cdc_lib.model.cursor import Cursor
from cdc_lib.model.quarantine import QuarantineRecord
from cdc_lib.model.window import SnapshotTask

Change = Callable[[Cursor], Cursor]
"""Changes the records and snapshots of one table."""


def table_by_table(cursor: Cursor, changes: Iterable[tuple[str, Change]]) -> Cursor:
    """Return a drain cursor after changes of single tables. Changes of one table are applied in order.

    Records keep their places, and new ones come last, in the order of the tables.

    Args:
        cursor: the drain cursor.
        changes: ``database.table`` of each, and the change.
    """
    by_table: dict[str, list[Change]] = {}
    for table, change in changes:
        by_table.setdefault(table, []).append(change)
    if not by_table:
        return cursor
    tasks: dict[str, list[SnapshotTask]] = {table: [] for table in by_table}
    for task in cursor.snapshots:
        if (mine := tasks.get(task.name)) is not None:
            mine.append(task)
    records: dict[str, list[QuarantineRecord]] = {table: [] for table in by_table}
    for record in cursor.quarantine:
        if (known := records.get(record.table)) is not None:
            known.append(record)
    changed: dict[str, Cursor] = {}
    for table, steps in by_table.items():
        alone = replace(cursor, snapshots=tuple(tasks[table]), quarantine=tuple(records[table]))
        for step in steps:
            alone = step(alone)
        changed[table] = alone
    kept = {table: iter(changed[table].quarantine[: len(records[table])]) for table in by_table}
    quarantined: list[QuarantineRecord] = []
    for record in cursor.quarantine:
        after = next(kept[record.table], None) if record.table in kept else record
        quarantined += [after] if after is not None else []
    for table in by_table:
        quarantined += changed[table].quarantine[len(records[table]) :]
    snapshots = (task for alone in changed.values() for task in alone.snapshots)
    return replace(cursor, quarantine=tuple(quarantined)).with_snapshots(snapshots)
