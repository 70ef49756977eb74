"""What a merge leaves out of quarantined and held tables, and the position as of which they are: pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from cdc_lib.merge.plan import StoredBatch
from cdc_lib.model.held_table import HeldTable, by_name, held_in
from cdc_lib.model.merge_plan import MergePlan, TableCut
from cdc_lib.model.position import Position
from cdc_lib.model.quarantine import LaggingTable, QuarantineRecord, excluded_tables
from cdc_lib.model.table_name import TableName


def without_quarantined(
    batches: Iterable[StoredBatch], quarantined: Sequence[QuarantineRecord], held: Sequence[HeldTable] = ()
) -> list[StoredBatch]:
    """Return the batches without the changes of tables that are quarantined or held at their windows.

    Windows are drained in any order, some before the quarantine was recorded: their changes of such a table must not be
    merged.
    """
    return [_without(batch, quarantined, held) for batch in batches] if quarantined or held else list(batches)


def _without(batch: StoredBatch, quarantined: Sequence[QuarantineRecord], held: Sequence[HeldTable]) -> StoredBatch:
    window = batch.manifest.window
    if window is None:
        return batch
    excluded = excluded_tables(quarantined, window.epoch, window.start) | held_in(held, window.epoch, window.start)
    if not excluded:
        return batch
    files = tuple(file for file in batch.manifest.files if file.table not in excluded)
    commits = tuple(
        (replace(commit, prepared=replace(commit.prepared, tables=_others(commit.prepared.tables, excluded))), held)
        for commit, held in batch.commits
    )
    statements = tuple(one for one in batch.manifest.statements if one.table not in excluded)
    return replace(batch, manifest=replace(batch.manifest, files=files, statements=statements), commits=commits)


def _others(tables: Iterable[TableName], excluded: Collection[TableName]) -> tuple[TableName, ...]:
    return tuple(table for table in tables if table not in excluded)


def positions_of(held: Iterable[HeldTable], lagging: Iterable[LaggingTable]) -> dict[TableName, Position]:
    """Return the last merged position of each quarantined or held table; one that is held before its record begins is there."""
    places = by_name(held)
    late = (one for one in lagging if _is_behind(one, places.get(one.table)))
    return {one.table: one.position for one in places.values()} | {one.table: one.position for one in late}


def _is_behind(one: LaggingTable, place: HeldTable | None) -> bool:
    """Whether the lake has less of a table because of its records than because it is held."""
    if place is None or one.last.begins_by(place.epoch, place.position):
        return True
    return one.last.epoch == place.epoch and one.position < place.position


def marked(tables: Iterable[TableCut], plan: MergePlan) -> list[TableCut]:
    """Return the tables of a cut; ``as_of`` is the last merged position of each quarantined or held one."""
    positions = positions_of(plan.held, plan.lagging)
    return [replace(cut, as_of=positions.get(cut.table)) for cut in tables]
