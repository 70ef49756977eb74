"""The markers in the snapshots of an Iceberg table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cdc_lib.errors import MergeError
from cdc_lib.model.lake_table import MARKER_PROPERTY, Marker, marker_property
from cdc_lib.model.publication import PUBLISHED_PROPERTY, why_unpublished
from cdc_lib.model.table_name import TableName
from spark_jobs.iceberg.row_delta import rows_of
from spark_jobs.iceberg.table_metadata import TableMetadata

Owner = tuple[str | None, str | None]
"""Source and ``database.table`` for which a lake table was created."""


def markers_of(
    table: TableMetadata, source: str, tables: Mapping[TableName, bool], owner: Owner
) -> tuple[dict[TableName, Marker], dict[str, str], dict[str, int], str]:
    """Return the newest marker of each source table, other tables' markers as text, and the commits' sequence numbers.

    The last value says why newer markers do not count; empty without such. Compaction and other maintenance commits have no markers, so snapshots are searched backwards.

    Args:
        table: the lake table's metadata.
        source: name of the source.
        tables: ``database.table`` at the source, and whether each is routed.
        owner: the source table for which the lake table was created: a marker without a name belongs to it.

    Raises:
        MergeError: no stored snapshot has a marker, and older ones are expired.
    """
    texts: dict[str, str] = {}
    sequences: dict[str, int] = {}
    carried: dict[str, str] | None = None
    unpublished = ""
    for marks, sequence, why in _marked(table, next(iter(tables))):
        if why:
            unpublished = unpublished or why
            continue
        properties = {name: _names(source, name, routed, owner) for name, routed in tables.items()}
        for name in tables.keys() - texts.keys():
            if text := next((marks[key] for key in properties[name] if key in marks), None):
                texts[name], sequences[name] = text, sequence
        if carried is None:
            known = {key for keys in properties.values() for key in keys}
            carried = {key: text for key, text in marks.items() if key not in known}
        if len(texts) == len(tables) or not carried:
            # Each commit repeats other tables' markers, so without any there is no other writer further back.
            break
    markers = {name: Marker.from_json(texts[name], name) if name in texts else Marker() for name in tables}
    return markers, carried or {}, sequences, unpublished


def _names(source: str, table: str, routed: bool, owner: Owner) -> list[str]:
    """Return the properties that may hold a table's marker, the current one first."""
    named = marker_property(source, table, routed=True)
    if not routed:
        return [MARKER_PROPERTY, named]
    return [named, MARKER_PROPERTY] if owner == (source, table) else [named]


def _marked(table: TableMetadata, source_table: str) -> Iterator[tuple[dict[str, str], int, str]]:
    """Yield the markers and the sequence number of each snapshot with markers, and why they do not count, from the current one back.

    Raises:
        MergeError: an expired snapshot is reached before one with a marker.
    """
    any_marked, oldest = table.current is None, None
    for snapshot in table.line():
        marks = {name: text for name, text in snapshot.summary.items() if name.startswith(MARKER_PROPERTY)}
        if marks:
            any_marked = True
            published = snapshot.summary.get(PUBLISHED_PROPERTY)
            yield marks, snapshot.sequence, why_unpublished(marks.values(), published, rows_of(snapshot.summary))
        oldest = snapshot
    if any_marked or oldest is None or oldest.parent is None:
        return
    raise MergeError(
        f"no snapshot of the lake table has the property {MARKER_PROPERTY}, and older ones are expired: it is not known "
        "which batches the table holds",
        hint="Keep the last snapshot that a merge wrote when expiring snapshots. Else begin with a new table: "
        f"cdc lake drop {{source}} {source_table}, then cdc snapshot {{source}} {source_table}",
        table=source_table,
    )
