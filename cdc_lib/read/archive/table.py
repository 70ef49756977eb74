"""The archived versions of one lake table's rows, as of one snapshot of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa
from pyiceberg.table import Table

from cdc_lib.apply.key_rows import RowKey
from cdc_lib.apply.rows import order_of
from cdc_lib.config import SourceConfig
from cdc_lib.lake.routing import lake_merges
from cdc_lib.model.cursor import DRAIN, LAKE, Cursor, EpochChange
from cdc_lib.model.lake_table import COMPUTED_PROPERTY, computed_from
from cdc_lib.model.manifest import TS, Manifest
from cdc_lib.model.merge_plan import Cut
from cdc_lib.model.position import Point
from cdc_lib.model.table_mode import IS_DELETED
from cdc_lib.model.table_name import TableName
from cdc_lib.ports import ObjectStore
from cdc_lib.read.archive.chunks import SnapshotChunks, deleted_by, merged_snapshots, reads_of
from cdc_lib.read.archive.decide import refuse_before, refuse_table, refuse_without_zone
from cdc_lib.read.archive.manifests import TableManifests
from cdc_lib.read.archive.reach import Floor, Reach, WindowSlice, reach_of, tail
from cdc_lib.read.archive.reads import ChunkRow, with_reads
from cdc_lib.read.archive.rows import ArchivedRows, KeyChanges, VersionShape
from cdc_lib.read.archive.segments import Segment
from cdc_lib.read.archive.versions import (
    ArchivedVersions,
    compared,
    last_with_row,
    with_delete,
    with_lake_row,
    with_resets,
)
from cdc_lib.read.fresh.markers import marker_of
from cdc_lib.read.kept_versions import CHANGED, within
from cdc_lib.read.keys import NoSuchKey
from cdc_lib.read.lookup import find
from cdc_lib.read.pin import expired
from cdc_lib.read.snapshot import PinnedSnapshot
from cdc_lib.store.cursors import ObjectCursorStore, required_cursor
from cdc_lib.store.windows import stored_windows

_NOTHING = Point(0, 0, 0)


@dataclass(frozen=True, slots=True)
class TableArchive:
    """What the stored batches know of one lake table; it never changes.

    Args:
        snapshot: of the lake table.
        shape: of versions.
        archived: reads files of batches.
        reach: what the batches know.
        segments: files with rows, newest first.
        snapshots: whose rows are versions too, newest first.
        complete_since: commit time from which on no change is missing; None if none is known.
    """

    snapshot: PinnedSnapshot
    shape: VersionShape
    archived: ArchivedRows
    reach: Reach
    segments: tuple[Segment, ...]
    snapshots: tuple[SnapshotChunks, ...]
    complete_since: datetime | None

    def versions(
        self,
        key: Any,
        limit: int | None,
        columns: Iterable[str] | None,
        since: datetime | None,
        until: datetime | None,
    ) -> ArchivedVersions:
        """Return versions of a row; see :meth:`cdc_lib.read.table.TableReader.archived_versions`."""
        refuse_without_zone(since, until)
        if since is not None:
            refuse_before(since, self.complete_since, self.reach.floor, self.snapshot.name)
        chosen = [one.name for one in self.snapshot.columns.choose(columns) if one.name != IS_DELETED]
        try:
            rows, reads = self._versions(self.snapshot.key.parse(key), limit, since, until)
        except NoSuchKey:
            reads = []
            rows = compared(KeyChanges(self.shape.schema.empty_table(), ()), self.shape)
        change = [field.name for field in self.shape.change]
        shown = rows.select([*change, *(name for name in chosen if name not in change), CHANGED])
        floor = self.reach.floor
        chunks = {one.low: one.chunk for one in reads}
        return ArchivedVersions(shown.slice(0, limit), self.complete_since, floor.point, floor.why, chunks)

    def _versions(
        self, key: RowKey, limit: int | None, since: datetime | None, until: datetime | None
    ) -> tuple[pa.Table, list[ChunkRow]]:
        def enough(changes: KeyChanges) -> bool:
            return limit is not None and within(changes.rows, TS, since, until).num_rows > limit

        changes = self.archived.of_key(self.segments, key, enough)
        first = min(zip(*order_of(changes.rows)[:3], strict=True)) if enough(changes) else None
        reads = reads_of(self.snapshots, key, Point(*map(int, first)) if first is not None else None)
        changes = with_reads(changes, reads, self.shape)
        changes = with_resets(changes, self.reach, self.shape)
        lake_row = self._lake_row(key)
        changes = with_lake_row(changes, lake_row, self.shape)
        if not lake_row.num_rows and (last := last_with_row(changes)) is not None:
            by = deleted_by(self.snapshots, key, last)
            changes = changes if by is None else with_delete(changes, by.mark.low, by.read_at(), self.shape)
        return within(compared(changes, self.shape), TS, since, until), reads

    def _lake_row(self, key: RowKey) -> pa.Table:
        columns = self.snapshot.columns.choose(None)
        for group, rows in find(self.snapshot, key, everything=True):
            return self.snapshot.read(group, rows[:1], columns)
        return pa.schema([one.field for one in columns]).empty_table()


def open_archive(
    snapshot: PinnedSnapshot, table: Table, config: SourceConfig, store: ObjectStore, cut: Cut | None
) -> TableArchive:
    """Find the stored batches that tell the earlier versions of a table's rows.

    Args:
        snapshot: of the lake table; its name is that of the source table.
        table: the lake table.
        config: the source.
        store: holds the batches.
        cut: whose snapshot it is; None for the current one.

    Raises:
        ConfigError: the table's versions do not follow from its batches.
        StoreError: a cursor, a manifest or the table's marker cannot be read.
    """
    if snapshot.id is not None and table.metadata.snapshot_by_id(snapshot.id) is None:
        raise expired(snapshot.id, snapshot.name)
    routed = lake_merges(config, [snapshot.name])[0].routed_tables[0]
    cursors = ObjectCursorStore(store)
    drain = required_cursor(cursors, config.source, DRAIN)
    lake = required_cursor(cursors, config.source, LAKE)
    marker = marker_of(
        table.metadata, config.source, routed.table, routed=routed.target.routed, snapshot_id=snapshot.id
    )
    computes = bool(computed_from(table.metadata.properties.get(COMPUTED_PROPERTY)))
    refuse_table(routed, snapshot.mode, marker, lake.source_uuid, computes=computes)
    at, merged_to = lake if cut is None else cut, marker.merged_to or _NOTHING
    end = max(Point.at(at.epoch, at.position), merged_to)  # a merge that is not acknowledged yet may be in the snapshot
    manifests = TableManifests(store, snapshot.parts.cache, routed.table)
    slices = _slices(store, config.source, end, drain, manifests)
    reach = reach_of(
        routed.table,
        slices,
        begin=_begin(slices, end, drain),
        captured=_captured(drain, routed.table, slices[0][0].low if slices else end, end),
        records=drain.quarantine,
        key=[one.name for one in snapshot.key.columns],
        policy=config.schema_changes.policy(*routed.table.pair),
        until=merged_to,
    )
    shape = VersionShape.of(snapshot.name, snapshot.columns.choose(None))
    archived = ArchivedRows(store, snapshot.parts.cache, shape, snapshot.key.columns)
    segments = archived.segments(reach.parts)
    snapshots = merged_snapshots(archived, config.source, routed.table, marker.snapshots, reach.floor.point)
    known = (_time_of(reach.floor, slices, manifests), snapshots[-1].read_at() if snapshots else None)
    since = min(filter(None, known), default=None)
    return TableArchive(snapshot, shape, archived, reach, segments, snapshots, since)


_Slices = list[tuple[WindowSlice, Manifest | None]]


def _slices(store: ObjectStore, source: str, end: Point, drain: Cursor, manifests: TableManifests) -> _Slices:
    """Return the windows that lead to a point, also those of earlier epochs if each epoch begins exactly where the last one ended."""
    slices = manifests.of(tail(stored_windows(store, source, end.epoch), end))
    while (change := _change_at(drain, slices[0][0].low if slices else end)) is not None and change.is_exact:
        until = Point.at(change.epoch - 1, change.previous_end.position)
        earlier = manifests.of(tail(stored_windows(store, source, until.epoch), until))
        if not earlier:
            break
        slices = [*earlier, *slices]
    return slices


def _change_at(drain: Cursor, point: Point) -> EpochChange | None:
    """Return the change of the epoch that begins at a point."""
    begins = (one for one in drain.epoch_changes if Point.at(one.epoch, one.new_start.position) == point)
    return next(begins, None)


def _begin(slices: _Slices, end: Point, drain: Cursor) -> Floor:
    """Return where the windows begin, and why not earlier."""
    first = slices[0][0].low if slices else end
    change = _change_at(drain, first)
    if change is not None and not change.is_exact:
        return Floor(first, f"epoch {change.epoch} of the source begins there ({change.kind})")
    return Floor(first, "earlier batches are not stored")


def _captured(drain: Cursor, table: TableName, first: Point, end: Point) -> Point | None:
    """Return where the first known snapshot of a table was requested in the epochs between two points."""
    asked = (task.requested_at for task in drain.snapshots if task.name == table and task.selection is None)
    return min((one for one in asked if first.epoch <= one.epoch <= end.epoch), default=None)


def _time_of(
    floor: Floor, slices: Sequence[tuple[WindowSlice, Manifest | None]], manifests: TableManifests
) -> datetime | None:
    """Return the commit time from which on all changes are known; None if no event comes after the floor."""
    if floor.time is not None:
        return floor.time
    for part, _ in slices:
        if part.high > floor.point and (whole := manifests.whole(part)) is not None:
            time = whole.first_time if part.low >= floor.point else whole.last_time
            if time is not None:
                return time
    return None
