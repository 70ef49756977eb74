"""What a merge leaves out of tables that are quarantined, and as of where they stand: pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from cdc_lib.merge.plan import Batch
from cdc_lib.model.merge_plan import MergePlan, TableCut
from cdc_lib.model.quarantine import QuarantineRecord, excluded_tables
from cdc_lib.model.table_name import TableName


def without_quarantined(batches: Iterable[Batch], quarantined: Sequence[QuarantineRecord]) -> list[Batch]:
    """Return batches as if they had nothing of the tables that are quarantined where their windows lie.

    Windows were drained in any order, some of them before it was known: what they hold of such a table must not be merged.
    """
    return [_without(batch, quarantined) for batch in batches] if quarantined else list(batches)


def _without(batch: Batch, quarantined: Sequence[QuarantineRecord]) -> Batch:
    window = batch.manifest.window
    if window is None:
        return batch
    gone = excluded_tables(quarantined, window.epoch, window.start)
    if not gone:
        return batch
    files = tuple(file for file in batch.manifest.files if file.table not in gone)
    commits = tuple(
        (replace(commit, prepared=replace(commit.prepared, tables=_others(commit.prepared.tables, gone))), held)
        for commit, held in batch.commits
    )
    statements = tuple(one for one in batch.manifest.statements if one.table not in gone)
    return replace(batch, manifest=replace(batch.manifest, files=files, statements=statements), commits=commits)


def _others(tables: Iterable[TableName], gone: Collection[TableName]) -> tuple[TableName, ...]:
    return tuple(table for table in tables if table not in gone)


def marked(tables: Iterable[TableCut], plan: MergePlan) -> list[TableCut]:
    """Return the tables of a cut, those that are quarantined with the position as of which they stand."""
    behind = {one.table: one.position for one in plan.lagging}
    return [replace(cut, as_of=behind.get(cut.table)) for cut in tables]
