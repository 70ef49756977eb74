"""Stores the manifests of batches: each is written once, and makes its batch complete."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from cdc_lib.errors import BatchesMissing, BatchMismatch
from cdc_lib.model.manifest import Manifest
from cdc_lib.model.position import Position
from cdc_lib.model.window import DrainUnit, SnapshotTask
from cdc_lib.ports import ObjectStore
from cdc_lib.store import documents, layout

_FEW = 20
"""Up to so many snapshots, chunks that a listing lacks are looked for by their keys."""


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
    """Return the manifests of a snapshot's chunks, in order, of each range up to the first that is missing."""
    found: list[Manifest] = []
    for part in task.parts:
        numbers = count()
        while (manifest := find_manifest(store, layout.chunk_manifest_key(part, next(numbers)))) is not None:
            found.append(manifest)
    return found


def last_chunk_of(store: ObjectStore, unit: SnapshotTask) -> tuple[int, Manifest | None]:
    """Return how many chunks of a unit are stored, up to the first missing one, and the manifest of the last of them."""
    prefix = layout.range_prefix(unit)
    found = (layout.chunk_of(info.key) for info in store.list(prefix))
    chunks = _looked_for(store, unit, _unbroken({number for one, number in filter(None, found) if one == prefix}))
    return chunks, find_manifest(store, layout.chunk_manifest_key(unit, chunks - 1)) if chunks else None


def first_chunks_of(store: ObjectStore, task: SnapshotTask) -> list[Manifest]:
    """Return the stored first chunks of a snapshot, one for each range that has one, in the order in which they were read."""
    found = (find_manifest(store, layout.chunk_manifest_key(part, 0)) for part in task.parts)
    chunks = [(one.chunk.low_watermark, one) for one in found if one is not None and one.chunk is not None]
    return [one for _, one in sorted(chunks, key=lambda pair: pair[0])]


def first_read_of(store: ObjectStore, task: SnapshotTask) -> Manifest | None:
    """Return the chunk of a snapshot that was read first; None unless the first chunk of each range is stored."""
    found = first_chunks_of(store, task)
    return found[0] if found and len(found) == len(task.parts) else None


def read_to_of(store: ObjectStore, task: SnapshotTask) -> Position | None:
    """Return the position after which no change is in the rows of a complete snapshot; None if a last chunk is not stored."""
    lasts = [find_manifest(store, layout.chunk_manifest_key(part, last)) for part, last in _last_numbers(task)]
    reads = [one.chunk.read_to for one in lasts if one is not None and one.chunk is not None]
    return max(reads) if len(reads) == len(lasts) else None


def manifests_of(store: ObjectStore, unit: DrainUnit) -> list[Manifest]:
    """Return the manifests of a unit's batches that are stored, in order; none before the first is drained."""
    if isinstance(unit, SnapshotTask):
        return chunks_of(store, unit)
    found = find_manifest(store, layout.manifest_key(unit))
    return [found] if found is not None else []


def count_chunks(store: ObjectStore, units: Sequence[SnapshotTask]) -> list[tuple[SnapshotTask, int]]:
    """Return how many chunks of each unit are stored, up to the first missing one; no more than the next manifest is read.

    The store is listed once per snapshot id, for all of its tables.
    """
    numbers = _numbers(store, units)
    found = [(unit, _unbroken(numbers.get(layout.range_prefix(unit), set()))) for unit in units]
    # Some gateways list new objects late. Of many units the next call counts what this one does not see.
    return [(unit, _looked_for(store, unit, chunks)) for unit, chunks in found] if len(found) <= _FEW else found


def _looked_for(store: ObjectStore, unit: SnapshotTask, chunks: int) -> int:
    """Return the number of stored chunks of which a listing has shown the first ones."""
    while store.get(layout.chunk_manifest_key(unit, chunks)) is not None:
        chunks += 1
    return chunks


def without_last_chunk(store: ObjectStore, tasks: Sequence[SnapshotTask]) -> list[SnapshotTask]:
    """Return the complete snapshots of which a last chunk is not stored; no manifest is read.

    The store is listed once per snapshot id, for all of its tables.
    """
    numbers = _numbers(store, tasks)
    return [
        task
        for task in tasks
        if any(last not in numbers.get(layout.range_prefix(part), ()) for part, last in _last_numbers(task))
    ]


def _numbers(store: ObjectStore, tasks: Sequence[SnapshotTask]) -> dict[str, set[int]]:
    """Return the numbers of the stored chunks of all snapshots with the ids of these, by the prefixes of their units."""
    numbers: dict[str, set[int]] = {}
    for prefix in sorted({layout.snapshot_prefix(task) for task in tasks}):
        for info in store.list(prefix):
            if (found := layout.chunk_of(info.key)) is not None:
                numbers.setdefault(found[0], set()).add(found[1])
    return numbers


def _last_numbers(task: SnapshotTask) -> list[tuple[SnapshotTask, int]]:
    """Return the parts of a complete snapshot, each with the number of its last chunk."""
    ends = ((part, part.range.chunks if part.range is not None else task.chunks) for part in task.parts)
    return [(part, max(end - 1, 0)) for part, end in ends]


def with_stored_chunks(store: ObjectStore, tasks: Sequence[SnapshotTask]) -> list[tuple[SnapshotTask, list[Manifest]]]:
    """Return snapshots after all of their stored chunks, each with the last stored chunk of each of its parts."""
    counted = iter(count_chunks(store, [part for task in tasks for part in task.parts]))
    found = []
    for task in tasks:
        parts = [next(counted) for _ in task.parts]
        lasts = [
            find_manifest(store, layout.chunk_manifest_key(part, chunks - 1)) if chunks else None
            for part, chunks in parts
        ]
        ended = [last is not None and last.chunk is not None and last.chunk.last for last in lasts]
        states = [(chunks, end) for (_, chunks), end in zip(parts, ended, strict=True)]
        found.append((task.acknowledged(states), [one for one in lasts if one is not None]))
    return found


def _unbroken(numbers: set[int]) -> int:
    """Return how many numbers there are from 0 on without a gap."""
    return next(number for number in range(len(numbers) + 1) if number not in numbers)
