"""The marker in the snapshots of an Iceberg table."""

from __future__ import annotations

from typing import Any

from cdc_lib.errors import MergeError
from cdc_lib.model.lake import MARKER_PROPERTY, Marker


def marker_of(table: Any, source_table: str) -> Marker:
    """Return the marker of the last commit that has one; an empty one for a table that was never merged.

    Compaction and other maintenance commit without it, so the way goes back from snapshot to snapshot.

    Raises:
        MergeError: the snapshots that could have it are expired.
    """
    snapshot = table.currentSnapshot()
    while snapshot is not None:
        text = snapshot.summary().get(MARKER_PROPERTY)
        if text is not None:
            return Marker.from_json(text, source_table)
        parent = snapshot.parentId()
        if parent is None:
            return Marker()
        snapshot = table.snapshot(parent)
        if snapshot is None:
            break
    if table.currentSnapshot() is None:
        return Marker()
    raise MergeError(
        f"no snapshot of the lake table has the property {MARKER_PROPERTY}, and older ones are expired: it cannot be told "
        "which batches the table holds",
        hint="Keep the last snapshot that a merge wrote when expiring snapshots. Drop the lake table and take a new "
        "snapshot of this table.",
        table=source_table,
    )
