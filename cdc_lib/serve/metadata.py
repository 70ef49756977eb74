"""The metadata of an Iceberg table as of one of its snapshots: pure."""

from __future__ import annotations

from typing import Any

from cdc_lib.read.pin import expired


def as_of(metadata: dict[str, Any], snapshot_id: int, table: str) -> dict[str, Any]:
    """Return the metadata with one snapshot, which is the current one; its schema is the one that it was written with.

    Args:
        metadata: a table's metadata document, as the Iceberg specification has it. It is not changed.
        snapshot_id: the snapshot.
        table: name of the table, for errors.

    Raises:
        StoreError: the snapshot was expired.
    """
    snapshot = next((one for one in metadata.get("snapshots", ()) if one["snapshot-id"] == snapshot_id), None)
    if snapshot is None:
        raise expired(snapshot_id, table)
    only: dict[str, Any] = {
        "current-snapshot-id": snapshot_id,
        "snapshots": [snapshot],
        "refs": {"main": {"snapshot-id": snapshot_id, "type": "branch"}},
        "snapshot-log": [{"snapshot-id": snapshot_id, "timestamp-ms": snapshot["timestamp-ms"]}],
        "metadata-log": [],
        "current-schema-id": snapshot.get("schema-id", metadata["current-schema-id"]),
    }
    of_snapshot: dict[str, Any] = {
        name: [one for one in metadata[name] if one["snapshot-id"] == snapshot_id]
        for name in ("statistics", "partition-statistics")
        if name in metadata
    }
    return {**metadata, **only, **of_snapshot}
