"""Stores the manifests of batches: each is written once, and makes its batch complete."""

from __future__ import annotations

from collections.abc import Sequence

from cdc_lib.errors import BatchesMissing, BatchMismatch
from cdc_lib.model.manifest import Manifest
from cdc_lib.model.window import DrainUnit, SnapshotTask
from cdc_lib.ports import ObjectStore
from cdc_lib.store import documents, layout


def find_manifest(store: ObjectStore, key: str) -> Manifest | None:
    """Return a manifest, or None when the batch does not exist.

    Raises:
        CorruptBatch: it is no manifest.
    """
    return documents.find(Manifest, store, key)


def load_manifest(store: ObjectStore, key: str) -> Manifest:
    """Return a manifest that must exist.

    Raises:
        BatchesMissing: it was removed.
        CorruptBatch: it is no manifest.
    """
    found = find_manifest(store, key)
    if found is None:
        raise BatchesMissing("a batch was removed while it was read", hint="Look again: `cdc consumers list`.", key=key)
    return found


def publish_manifest(store: ObjectStore, key: str, manifest: Manifest) -> Manifest:
    """Write a manifest if the key is free; return the stored one, which another task may have written.

    Raises:
        BatchMismatch: it was removed at the same time.
    """
    if store.put_if_absent(key, documents.dump(manifest)):
        return manifest
    stored = find_manifest(store, key)
    if stored is None:
        raise BatchMismatch("a manifest was removed right after it was found", hint="Drain the unit again.", key=key)
    return stored


def chunks_of(store: ObjectStore, task: SnapshotTask) -> list[Manifest]:
    """Return the manifests of a snapshot's chunks, in order, up to the first that is missing."""
    found: list[Manifest] = []
    while (manifest := find_manifest(store, layout.chunk_manifest_key(task, len(found)))) is not None:
        found.append(manifest)
    return found


def last_chunk_of(store: ObjectStore, task: SnapshotTask) -> tuple[int, Manifest | None]:
    """Return how many chunks of a snapshot are stored, up to the first missing one, and the manifest of the last of them."""
    found = (layout.chunk_of(info.key) for info in store.list(layout.chunks_prefix(task)))
    count = _unbroken({number for _, number in filter(None, found)})
    return count, find_manifest(store, layout.chunk_manifest_key(task, count - 1)) if count else None


def manifests_of(store: ObjectStore, unit: DrainUnit) -> list[Manifest]:
    """Return the manifests of a unit's batches that are stored, in order; none before the first is drained."""
    if isinstance(unit, SnapshotTask):
        return chunks_of(store, unit)
    found = find_manifest(store, layout.manifest_key(unit))
    return [found] if found is not None else []


def count_chunks(store: ObjectStore, tasks: Sequence[SnapshotTask]) -> list[tuple[SnapshotTask, int]]:
    """Return how many chunks of each snapshot are stored, up to the first missing one; no manifest is read.

    The store is listed once per snapshot id, for all of its tables.
    """
    numbers: dict[str, set[int]] = {}
    for prefix in sorted({layout.snapshot_prefix(task) for task in tasks}):
        for info in store.list(prefix):
            if (found := layout.chunk_of(info.key)) is not None:
                numbers.setdefault(found[0], set()).add(found[1])
    return [(task, _unbroken(numbers.get(layout.chunks_prefix(task), set()))) for task in tasks]


def _unbroken(numbers: set[int]) -> int:
    """Return how many numbers there are from 0 on without a gap."""
    return next(number for number in range(len(numbers) + 1) if number not in numbers)
