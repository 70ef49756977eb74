"""Rows that a lake table cannot hold as it is defined: from where on it may begin again with their definition; pure.

A table begins again where no older row counts: a statement removed all rows, or a new snapshot replaces them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cdc_lib.errors import IncompatibleSchema, TableRedefined
from cdc_lib.merge.plan import MergeInput, TableWork
from cdc_lib.model.lake_table import LakeTable, Marker
from cdc_lib.model.position import Point
from cdc_lib.model.table_mode import Mode
from cdc_lib.model.table_name import TableName

FROM_THE_START = Point(0, 0, 0)


def obsolete_before(work: TableWork, before: Marker, state: LakeTable | None) -> Point | None:
    """Return the point before which no row of the source counts any more; None if older rows still count.

    Args:
        work: what the table would need as a mirror.
        before: its marker before the merge.
        state: the lake table.
    """
    if state is None or state.snapshot_id is None:
        statements = filter(None, (work.reset_before, work.rebuild_before))
        return max(statements, default=FROM_THE_START)
    since = max(filter(None, (work.reset_before, work.rebuild_before, before.emptied)), default=None)
    return since if since is None or work.kept_before(since) is None else None


def loses_history(mode: Mode, configured: Mode | None) -> bool:
    """Whether a lake table that begins again would lose what the source does not have: deleted rows, versions, changes.

    A table without a key is a list of changes only because its rows cannot be told apart.
    """
    return mode in ("soft_delete", "scd2") or (mode == "append" and configured == "append")


def history_error(why: IncompatibleSchema, table: TableName) -> IncompatibleSchema:
    """Return the error of a table whose lake table keeps what the source no longer has, and so does not begin again unasked."""
    return IncompatibleSchema(
        f"{why.message}; the lake table keeps deleted rows, versions or changes, which the source does not have",
        hint=f"Begin the lake table again: cdc snapshot {{source}} {table.in_shell} --replace. "
        "Its snapshots of before can be read for as long as maintenance.keep_snapshots_for says.",
        **why.context,
    )


def redefined_error(why: IncompatibleSchema, table: TableName) -> TableRedefined:
    """Return the error of a table that a new snapshot brings with its new definition."""
    return TableRedefined(
        why.message,
        hint=f"A new snapshot replaces the rows, and is requested automatically; or: cdc snapshot {{source}} {table.in_shell}",
        **why.context,
    )


def beginning_at(work: TableWork, since: Point) -> TableWork:
    """Return what a table needs that begins at a point, without the changes before it; the rows of its snapshot stay.

    The values of columns that were added before it are for rows that do not stay: another column may have the name by now.
    """
    resets = tuple(one for one in work.resets if Point(one.epoch, one.file, one.offset) >= since)
    added = tuple(one for one in work.added_defaults if one.before > since)
    inputs = tuple(_from(each, since) for each in work.inputs)
    return replace(work, inputs=inputs, resets=resets, added_defaults=added)


def emptied_at(work: TableWork, before: Marker, *, has_rows: bool) -> Point | None:
    """Return where a statement removed all rows, if no row came since.

    Args:
        work: what the table needs.
        before: its marker before the merge.
        has_rows: whether rows come after the last statement of the merge that removed all, or at all without one.
    """
    return None if has_rows else max(filter(None, (last_reset(work), before.emptied)), default=None)


def last_reset(work: TableWork) -> Point | None:
    """Return where the last statement of a merge removed all rows; None without one."""
    points = [Point(one.epoch, one.file, one.offset) for one in work.resets]
    return max(filter(None, (*points, work.reset_before)), default=None)


def has_rows(table: TableName, inputs: Sequence[MergeInput]) -> bool:
    """Whether inputs have rows of a table."""
    batches = [each.batch for each in inputs]
    of_windows = any(file.table == table for batch in batches for file in batch.manifest.files)
    return of_windows or any(table in commit.prepared.tables for batch in batches for commit, _ in batch.commits)


def _from(each: MergeInput, since: Point) -> MergeInput:
    if each.batch.manifest.window is None:
        return each
    return replace(each, floor=max(filter(None, (each.floor, since))))
