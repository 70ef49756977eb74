"""What a merge leaves out of tables that are set aside, and as of where they stand: pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from cdc_lib.merge.plan import Batch
from cdc_lib.model.aside import Aside, left_out
from cdc_lib.model.merge import MergePlan, TableCut


def without_aside(batches: Iterable[Batch], aside: Sequence[Aside]) -> list[Batch]:
    """Return batches as if they had nothing of the tables that are set aside where their windows lie.

    Windows were drained in any order, some of them before it was known: what they hold of such a table must not be merged.
    """
    return [_without(batch, aside) for batch in batches] if aside else list(batches)


def _without(batch: Batch, aside: Sequence[Aside]) -> Batch:
    window = batch.manifest.window
    if window is None:
        return batch
    gone = left_out(aside, window.epoch, window.start)
    if not gone:
        return batch
    files = tuple(file for file in batch.manifest.files if file.table not in gone)
    commits = tuple(
        (replace(commit, prepared=replace(commit.prepared, tables=_others(commit.prepared.tables, gone))), held)
        for commit, held in batch.commits
    )
    statements = tuple(one for one in batch.manifest.statements if one.table not in gone)
    return replace(batch, manifest=replace(batch.manifest, files=files, statements=statements), commits=commits)


def _others(tables: Iterable[str], gone: Collection[str]) -> tuple[str, ...]:
    return tuple(table for table in tables if table not in gone)


def marked(tables: Iterable[TableCut], plan: MergePlan) -> list[TableCut]:
    """Return the tables of a cut, those that are set aside with the position as of which they stand."""
    behind = {one.table: one.position for one in plan.standing}
    return [replace(cut, aside=behind.get(cut.table)) for cut in tables]
