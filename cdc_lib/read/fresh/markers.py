"""The marker of a source table in the snapshots of a lake table, read without Spark."""

from __future__ import annotations

from pyiceberg.table.metadata import TableMetadata

from cdc_lib.errors import StoreError
from cdc_lib.model.lake_table import (
    MARKER_PROPERTY,
    SOURCE_PROPERTY,
    TABLE_PROPERTY,
    Marker,
    marker_property,
)
from cdc_lib.model.table_name import TableName


def marker_of(
    metadata: TableMetadata, source: str, table: TableName, *, routed: bool, snapshot_id: int | None = None
) -> Marker:
    """Return the newest marker of a source table; an empty one if it has no rows in the lake table.

    Maintenance commits have none, so snapshots are searched backwards.

    Args:
        metadata: of the lake table.
        source: name of the source.
        table: ``database.table`` at the source.
        routed: whether a route sends it there.
        snapshot_id: where the search begins; None for the current snapshot.

    Raises:
        StoreError: an expired snapshot comes before one with a marker.
        MergeError: the marker cannot be parsed.
    """
    named = marker_property(source, table, routed=True)
    owner = (metadata.properties.get(SOURCE_PROPERTY), metadata.properties.get(TABLE_PROPERTY))
    properties = [named, MARKER_PROPERTY] if not routed or owner == (source, table) else [named]
    snapshot = metadata.current_snapshot() if snapshot_id is None else metadata.snapshot_by_id(snapshot_id)
    any_marked = False
    while snapshot is not None:
        summary = snapshot.summary.additional_properties if snapshot.summary is not None else {}
        for name in properties:
            if name in summary:
                return Marker.from_json(summary[name], table)
        any_marked = any_marked or any(name.startswith(MARKER_PROPERTY) for name in summary)
        parent = snapshot.parent_snapshot_id
        snapshot = metadata.snapshot_by_id(parent) if parent is not None else None
        if snapshot is None and parent is not None and not any_marked:
            raise StoreError(
                "no snapshot of the lake table says how far it is merged, and older ones are expired",
                hint="Read it without the waiting batches, or after the next merge.",
                table=table,
            )
    return Marker()
