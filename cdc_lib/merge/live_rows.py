"""Which files of a merge have rows that still count, after a statement or a new snapshot that replaced all earlier ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from cdc_lib.merge.chunks import low_of
from cdc_lib.merge.plan import MergeInput, StoredBatch, TableWork, following
from cdc_lib.merge.table_resets import StatementEffects
from cdc_lib.model.manifest import DataFile
from cdc_lib.model.position import Point
from cdc_lib.model.schema_policy import SchemaPolicy
from cdc_lib.model.table_mode import TableReset
from cdc_lib.model.table_name import TableName
from cdc_lib.ports import ObjectStore
from cdc_lib.store import layout
from cdc_lib.store.batch_rows import last_point


def live(store: ObjectStore, table: TableName, work: TableWork, since: Point) -> tuple[MergeInput, ...]:
    """Return the inputs of a merge with only those files that have rows at a point or after it.

    Args:
        store: holds the batches.
        table: ``database.table``.
        work: with the inputs.
        since: rows from before the point do not count, except those of a snapshot that replaces the table.
    """
    return tuple(_live(store, table, work, since))


def _live(store: ObjectStore, table: TableName, work: TableWork, since: Point) -> Iterator[MergeInput]:
    for each in work.inputs:
        if each.batch.manifest.window is None:
            if work.rebuild_before is not None or low_of(each.batch.manifest) >= since:
                yield each
            continue
        files = tuple(file for file in each.batch.manifest.files if _is_live(store, table, each.batch, file, since))
        commits = tuple((commit, held) for commit, held in each.batch.commits if commit.point >= since)
        yield replace(
            each, batch=replace(each.batch, manifest=replace(each.batch.manifest, files=files), commits=commits)
        )


def found_again(store: ObjectStore, work: TableWork, policy: SchemaPolicy) -> TableWork:
    """Return the work on a table; where rows after its DROP show that it exists again, it begins there, as at a CREATE."""
    at = work.marker.dropped
    if at is None or not has_rows_after(store, work.table, [each.batch for each in work.inputs], at):
        return work
    resets = (TableReset(*at, None),) if policy.at("drop_table", at) == "keep" else ()  # else the DROP is one already
    work = replace(work, marker=replace(work.marker, dropped=None, kept_before=None), kept=())
    return following(work, StatementEffects(before=at, resets=resets, entries=resets))


def has_rows_after(store: ObjectStore, table: TableName, batches: Iterable[StoredBatch], point: Point) -> bool:
    """Whether windows have rows of a table from a point on: a table that was dropped there exists again."""
    return any(
        any(_is_live(store, table, batch, file, point) for file in batch.manifest.files)
        or any(commit.point >= point and table in commit.prepared.tables for commit, _ in batch.commits)
        for batch in batches
    )


def _is_live(store: ObjectStore, table: TableName, batch: StoredBatch, file: DataFile, since: Point) -> bool:
    window = batch.manifest.window
    if file.table != table or window is None or Point.at(window.epoch, window.stop) <= since:
        return False
    if Point.at(window.epoch, window.start) >= since:
        return True
    return last_point(store, layout.beside(batch.key, file.path)) >= since
