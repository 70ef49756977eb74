"""What a backfill would merge, as far as the store alone shows it: the lake is not read.

The lake table's primary key and its newest whole snapshot are taken from the lake cursor and the stored chunks. A lake table that
somebody dropped or changed since is not seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cdc_lib.backfill.archive import Backfilling
from cdc_lib.backfill.decide import BackfillDecision
from cdc_lib.backfill.other_key import Key, Keys, left_out_windows, refusal
from cdc_lib.lake.routing import RoutedTable, lake_merges
from cdc_lib.merge.chunks import chunk_of
from cdc_lib.merge.plan import Batch, tables_of
from cdc_lib.merge.renames import renamed_schemas, renames_of
from cdc_lib.model.backfill import Backfill, BackfillPreview, BackfillRequest, LeftOutWindows, RefusedTable
from cdc_lib.model.lake_table import Marker, SnapshotMark
from cdc_lib.model.route import routed_schema


def preview(backfilling: Backfilling, request: BackfillRequest) -> BackfillPreview:
    """Return what would be merged, what would be left out, and which tables would be refused for their primary key.

    Raises:
        BatchesMissing: a part of the period is no longer stored.
        ConfigError: a pattern is not valid, or names a table that is not captured.
    """
    found = backfilling.found(request.period)
    if found is None:
        return BackfillPreview(str(request.period), 0, 0, ())
    asked = backfilling.batches(backfilling.plan(found, found.begin, found.end))
    tables = backfilling.chosen_tables(tables_of(asked), list(request.tables))
    end = found.end if request.into == "copy" else max(found.end, found.lake)
    merged = backfilling.batches(backfilling.plan(found, found.begin, end))
    shares = [share for lake in lake_merges(backfilling.config, tables) for share in lake.shares]
    by_key = [one for share in shares for one in _of_other_keys(backfilling, found, request, share, merged)]
    return BackfillPreview(
        str(request.period),
        found.chosen,
        len(found.snapshots),
        tuple(tables),
        tuple(dict.fromkeys(one for one in by_key if isinstance(one, LeftOutWindows))),
        tuple(dict.fromkeys(one for one in by_key if isinstance(one, RefusedTable))),
    )


def _of_other_keys(
    backfilling: Backfilling, found: Backfill, request: BackfillRequest, share: RoutedTable, batches: Sequence[Batch]
) -> Iterator[LeftOutWindows | RefusedTable]:
    """Yield what becomes of a table's windows whose rows have another primary key; nothing where all have one."""
    is_copy = request.into == "copy"
    keys_of = _keys_of(share, batches)
    marker, key = (Marker(), None) if is_copy else _as_merged(backfilling, found, share, keys_of)
    end = found.end if is_copy else found.lake
    decide = BackfillDecision(
        found.begin, end, (found.begin, max(found.end, end)), is_copy=is_copy, from_start=found.from_start
    )
    sorted_out = decide.under_one_key(batches, share.table, marker, key, keys_of)
    if sorted_out.others:
        since = backfilling.one_key_since(share.table, batches, decide, keys_of)
        error = refusal(share.table, sorted_out, backfilling.config.source, request, since)
        yield RefusedTable(share.table, error.message, error.hint)
    elif sorted_out.windows:
        yield left_out_windows(share.table, sorted_out)


def _as_merged(
    backfilling: Backfilling, found: Backfill, share: RoutedTable, keys_of: Keys
) -> tuple[Marker, Key | None]:
    """Return the marker that a live lake table has where the lake cursor is, and its primary key; None where that is unknown."""
    marker, last = Marker(merged_to=found.lake), backfilling.last_snapshot(share.table)
    if last is None:
        return marker, None
    first = backfilling.first_chunk(last)
    name = chunk_of(first.manifest).snapshot_id
    mark = SnapshotMark(name, len(last.keys), True, last.low, last.low, last.read_to)
    return marker.with_snapshot(mark), next(iter(sorted(keys_of(first))), None)


def _keys_of(share: RoutedTable, batches: Sequence[Batch]) -> Keys:
    renames = renames_of(share.table, batches)

    def keys_of(batch: Batch) -> frozenset[Key]:
        schemas = renamed_schemas(share.table, [batch], renames)
        keys = (routed_schema(schema, share.target).primary_key for schema in schemas)
        return frozenset(tuple(name.lower() for name in key) for key in keys)

    return keys_of
