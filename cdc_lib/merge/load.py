"""Reads the batches of a plan, and those of a late snapshot chunk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cdc_lib.errors import MergeError
from cdc_lib.merge.catch_up import caught_up
from cdc_lib.merge.chunks import reading_order
from cdc_lib.merge.manifests import is_of_its_epoch, load_batches, with_commits
from cdc_lib.merge.plan import StoredBatch, replayed_windows, tables_of
from cdc_lib.merge.quarantined import without_quarantined
from cdc_lib.merge.table_resets import expand_database_statements, is_of_database
from cdc_lib.model.cursor import Cursor
from cdc_lib.model.manifest import chunk_of
from cdc_lib.model.merge_plan import MergePlan
from cdc_lib.model.position import Point
from cdc_lib.model.quarantine import QuarantineRecord
from cdc_lib.model.table_name import TableName
from cdc_lib.model.xa_settlement import opened_before, settle
from cdc_lib.ports import ObjectStore
from cdc_lib.store.cuts import last_cut
from cdc_lib.store.windows import known_windows


def load_plan(store: ObjectStore, plan: MergePlan) -> list[StoredBatch]:
    """Read the batches of a plan, with the XA transactions that they commit, without quarantined and held tables.

    Tables that catch up have the windows before the plan as well: these stand after the chunks, and hold no other table.

    Raises:
        CorruptBatch: a manifest is missing or not valid.
        MergeError: a window that a table needs to catch up is no longer stored.
    """
    batches = _in_reading_order(with_commits(store, load_batches(store, plan.batches), plan.prepared))
    if plan.catching_up:
        chunks = [batch for batch in batches if batch.manifest.chunk is not None]
        batches = [*chunks, *caught_up(store, plan, chunks), *(one for one in batches if one.manifest.chunk is None)]
    return without_quarantined(_with_each_table(store, plan, batches), plan.quarantine, plan.held)


def _in_reading_order(batches: list[StoredBatch]) -> list[StoredBatch]:
    """Sort the chunks of divided snapshots, so that a later schema of their table comes after an earlier one."""
    chunks = [batch for batch in batches if batch.manifest.chunk is not None]
    if all(chunk_of(batch.manifest).range_count == 1 for batch in chunks):
        return batches
    ordered = sorted(chunks, key=lambda batch: reading_order(batch.manifest))
    return [*ordered, *(batch for batch in batches if batch.manifest.chunk is None)]


def _with_each_table(store: ObjectStore, plan: MergePlan, batches: list[StoredBatch]) -> list[StoredBatch]:
    """Expand statements on a whole database to its tables."""
    if not any(is_of_database(one) for batch in batches for one in batch.manifest.statements):
        return batches
    before = last_cut(store, plan.source, plan.last_merge)
    known = {*tables_of(batches), *(cut.table for cut in (before.tables if before is not None else ()))}
    return [replace(batch, manifest=expand_database_statements(batch.manifest, known)) for batch in batches]


def replayed_batches(
    store: ObjectStore,
    source: str,
    table: TableName,
    replay: tuple[Point, Point],
    quarantined: Sequence[QuarantineRecord] = (),
    drain: Cursor | None = None,
) -> list[StoredBatch]:
    """Read the batches of the windows that a late snapshot chunk must be merged with, without quarantined tables.

    Args:
        store: holds the batches.
        source: name of the source.
        table: ``database.table``.
        replay: start and end of the range.
        quarantined: quarantine records; their tables are left out.
        drain: drain cursor; windows after the end of their epoch, from an abandoned server, are ignored.

    Raises:
        CorruptBatch: a manifest is missing or not valid.
        MergeError: a batch is no longer stored.
    """
    stored = known_windows(store, source, drain, replay[0])
    windows = [window for window in stored if drain is None or is_of_its_epoch(window, drain)]
    batches = load_batches(store, replayed_windows(((w.key, w.start, w.stop) for w in windows), replay, table))
    unknown = settle((), [(batch.key, batch.manifest) for batch in batches]).unknown
    xids = {decision.xid for epoch, decision in unknown if Point.at(epoch, decision.position) >= replay[0]}
    begins = {window.key: window.start for window in windows}
    older = [window.key for window in reversed(windows) if window.start < begins[batches[0].key]]
    before = ((key, load_batches(store, [key])[0].manifest) for key in older)
    opened = opened_before(before, xids, batches[0].manifest)
    # An opened transaction may be another one with the same xid, if an epoch begins with a rewind in between.
    unknown = settle(opened, [(batch.key, batch.manifest) for batch in batches]).unknown
    if missing := {decision.xid for epoch, decision in unknown if Point.at(epoch, decision.position) >= replay[0]}:
        raise MergeError(
            "a snapshot chunk comes after windows that are already merged, and the batches that hold the rows of XA "
            "transactions committed since are no longer stored",
            hint="Take a new snapshot, and keep batches longer than it takes: cdc snapshot {source} {table}",
            table=table,
            xids=", ".join(sorted(missing)),
        )
    batches = [replace(batch, manifest=expand_database_statements(batch.manifest, {table})) for batch in batches]
    return without_quarantined(with_commits(store, batches, opened), quarantined)
