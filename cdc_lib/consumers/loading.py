"""Loads the windows of a batch: manifests, and the location of the rows of their XA COMMITs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cdc_lib.consumers.backlog import Step
from cdc_lib.consumers.batch_slice import BatchSlice
from cdc_lib.errors import BatchesMissing
from cdc_lib.model.cursor import EpochChange
from cdc_lib.model.manifest import Manifest
from cdc_lib.model.stored_window import StoredWindow
from cdc_lib.model.xa import OpenTransaction
from cdc_lib.model.xa_settlement import not_replayed, opened_before, settle
from cdc_lib.ports import ObjectStore
from cdc_lib.store.manifests import load_manifest


def load_part(
    store: ObjectStore,
    step: Step,
    opened: Sequence[OpenTransaction],
    stored: Sequence[StoredWindow],
    passed: Sequence[EpochChange] = (),
) -> tuple[BatchSlice, tuple[OpenTransaction, ...]]:
    """Read a window's manifest and find the rows of the XA transactions that it commits.

    Args:
        store: the object store.
        step: the window.
        opened: XA transactions that are known to be open at its start.
        stored: all stored windows; earlier ones are searched for transactions that are not in ``opened``.
        passed: epoch changes that the consumer has passed: a commit from before one is read again, and its rows, which the
            consumer already had, may be collected since.

    Returns:
        The window, and the transactions that are open after it.

    Raises:
        BatchesMissing: the rows of a committed transaction are in no batch.
    """
    key, floor = step.window.key, step.floor
    manifest = load_manifest(store, key)
    settled = settle(opened, [(key, manifest)])
    xids = {decision.xid for _, decision in settled.unknown}
    if xids:
        older = opened_before(_newest_first(store, stored, step.window), xids, manifest, passed)
        settled = settle([*opened, *older], [(key, manifest)])
        for epoch, decision in not_replayed(settled.unknown, passed):
            raise BatchesMissing(
                f"the XA transaction {decision.xid} is committed, and its rows are in no batch: it was prepared before "
                "the source began",
                hint="Subscribe from a later position (`--start latest`); a snapshot of the lake has its rows.",
                epoch=epoch,
                file=decision.position.file,
                offset=decision.position.offset,
            )
    found = []
    for commit in settled.commits.get(key, ()):
        if floor is None or commit.point >= floor:
            held = manifest if commit.manifest == key else load_manifest(store, commit.manifest)
            found.append((commit, commit.manifest, held))
    return BatchSlice(key, manifest, floor, tuple(found)), settled.open


def _newest_first(
    store: ObjectStore, stored: Sequence[StoredWindow], before: StoredWindow
) -> Iterator[tuple[str, Manifest]]:
    for window in sorted(stored, key=lambda one: one.start, reverse=True):
        if window.start < before.start:
            yield window.key, load_manifest(store, window.key)
