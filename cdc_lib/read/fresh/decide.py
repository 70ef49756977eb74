"""Which waiting changes can be shown before they are merged; pure. What a merge does about their rows is in :mod:`cdc_lib.apply`."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from cdc_lib.errors import MergeError
from cdc_lib.lake.modes import mode_of
from cdc_lib.lake.routing import RoutedTable
from cdc_lib.merge.plan import TableWork
from cdc_lib.model.lake_table import Marker
from cdc_lib.model.manifest import DataFile
from cdc_lib.model.merge_plan import MergePlan
from cdc_lib.model.route import routed_schema
from cdc_lib.model.schema import TableSchema
from cdc_lib.model.table_commit import Superseded
from cdc_lib.model.table_mode import ONE_VERSION_MODES, Mode


def not_fresh(why: str, table: str) -> MergeError:
    """Return the error of waiting changes that only a merge can apply.

    Args:
        why: the reason.
        table: ``database.table``.
    """
    return MergeError(
        f"the batches that wait cannot be shown before they are merged: {why}",
        hint="Read the table without them, or after the next merge.",
        table=table,
    )


def why_lagging(plan: MergePlan, table: str) -> str:
    """Return why a table's changes are not in the plan; empty if they are."""
    if any(one.table == table for one in plan.lagging):
        return "the table is quarantined, or waits for a new snapshot"
    return ""


def why_not(
    routed: RoutedTable, work: TableWork, marker: Marker, plan: MergePlan, superseded: Sequence[Superseded]
) -> str:
    """Return why the work of a merge cannot be shown before it is done; empty if it can.

    Args:
        routed: the source table and where its rows go.
        work: what the merge would do.
        marker: of the lake table.
        plan: the merge.
        superseded: existing rows that it would remove.
    """
    scd2, chunks = work.mode == "scd2", any(each.batch.manifest.chunk is not None for each in work.inputs)
    first = marker.merged_to.epoch if marker.merged_to is not None else plan.epoch
    reasons = {
        "the lake table is of another source of the same name": marker.is_foreign_to(plan.source_uuid),
        "a snapshot chunk comes after changes that are already merged": work.replay is not None,
        "a part of the table is read again": bool(work.ranges),
        "columns were added with a default": bool(work.added_defaults),
        "columns were renamed": _renames(work),
        "a snapshot brings rows again into an append table": work.mode == "append" and bool(superseded),
        "a snapshot brings rows into a table with versions": scd2 and chunks and not marker.is_blank,
        "older changes come again into a table with versions": scd2 and (work.guard or first != plan.epoch),
        "the lake table is shared, and its rows do not show their table": bool(superseded)
        and routed.target.routed
        and not routed.target.keys,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def why_not_partial(
    routed: RoutedTable,
    work: TableWork,
    superseded: Sequence[Superseded],
    files: Sequence[tuple[DataFile, TableSchema]],
) -> str:
    """Return why cells that rows lack are not known before the merge; empty if they may be known, or no row lacks any.

    Args:
        routed: the source table.
        work: what the merge would do.
        superseded: existing rows that it would remove.
        files: with the waiting rows.
    """
    if not any(file.partial_rows for file, _ in files):
        return ""
    reasons = {
        f"the table is in {work.mode} mode": work.mode not in ONE_VERSION_MODES,
        "a route makes the lake table": routed.target.routed,
        "a snapshot waits": any(each.batch.manifest.chunk is not None for each in work.inputs),
        "a statement or snapshot removes rows": bool(superseded),
        "older changes come again": work.guard,
    }
    reason = next((reason for reason, holds in reasons.items() if holds), "")
    return f"rows lack columns, because binlog_row_image is not FULL, and {reason}" if reason else ""


def _renames(work: TableWork) -> bool:
    statements = (one for each in work.inputs for one in each.batch.manifest.statements)
    return any(one.table == work.table and one.kind == "rename_columns" for one in statements)


def why_not_files(
    routed: RoutedTable,
    mode: Mode,
    files: Sequence[tuple[DataFile, TableSchema]],
    columns: Collection[str],
    key: Sequence[str],
) -> str:
    """Return why rows of files do not fit into the lake table as it is; empty if they do.

    Args:
        routed: the source table.
        mode: of the lake table.
        files: with their schemas.
        columns: names of the lake table.
        key: its key.
    """
    have = {name.lower() for name in columns}
    for _, schema in files:
        lake = routed_schema(schema, routed.target)
        if missing := [one.name for one in lake.columns if one.name.lower() not in have]:
            return f"column {missing[0]} is not in the lake table yet"
        if [name.lower() for name in lake.primary_key] != [name.lower() for name in key]:
            return "its key has changed"
        if mode_of(lake, routed.target.mode) != mode:
            return "the source file gives the table another mode"
    return ""
