"""The cut that completes a merge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from cdc_lib.merge.plan import StoredBatch
from cdc_lib.merge.quarantined import marked
from cdc_lib.model.comments import TableComments
from cdc_lib.model.cursor import Cursor
from cdc_lib.model.gtid import GtidSet
from cdc_lib.model.manifest import DataFile
from cdc_lib.model.merge_plan import Cut, CutOrigin, MergePlan, MergeTotals, TableCut
from cdc_lib.model.position import Point
from cdc_lib.model.row_counts import NO_ROWS
from cdc_lib.model.table_name import TableName


def make_cut(
    plan: MergePlan,
    batches: Sequence[StoredBatch],
    tables: Sequence[TableCut],
    before: Cut | None,
    at: datetime,
    seconds: float | None = None,
    origin: CutOrigin | None = None,
    uncommented: Sequence[TableComments] | None = None,
) -> Cut:
    """Return the cut that completes a plan.

    Args:
        plan: the plan.
        batches: its batches.
        tables: all lake tables of the source as they are now.
        before: the previous cut.
        at: now (UTC).
        seconds: how long the merge took.
        origin: what lost cursors are rebuilt with.
        uncommented: comments that could not be carried over; None for those of the previous cut.
    """
    if uncommented is None:
        uncommented = before.uncommented if before is not None else ()
    times = [batch.manifest.last_time for batch in batches if batch.manifest.window is not None]
    if before is not None:
        times.append(before.event_time)
    earlier = {(one.table, one.lake_table): one for one in before.tables} if before is not None else {}
    files = _files_by_table(batches)
    counted = [_counted(one, files.get(one.table, ()), earlier.get((one.table, one.lake_table))) for one in tables]
    so_far = before.totals if before is not None else MergeTotals()
    merged = [batch for batch in batches if not _is_before(batch, plan)]
    windows = sum(batch.manifest.window is not None for batch in merged)
    return Cut(
        source=plan.source,
        merge_id=plan.merge_id,
        epoch=plan.epoch,
        position=plan.stop,
        event_time=max((time for time in times if time is not None), default=None),
        at=at,
        tables=tuple(sorted(marked(counted, plan), key=lambda cut: (cut.table, cut.lake_table))),
        seconds=seconds,
        totals=MergeTotals(
            so_far.merges + 1,
            so_far.windows + windows,
            so_far.chunks + len(merged) - windows,
            so_far.seconds + (seconds or 0.0),
        ),
        gtid_set=_gtids_before_stop(plan, merged),
        held=plan.held,
        origin=origin,
        uncommented=tuple(uncommented),
    )


def origin_of(plan: MergePlan, drain: Cursor | None, lake: Cursor | None) -> CutOrigin | None:
    """Return what the cursors of a plan know and its cut does not show otherwise; None if one is lost."""
    if drain is None or lake is None:
        return None
    stop = Point.at(plan.epoch, plan.stop)
    merged = (task for task in (*lake.snapshots, *lake.in_flight_snapshots) if task.chunks)
    ids = {task.snapshot_id for task in merged if task.requested_at >= stop}
    lagging = tuple(one.table for one in plan.lagging)
    return CutOrigin(lake.identity, plan.source_uuid, drain.text_keys, lagging, tuple(sorted(ids)))


def _is_before(batch: StoredBatch, plan: MergePlan) -> bool:
    """Whether a window was merged before, and is here for tables that catch up."""
    window = batch.manifest.window
    return window is not None and Point.at(window.epoch, window.start) < Point.at(plan.epoch, plan.start)


def _gtids_before_stop(plan: MergePlan, batches: Sequence[StoredBatch]) -> str:
    """Return the GTIDs of all transactions before the end of a plan; empty if they are not known exactly."""
    windows = [batch.manifest for batch in batches if batch.manifest.window is not None]
    complete = all(one.gtids.complete for one in windows if one.last_time is not None)
    if not plan.gtids.complete or not complete:
        return ""
    if not windows:
        return plan.gtids.text
    flavor = windows[0].identity.flavor  # one server's, as all of an epoch
    found = GtidSet.parse(flavor, plan.gtids.text)
    for one in windows:
        found = found.union(GtidSet.parse(flavor, one.gtid_set))
    return str(found)


def _files_by_table(batches: Sequence[StoredBatch]) -> Mapping[TableName, Sequence[DataFile]]:
    found: dict[TableName, list[DataFile]] = {}
    for batch in batches:
        for file in batch.manifest.files:
            found.setdefault(file.table, []).append(file)
    return found


def _counted(cut: TableCut, files: Sequence[DataFile], before: TableCut | None) -> TableCut:
    """Return a table of a cut with its rows in the files of this merge, and in those of all merges."""
    known = [file.counts for file in files if file.counts is not None]
    rows = sum(known, NO_ROWS)
    return replace(
        cut,
        rows=rows if len(known) == len(files) else None,
        total_rows=rows + (before.total_rows if before is not None else NO_ROWS),
        total_bytes=sum(file.bytes for file in files) + (before.total_bytes if before is not None else 0),
    )
