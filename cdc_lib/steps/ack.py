"""Moves a cursor over what is durable; see law 8: an ack counts evidence in the store."""

from __future__ import annotations

from datetime import UTC, datetime

from cdc_lib.errors import BatchNotDurable
from cdc_lib.model.cursor import DRAIN, LAKE, Cursor
from cdc_lib.model.manifest import Manifest
from cdc_lib.model.results import AckResult
from cdc_lib.plan.ack import over_window, used_twice
from cdc_lib.quarantine.tables import Quarantine
from cdc_lib.source import Source
from cdc_lib.store import layout
from cdc_lib.store.manifests import find_manifest, with_stored_chunks


def over_durable(source: Source, cursor: Cursor, *, by: str) -> Cursor:
    """Return the drain cursor after its durable units in flight."""
    moved, now = cursor, datetime.now(UTC)
    counted: list[Manifest] = []
    for window in cursor.in_flight:
        manifest = find_manifest(source.store, layout.manifest_key(window))
        if manifest is None or used_twice(moved, manifest):
            break
        counted.append(manifest)
        moved = over_window(moved, window, manifest, at=now, by=by)
    stored = with_stored_chunks(source.store, cursor.open_snapshots)
    counted += [last for _, lasts in stored for last in lasts]
    moved = moved.with_snapshots(task for task, _ in stored)
    return Quarantine(source).recorded(moved, source.cursor(LAKE), counted, at=now, by=by)


def acknowledge(source: Source, cursor: Cursor, moved: Cursor) -> AckResult:
    """Swap the cursor if it moved, and return how far.

    Raises:
        BatchNotDurable: units are in flight, and nothing of them is durable.
        CursorMoved: another process moved it at the same time.
    """
    waiting = len(moved.in_flight) + len(moved.in_flight_snapshots)
    waiting += len(moved.open_snapshots) if cursor.consumer == DRAIN else 0
    if moved == cursor and waiting:
        what, hint = f"{waiting} units are in flight, and none has written its batch", "drain {} writes them"
        if cursor.consumer == LAKE:
            what, hint = "a merge is in flight, and it has not published its cut", "merge {} merges it"
        raise BatchNotDurable(
            what,
            hint=f"cdc step {hint.format(cursor.source)}; the cursor stays where it is.",
            source=cursor.source,
            consumer=cursor.consumer,
        )
    if moved != cursor:
        source.cursors.swap(cursor, moved)
    return AckResult(
        consumer=cursor.consumer,
        start=cursor.position,
        stop=moved.position,
        windows=len(cursor.in_flight) - len(moved.in_flight),
        chunks=max(0, sum(t.chunks for t in moved.snapshots) - sum(t.chunks for t in cursor.snapshots)),
        waiting=waiting,
        quarantined=moved.quarantine[len(cursor.quarantine) :] if cursor.consumer == DRAIN else (),
    )
