"""The windows that were merged without a table, for the merge that brings its snapshot."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from cdc_lib.errors import MergeError
from cdc_lib.merge.chunks import low_of
from cdc_lib.merge.manifests import is_of_its_epoch, load_batches, with_commits
from cdc_lib.merge.plan import StoredBatch
from cdc_lib.merge.table_resets import expand_database_statements
from cdc_lib.model.cursor import DRAIN, EpochChange
from cdc_lib.model.manifest import Manifest
from cdc_lib.model.merge_plan import MergePlan
from cdc_lib.model.position import Point
from cdc_lib.model.stored_window import StoredWindow
from cdc_lib.model.table_name import TableName
from cdc_lib.model.xa import OpenTransaction
from cdc_lib.model.xa_settlement import not_replayed, opened_before, settle
from cdc_lib.ports import ObjectStore
from cdc_lib.store.cursors import ObjectCursorStore
from cdc_lib.store.windows import chained, known_windows

_HINT = "Take a new snapshot of these tables (cdc snapshot): it needs no batches of earlier changes."


def caught_up(store: ObjectStore, plan: MergePlan, chunks: Sequence[StoredBatch]) -> list[StoredBatch]:
    """Read the windows before a plan that tables lack, in the stream's order; each holds only the tables that lack it.

    Args:
        store: holds the batches.
        plan: of the merge.
        chunks: that it brings.

    Raises:
        CorruptBatch: a manifest is missing or not valid.
        MergeError: a batch is no longer stored.
    """
    first, end = min(one.point for one in plan.catching_up), Point.at(plan.epoch, plan.start)
    drain = ObjectCursorStore(store).load(plan.source, DRAIN)
    stored = known_windows(store, plan.source, drain, first)
    chain = chained([one for one in stored if one.start.epoch == plan.epoch], first, end)
    if chain.gap is not None:
        raise MergeError(
            "tables whose snapshots are complete lack changes that were merged meanwhile, and a batch of them is no longer stored",
            hint=_HINT,
            source=plan.source,
            tables=", ".join(one.table for one in plan.catching_up),
            start=str(tuple(chain.gap[0])),
            stop=str(tuple(chain.gap[1])),
        )
    batches = load_batches(store, [window.key for window in chain.windows])
    if not batches:
        return []
    earlier = (one for one in reversed(stored) if one.start < first and (drain is None or is_of_its_epoch(one, drain)))
    changes = drain.epoch_changes if drain is not None else ()
    found = with_commits(store, batches, _opened(store, plan, earlier, batches, _first_read(plan, chunks), changes))
    return [
        _of(batch, {one.table for one in plan.catching_up if one.point < window.stop})
        for batch, window in zip(found, chain.windows, strict=True)
    ]


def _first_read(plan: MergePlan, chunks: Sequence[StoredBatch]) -> Point:
    """Return the point after which the rows of the snapshots were read: they hold earlier transactions in any case."""
    tables = {one.table for one in plan.catching_up}
    found = [batch.manifest for batch in chunks if batch.manifest.chunk and batch.manifest.chunk.table in tables]
    lacking = tables - {one.chunk.table for one in found if one.chunk is not None}
    places = [one.point for one in plan.catching_up if one.table in lacking]
    return min([*places, *(low_of(one) for one in found)])


def _opened(
    store: ObjectStore,
    plan: MergePlan,
    earlier: Iterable[StoredWindow],
    batches: Sequence[StoredBatch],
    read: Point,
    changes: Sequence[EpochChange],
) -> tuple[OpenTransaction, ...]:
    """Return the XA transactions that were prepared before the windows and are committed in them.

    Raises:
        MergeError: the rows of one that a snapshot may lack are in no batch.
    """
    windows = [(batch.key, batch.manifest) for batch in batches]
    unknown = not_replayed(settle((), windows).unknown, changes)
    manifests = ((window.key, _manifest(store, window.key)) for window in earlier)
    opened = opened_before(manifests, {decision.xid for _, decision in unknown}, batches[0].manifest, changes)
    unknown = not_replayed(settle(opened, windows).unknown, changes)
    if missing := {one.xid for epoch, one in unknown if Point.at(epoch, one.position) >= read}:
        raise MergeError(
            "tables whose snapshots are complete lack changes that were merged meanwhile, and the batches with the rows of XA "
            "transactions are no longer stored",
            hint=_HINT,
            source=plan.source,
            xids=", ".join(sorted(missing)),
        )
    return opened


def _manifest(store: ObjectStore, key: str) -> Manifest:
    return load_batches(store, [key])[0].manifest


def _of(batch: StoredBatch, tables: Collection[TableName]) -> StoredBatch:
    """Return a batch with nothing but the changes of some tables."""
    manifest = expand_database_statements(batch.manifest, tables)
    files = tuple(file for file in manifest.files if file.table in tables)
    statements = tuple(one for one in manifest.statements if one.table in tables)
    commits = tuple(
        (replace(commit, prepared=replace(commit.prepared, tables=mine)), held)
        for commit, held in batch.commits
        if (mine := tuple(table for table in commit.prepared.tables if table in tables))
    )
    return replace(batch, manifest=replace(manifest, files=files, statements=statements), commits=commits)
