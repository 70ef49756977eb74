"""Reads the batches of a plan: their manifests, and the XA transactions that their windows commit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from cdc_lib.errors import CorruptBatch, MergeError
from cdc_lib.merge.plan import StoredBatch, replayed_windows, tables_of
from cdc_lib.merge.quarantined import without_quarantined
from cdc_lib.merge.table_resets import expand_database_statements, is_of_database
from cdc_lib.model.cursor import Cursor
from cdc_lib.model.merge_plan import MergePlan
from cdc_lib.model.position import Point
from cdc_lib.model.quarantine import QuarantineRecord
from cdc_lib.model.stored_window import StoredWindow
from cdc_lib.model.table_name import TableName
from cdc_lib.model.xa import OpenTransaction
from cdc_lib.model.xa_settlement import opened_before, settle
from cdc_lib.ports import ObjectStore
from cdc_lib.store.cuts import last_cut
from cdc_lib.store.manifests import find_manifest
from cdc_lib.store.windows import stored_windows


def load_plan(store: ObjectStore, plan: MergePlan) -> list[StoredBatch]:
    """Read the batches of a plan, with the XA transactions that they commit, without quarantined tables.

    Raises:
        CorruptBatch: a manifest is missing or not valid.
    """
    batches = _with_commits(store, load_batches(store, plan.batches), plan.prepared)
    return without_quarantined(_with_each_table(store, plan.source, batches), plan.quarantine)


def _with_each_table(store: ObjectStore, source: str, batches: list[StoredBatch]) -> list[StoredBatch]:
    """Expand statements on a whole database to its tables."""
    if not any(is_of_database(one) for batch in batches for one in batch.manifest.statements):
        return batches
    before = last_cut(store, source)
    known = {*tables_of(batches), *(cut.table for cut in (before.tables if before is not None else ()))}
    return [replace(batch, manifest=expand_database_statements(batch.manifest, known)) for batch in batches]


def load_batches(store: ObjectStore, keys: Iterable[str]) -> list[StoredBatch]:
    """Read the manifests of keys, in the given order.

    Raises:
        CorruptBatch: a manifest is missing or not valid.
    """
    batches = []
    for key in keys:
        manifest = find_manifest(store, key)
        if manifest is None:
            raise CorruptBatch(
                "a batch that the merge needs has no manifest",
                hint=_restore_hint(key),
                key=key,
            )
        batches.append(StoredBatch(key, manifest))
    return batches


def _restore_hint(key: str) -> str:
    """Return how to restore a batch: a window is drained again, a snapshot is read again."""
    source, kind, *_ = key.split("/")
    if kind == "batches":
        return f"cdc batches refill {source} writes it again in place; or restore the object from the store's versions."
    return f"cdc snapshot {source} of its table reads it again; or restore the object from the store's versions."


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
    windows = [window for window in stored_windows(store, source) if drain is None or _counts(window, drain)]
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
            hint="Take a new snapshot of this table, and keep batches longer than a snapshot takes.",
            table=table,
            xids=", ".join(sorted(missing)),
        )
    batches = [replace(batch, manifest=expand_database_statements(batch.manifest, {table})) for batch in batches]
    return without_quarantined(_with_commits(store, batches, opened), quarantined)


def _counts(window: StoredWindow, drain: Cursor) -> bool:
    end = drain.end_of_epoch(window.start.epoch)
    return end is not None and window.stop <= Point.at(window.start.epoch, end)


def _with_commits(
    store: ObjectStore, batches: Sequence[StoredBatch], before: Sequence[OpenTransaction]
) -> list[StoredBatch]:
    """Add to each batch the transactions that its window commits, and the batches that hold their rows."""
    windows = [(batch.key, batch.manifest) for batch in batches if batch.manifest.window is not None]
    commits = settle(before, windows).commits
    known = {batch.key: batch for batch in batches}
    missing = {commit.manifest for found in commits.values() for commit in found} - known.keys()
    known |= {batch.key: batch for batch in load_batches(store, sorted(missing))}
    return [
        replace(batch, commits=tuple((commit, known[commit.manifest]) for commit in commits.get(batch.key, ())))
        for batch in batches
    ]
