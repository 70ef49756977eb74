"""Quarantined and re-read tables of a source: their records, and the snapshots that a merge must wait for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from cdc_lib.errors import DateInKey, MaskLost
from cdc_lib.lake.routing import colliding, collisions
from cdc_lib.model.by_table import Change, table_by_table
from cdc_lib.model.cursor import Cursor
from cdc_lib.model.finding import Finding
from cdc_lib.model.manifest import Manifest
from cdc_lib.model.position import Position
from cdc_lib.model.quarantine import Fault, QuarantineRecord, is_replaced
from cdc_lib.model.table_name import TableName
from cdc_lib.model.window import SnapshotTask
from cdc_lib.plan.gaps import lost_chunk
from cdc_lib.quarantine.records import FaultyTable, Unmerged, quarantine, refuse
from cdc_lib.quarantine.resnapshot import ResnapshotRequest, with_new_snapshot
from cdc_lib.source import Source
from cdc_lib.store.cuts import last_cut
from cdc_lib.store.manifests import first_chunks_of, read_to_of


@dataclass(frozen=True, slots=True)
class Quarantine:
    """The tables of one source that are quarantined.

    Args:
        source: the source.
    """

    source: Source

    # --- records

    def recorded(
        self, cursor: Cursor, lake: Cursor | None, manifests: Sequence[Manifest], *, at: datetime, by: str
    ) -> Cursor:
        """Return the drain cursor with the tables quarantined that manifests report.

        Args:
            cursor: after the acknowledged windows.
            lake: the lake's cursor.
            manifests: of the acknowledged windows, in order, and last chunks.
            at: now (UTC).
            by: who requests it.
        """
        renamed = list(self._renamed_meanwhile(cursor, manifests))
        return self.with_faulty(cursor, lake, list(_faulty(manifests)), renamed, at=at, by=by)

    def with_faulty(
        self,
        cursor: Cursor,
        lake: Cursor | None,
        faulty: Sequence[FaultyTable],
        renamed: Sequence[tuple[TableName, Position]] = (),
        *,
        at: datetime,
        by: str,
    ) -> Cursor:
        """Return the drain cursor with tables quarantined, or with requests for new snapshots of them.

        Args:
            cursor: the drain cursor.
            lake: the lake's cursor.
            faulty: tables and their faults.
            renamed: tables whose columns were renamed while they were read, and where.
            at: now (UTC).
            by: who requests it.
        """
        if not faulty and not renamed:
            return cursor
        unmerged = self._unmerged(cursor, lake)
        merged = lake or cursor
        places = merged.places
        reached = merged.epoch, merged.in_flight[-1].stop if lake and lake.in_flight else merged.position

        def resnapshot(alone: Cursor, table: TableName, start: Position | None, why: str) -> Cursor:
            here = merged.of_table(places.get(table))
            return with_new_snapshot(alone, table, here, unmerged, ResnapshotRequest(why, at, by, start))

        def recorded(one: FaultyTable, alone: Cursor) -> Cursor:
            if is_replaced(one.fault):
                return resnapshot(alone, one.table, one.start, one.fault.reason)
            if one.fault.code == MaskLost.code:  # nothing that waits for a snapshot or a resume may read the table
                alone = refuse(alone, one.table, one.fault, at=at, by=by)
            place = places.get(one.table)
            mine = (place.epoch, place.position) if place is not None else reached
            stopped = place is not None and place.stopped is not None
            return quarantine(alone, one, unmerged, mine, at=at, by=by, stopped=stopped)

        def renamed_while_read(table: TableName, start: Position, alone: Cursor) -> Cursor:
            return resnapshot(alone, table, start, "its columns were renamed while it was read")

        changes: list[tuple[TableName, Change]] = [(one.table, partial(recorded, one)) for one in faulty]
        changes += [(table, partial(renamed_while_read, table, start)) for table, start in renamed]
        cured = (one.table for one in faulty if one.fault.code == DateInKey.code)
        return table_by_table(cursor, changes).with_text_keys(cured)

    def _renamed_meanwhile(self, cursor: Cursor, manifests: Sequence[Manifest]) -> Iterator[tuple[TableName, Position]]:
        """Yield tables whose columns were renamed between chunks of their snapshot, and the start of the window."""
        renames = [
            (manifest.window, one)
            for manifest in manifests
            for one in manifest.statements
            if manifest.window is not None and one.kind == "rename_columns"
        ]
        tables = {one.table for _, one in renames}
        tasks: dict[TableName, list[SnapshotTask]] = {}
        for task in cursor.snapshots if renames else ():
            if task.name in tables:
                tasks.setdefault(task.name, []).append(task)
        for window, one in renames:
            same_epoch = (task for task in tasks.get(one.table, ()) if task.epoch == window.epoch)
            if any(self._is_around(task, one.position) for task in same_epoch):
                yield one.table, window.start

    def _is_around(self, task: SnapshotTask, position: Position) -> bool:
        """Whether a snapshot of a table with a key has chunks, or ranges to be read, on both sides of a position."""
        first = next(iter(first_chunks_of(self.source.store, task)), None)
        if task.cancelled or task.selection is not None or first is None or first.chunk is None:
            return False
        if not any(schema.primary_key for schema in first.schemas.values()) or position < first.chunk.low_watermark:
            return False
        high = self._high(task)
        return high is None or position < high

    def with_new_snapshots(
        self, cursor: Cursor, lake: Cursor | None, tables: Sequence[TableName], request: ResnapshotRequest
    ) -> Cursor:
        """Return the drain cursor with requests for new snapshots of tables.

        See :func:`cdc_lib.quarantine.resnapshot.with_new_snapshot`. The server is not queried: the next plan starts the
        snapshots, or closes the record of a table that the source no longer has.

        Args:
            cursor: after the acknowledged windows.
            lake: the lake's cursor.
            tables: ``database.table`` of each.
            request: the request.
        """
        unmerged, known = self._unmerged(cursor, lake), lake or cursor
        places = known.places
        merged: dict[TableName, list[SnapshotTask]] = {}
        for task in known.snapshots:
            merged.setdefault(task.name, []).append(task)

        def resnapshot(table: TableName, alone: Cursor) -> Cursor:
            lake_of_table = replace(known.of_table(places.get(table)), snapshots=tuple(merged.get(table, ())))
            return with_new_snapshot(alone, table, lake_of_table, unmerged, request)

        return table_by_table(cursor, ((table, partial(resnapshot, table)) for table in tables))

    def excluded(self, cursor: Cursor, lake: Cursor, faulty: FaultyTable, *, at: datetime, by: str) -> Cursor:
        """Return the drain cursor with a table quarantined at the lake's position, because a merge cannot continue with it.

        A snapshot that the merge was to bring is cancelled.

        Args:
            cursor: the drain cursor.
            lake: the lake's cursor, without the merge.
            faulty: the table and its fault.
            at: now (UTC).
            by: who requests it.
        """
        reached, unmerged = lake.reached(faulty.table), self._unmerged(cursor, lake)
        return quarantine(cursor, faulty, unmerged, reached, at=at, by=by, stopped=True)

    def colliding(self, cursor: Cursor, lake: Cursor, tables: Sequence[TableName], *, at: datetime, by: str) -> Cursor:
        """Return the drain cursor with new tables quarantined whose lake table would be another's as well.

        Args:
            cursor: the drain cursor.
            lake: the lake's cursor.
            tables: the captured tables.
            at: now (UTC).
            by: who requests it.

        Raises:
            LakeTableShared: the lake has several of them: the source file changed.
        """
        known = {one.table for one in cursor.quarantined_tables}
        new = [table for table in tables if table not in known]
        if not any(collisions(self.source.config, new)):
            return cursor
        cut = last_cut(self.source.store, cursor.source, lake.last_merge)
        begun = frozenset(task.name for task in cursor.snapshots if not task.cancelled)
        refused = colliding(self.source.config, new, cut.followed if cut is not None else frozenset(), begun)
        before = lake.without_merge()
        for table, error in refused.items():
            fault = Fault(before.reached(table)[1], error.code, error.message, error.hint)
            cursor = self.excluded(cursor, before, FaultyTable(table, fault, None, None), at=at, by=by)
        return cursor

    def after_failover(self, cursor: Cursor, lake: Cursor | None, *, at: datetime, by: str) -> Cursor:
        """Return the drain cursor with requests for new snapshots of tables that were read past the end of the last epoch.

        Such a snapshot may hold changes of the old server that the new one never had; no GTID of the cursor shows them.

        Args:
            cursor: at the beginning of an epoch.
            lake: the lake's cursor.
            at: now (UTC).
            by: who requests it.
        """
        change = cursor.epoch_changes[-1]
        if change.kind != "failover":
            return cursor
        read = [task for task in cursor.snapshots if task.complete and task.chunks and task.epoch == change.epoch - 1]
        for task in read:
            high = self._high(task)
            if high is not None and change.previous_end.position < high:
                why = f"its snapshot was read up to {high}, after the position at which the former server was left"
                cursor = self.with_new_snapshots(cursor, lake, [task.name], ResnapshotRequest(why, at, by))
        return cursor

    # --- snapshots that a merge must wait for

    def held(self, drain: Cursor, lake: Cursor) -> frozenset[str]:
        """Return the IDs of snapshots that a merge must wait for, because a window may still quarantine their table.

        They wait until they are finished and the windows up to their last chunk are acknowledged. If no table can be
        quarantined, only partial snapshots wait: all of their chunks are merged at once.

        Raises:
            BatchesMissing: the last chunk of a snapshot is acknowledged but not stored.
        """
        hides = bool(self.source.config.masks or self.source.config.columns)  # a lost mask always quarantines its table
        any_of_them = self.source.config.on_error == "quarantine" or hides or bool(drain.quarantine)
        tasks = [task for task in self._tasks(drain, lake).values() if any_of_them or task.selection is not None]
        waiting = [Unmerged(task, self._high(task)) for task in tasks]
        lost = (lost_chunk(self.source.store, one.task) for one in waiting if one.high is None)
        if error := next(filter(None, lost), None):
            raise error  # without it, the windows that the snapshot needs are unknown
        # All windows of an ended epoch are acknowledged.
        current = [one for one in waiting if one.task.epoch == drain.epoch]
        return frozenset(one.task.id for one in current if one.needs(drain.position))

    def _unmerged(self, drain: Cursor, lake: Cursor | None) -> dict[TableName, Unmerged]:
        return {table: Unmerged(task, self._high(task)) for table, task in self._tasks(drain, lake).items()}

    def _tasks(self, drain: Cursor, lake: Cursor | None) -> dict[TableName, SnapshotTask]:
        """Return, by table, the last snapshot that the lake neither has nor has in flight; reads no manifest."""
        merged = {task.id: task.chunks for task in (*lake.snapshots, *lake.in_flight_snapshots)} if lake else {}
        last = {}
        for task in sorted(drain.snapshots, key=lambda task: task.snapshot_id):
            if task.complete and task.chunks <= merged.get(task.id, 0):
                continue
            last[task.name] = task
        return last

    def _high(self, task: SnapshotTask) -> Position | None:
        if not task.complete:
            return None
        return read_to_of(self.source.store, task)


def hint_of(record: QuarantineRecord, source: str) -> str:
    """Return what to do about a quarantined or re-read table."""
    if record.fault is None:
        return "The next runs bring it."
    if f"cdc snapshot {source}" in record.fault.hint:
        return record.fault.hint
    if "cdc snapshot" in record.fault.hint:  # which ends the quarantine
        return record.fault.hint.replace("cdc snapshot", f"cdc snapshot {source} {record.table.in_shell}", 1)
    return f"{record.fault.hint} Then: cdc quarantine resume {source} {record.table.in_shell}".strip()


def findings(cursor: Cursor | None) -> Iterator[Finding]:
    """Yield a finding for each quarantined table."""
    for one in cursor.quarantined_tables if cursor is not None else ():
        if one.fault is None:
            continue
        what = f"{one.table} is quarantined and is as of {one.start}: {one.fault.reason} [{one.fault.position}]"
        yield Finding("warning", what, hint_of(one, cursor.source if cursor else ""))


def _faulty(manifests: Sequence[Manifest]) -> Iterator[FaultyTable]:
    for manifest in manifests:
        start = manifest.window.start if manifest.window is not None else None
        first_commit = manifest.first_time if manifest.window is not None else None
        for one in manifest.quarantined:
            yield FaultyTable(one.table, one.fault, start, first_commit)
