"""Preview of a backfill from the store alone: the lake is not read.

The lake table's primary key and its newest complete snapshot are taken from the lake cursor and the stored chunks. A lake
table that was dropped or changed by others is not noticed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cdc_lib.backfill.archive import BackfillArchive
from cdc_lib.backfill.decide import BackfillDecision
from cdc_lib.backfill.other_key import Key, Keys, left_out_windows, refusal
from cdc_lib.lake.routing import RoutedTable, lake_merges
from cdc_lib.merge.plan import StoredBatch, tables_of
from cdc_lib.merge.renames import renamed_schemas, renames_of
from cdc_lib.model.backfill import Backfill, BackfillPreview, BackfillRequest, LeftOutWindows, RefusedTable
from cdc_lib.model.lake_table import Marker, SnapshotMark
from cdc_lib.model.manifest import chunk_of
from cdc_lib.model.route import routed_schema


def preview(archive: BackfillArchive, request: BackfillRequest) -> BackfillPreview:
    """Return what would be merged or left out, and which tables would be refused because of their primary key.

    Raises:
        BatchesMissing: a part of the period is no longer stored.
        ConfigError: a pattern is not valid, or names a table that is not captured.
    """
    found = archive.found(request.period)
    if found is None:
        return BackfillPreview(str(request.period), 0, 0, ())
    requested = archive.batches(archive.plan(found, found.begin, found.end))
    tables = archive.chosen_tables(tables_of(requested), list(request.tables))
    tables = tables if request.into == "copy" else found.of_lake(tables)
    end = found.end if request.into == "copy" else max(found.end, found.lake)
    merged = archive.batches(archive.plan(found, found.begin, end))
    routed_tables = [routed for lake in lake_merges(archive.source.config, tables) for routed in lake.routed_tables]
    by_key = [one for routed in routed_tables for one in _of_other_keys(archive, found, request, routed, merged)]
    return BackfillPreview(
        str(request.period),
        found.chosen,
        len(found.snapshots),
        tuple(tables),
        tuple(dict.fromkeys(one for one in by_key if isinstance(one, LeftOutWindows))),
        tuple(dict.fromkeys(one for one in by_key if isinstance(one, RefusedTable))),
    )


def _of_other_keys(
    archive: BackfillArchive,
    found: Backfill,
    request: BackfillRequest,
    routed: RoutedTable,
    batches: Sequence[StoredBatch],
) -> Iterator[LeftOutWindows | RefusedTable]:
    """Yield how windows of a table with another primary key are handled; nothing if all have one key."""
    is_copy = request.into == "copy"
    keys_of = _keys_of(routed, batches)
    marker, key = (Marker(), None) if is_copy else _as_merged(archive, found, routed, keys_of)
    end = found.end if is_copy else found.lake
    decide = BackfillDecision(
        found.begin, end, (found.begin, max(found.end, end)), is_copy=is_copy, from_start=found.from_start
    )
    sorted_out = decide.under_one_key(batches, routed.table, marker, key, keys_of)
    if sorted_out.others and not is_copy and archive.is_dropped(routed.table):
        return
    if sorted_out.others:
        since = archive.one_key_since(routed.table, batches, decide, keys_of)
        error = refusal(routed.table, sorted_out, archive.source.name, request, since)
        yield RefusedTable(routed.table, error.message, error.hint)
    elif sorted_out.windows:
        yield left_out_windows(routed.table, sorted_out)


def _as_merged(
    archive: BackfillArchive, found: Backfill, routed: RoutedTable, keys_of: Keys
) -> tuple[Marker, Key | None]:
    """Return the marker of the live lake table at the lake cursor, and its primary key; None if the key is unknown."""
    marker, last = Marker(merged_to=found.lake), archive.last_snapshot(routed.table)
    if last is None:
        return marker, None
    first = archive.first_chunk(last)
    name = chunk_of(first.manifest).snapshot_id
    mark = SnapshotMark(name, len(last.keys), True, last.low, last.low, last.read_to)
    return marker.with_snapshot(mark), next(iter(sorted(keys_of(first))), None)


def _keys_of(routed: RoutedTable, batches: Sequence[StoredBatch]) -> Keys:
    renames = renames_of(routed.table, batches)

    def keys_of(batch: StoredBatch) -> frozenset[Key]:
        schemas = renamed_schemas(routed.table, [batch], renames)
        keys = (routed_schema(schema, routed.target).primary_key for schema in schemas)
        return frozenset(tuple(name.lower() for name in key) for key in keys)

    return keys_of
