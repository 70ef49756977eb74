"""A change of a drain cursor for each of many tables, in one pass: pure.

What a cursor holds of one table depends on no other table, so each is changed alone, in a cursor that holds nothing else.
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
    """Return a drain cursor after changes of single tables; those of one table in their order.

    Records keep their places, and new ones come last, in the order of the tables.

    Args:
        cursor: the drain cursor.
        changes: ``database.table`` of each, and the change.
    """
    wanted: dict[str, list[Change]] = {}
    for table, change in changes:
        wanted.setdefault(table, []).append(change)
    if not wanted:
        return cursor
    tasks: dict[str, list[SnapshotTask]] = {table: [] for table in wanted}
    for task in cursor.snapshots:
        if (mine := tasks.get(task.name)) is not None:
            mine.append(task)
    records: dict[str, list[QuarantineRecord]] = {table: [] for table in wanted}
    for one in cursor.quarantine:
        if (known := records.get(one.table)) is not None:
            known.append(one)
    changed: dict[str, Cursor] = {}
    for table, steps in wanted.items():
        alone = replace(cursor, snapshots=tuple(tasks[table]), quarantine=tuple(records[table]))
        for step in steps:
            alone = step(alone)
        changed[table] = alone
    kept = {table: iter(changed[table].quarantine[: len(records[table])]) for table in wanted}
    quarantined: list[QuarantineRecord] = []
    for one in cursor.quarantine:
        after = next(kept[one.table], None) if one.table in kept else one
        quarantined += [after] if after is not None else []
    for table in wanted:
        quarantined += changed[table].quarantine[len(records[table]) :]
    snapshots = (task for alone in changed.values() for task in alone.snapshots)
    return replace(cursor, quarantine=tuple(quarantined)).with_snapshots(snapshots)
