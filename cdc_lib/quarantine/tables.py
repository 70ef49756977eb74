"""Tables that are quarantined, or read again: what is recorded of them, and what a merge waits for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from cdc_lib.config import SourceConfig
from cdc_lib.model.by_table import Change, table_by_table
from cdc_lib.model.cursor import Cursor
from cdc_lib.model.finding import Finding
from cdc_lib.model.manifest import Manifest
from cdc_lib.model.position import Position
from cdc_lib.model.quarantine import QuarantineRecord, is_replaced
from cdc_lib.model.table_name import TableName
from cdc_lib.model.window import SnapshotTask
from cdc_lib.plan.gaps import lost_chunk
from cdc_lib.ports import ObjectStore
from cdc_lib.quarantine.records import FaultyTable, Unmerged, quarantine
from cdc_lib.quarantine.resnapshot import ResnapshotRequest, with_new_snapshot
from cdc_lib.store import layout
from cdc_lib.store.manifests import find_manifest


@dataclass(frozen=True, slots=True)
class Quarantine:
    """The tables of one source that are quarantined.

    Args:
        config: of the source.
        store: where the batches lie.
    """

    config: SourceConfig
    store: ObjectStore

    # --- what is recorded

    def recorded(
        self, cursor: Cursor, lake: Cursor | None, manifests: Sequence[Manifest], *, at: datetime, by: str
    ) -> Cursor:
        """Return the drain cursor with the tables quarantined that manifests tell of.

        Args:
            cursor: after what is acknowledged.
            lake: the lake's cursor.
            manifests: of the windows and the last chunks that this ack counts, windows in order.
            at: now (UTC).
            by: who asks.
        """
        found, torn = list(_found(manifests)), list(self._torn(cursor, manifests))
        if not found and not torn:
            return cursor
        unmerged = self._unmerged(cursor, lake)
        there = lake or cursor
        reached = there.epoch, there.in_flight[-1].stop if lake and lake.in_flight else there.position

        def anew(alone: Cursor, table: TableName, start: Position | None, why: str) -> Cursor:
            return with_new_snapshot(alone, table, lake or cursor, unmerged, ResnapshotRequest(why, at, by, start))

        def recorded(one: FaultyTable, alone: Cursor) -> Cursor:
            if is_replaced(one.fault):
                return anew(alone, one.table, one.start, one.fault.reason)
            return quarantine(alone, one, unmerged, reached, at=at, by=by)

        def torn_apart(table: TableName, start: Position, alone: Cursor) -> Cursor:
            return anew(alone, table, start, "its columns were renamed while it was read")

        changes: list[tuple[TableName, Change]] = [(one.table, partial(recorded, one)) for one in found]
        changes += [(table, partial(torn_apart, table, start)) for table, start in torn]
        return table_by_table(cursor, changes)

    def _torn(self, cursor: Cursor, manifests: Sequence[Manifest]) -> Iterator[tuple[TableName, Position]]:
        """Yield tables of which some chunks have the names before a rename and others those after, and the window."""
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
            mine = (task for task in tasks.get(one.table, ()) if task.epoch == window.epoch)
            if any(self._is_around(task, one.position) for task in mine):
                yield one.table, window.start

    def _is_around(self, task: SnapshotTask, position: Position) -> bool:
        """Whether chunks of a snapshot of a table with a key were read on both sides of a position."""
        first = find_manifest(self.store, layout.chunk_manifest_key(task, 0))
        if task.given_up or task.selection is not None or first is None or first.chunk is None:
            return False
        if not any(schema.primary_key for schema in first.schemas.values()) or position < first.chunk.low_watermark:
            return False
        high = self._high(task)
        return high is None or position < high

    def with_new_snapshots(
        self, cursor: Cursor, lake: Cursor | None, tables: Sequence[TableName], request: ResnapshotRequest
    ) -> Cursor:
        """Return the drain cursor that wants new snapshots; see :func:`cdc_lib.quarantine.resnapshot.with_new_snapshot`.

        Nothing is asked of the server: the next plan finds the place after which the snapshots are read, or closes the record
        where the source has no such table any more.

        Args:
            cursor: after what is acknowledged.
            lake: the lake's cursor.
            tables: ``database.table`` of each.
            request: who asks, and from where on.
        """
        unmerged, there = self._unmerged(cursor, lake), lake or cursor
        merged: dict[TableName, list[SnapshotTask]] = {}
        for task in there.snapshots:
            merged.setdefault(task.name, []).append(task)

        def anew(table: TableName, alone: Cursor) -> Cursor:
            its = replace(there, snapshots=tuple(merged.get(table, ())))
            return with_new_snapshot(alone, table, its, unmerged, request)

        return table_by_table(cursor, ((table, partial(anew, table)) for table in tables))

    def excluded(self, cursor: Cursor, lake: Cursor, found: FaultyTable, *, at: datetime, by: str) -> Cursor:
        """Return the drain cursor with a table quarantined that a merge cannot continue with, from where the lake is on.

        Args:
            cursor: the drain cursor.
            lake: the lake's cursor.
            found: the table and its fault.
            at: now (UTC).
            by: who asks.
        """
        return quarantine(cursor, found, self._unmerged(cursor, lake), (lake.epoch, lake.position), at=at, by=by)

    def over_a_switch(self, cursor: Cursor, lake: Cursor | None, *, at: datetime, by: str) -> Cursor:
        """Return the drain cursor that wants a new snapshot of each table of which the former server showed too much.

        A snapshot that was read further than that server's binlog may hold changes that the new one never had; no GTID of the
        cursor tells them.

        Args:
            cursor: at the beginning of an epoch.
            lake: the lake's cursor.
            at: now (UTC).
            by: who asks.
        """
        switch = cursor.epoch_changes[-1]
        if switch.kind != "failover":
            return cursor
        read = [task for task in cursor.snapshots if task.complete and task.chunks and task.epoch == switch.epoch - 1]
        for task in read:
            high = self._high(task)
            if high is not None and switch.previous_end.position < high:
                why = f"its snapshot was read up to {high}, after the place where the former server was left"
                cursor = self.with_new_snapshots(cursor, lake, [task.name], ResnapshotRequest(why, at, by))
        return cursor

    # --- what a merge waits for

    def held(self, drain: Cursor, lake: Cursor) -> frozenset[str]:
        """Return the ids of snapshots that are not merged yet, because a window may still quarantine their table.

        That is until they are finished and the windows up to their last chunk are acknowledged. Where no table is ever set
        quarantined, only those of a part of a table wait: all of their chunks are merged at once.

        Raises:
            BatchesMissing: the last chunk of one is acknowledged and not stored.
        """
        any_of_them = self.config.on_error == "quarantine" or bool(drain.quarantine)
        tasks = [task for task in self._tasks(drain, lake).values() if any_of_them or task.selection is not None]
        waiting = [Unmerged(task, self._high(task)) for task in tasks]
        lost = (lost_chunk(self.store, one.task) for one in waiting if one.high is None)
        if error := next(filter(None, lost), None):
            raise error  # nobody would ever know up to where the windows must be there
        # Windows of an epoch that has ended are all there.
        here = [one for one in waiting if one.task.epoch == drain.epoch]
        return frozenset(one.task.id for one in here if one.needs(drain.position))

    def _unmerged(self, drain: Cursor, lake: Cursor | None) -> dict[TableName, Unmerged]:
        return {table: Unmerged(task, self._high(task)) for table, task in self._tasks(drain, lake).items()}

    def _tasks(self, drain: Cursor, lake: Cursor | None) -> dict[TableName, SnapshotTask]:
        """Return, by table, the last snapshot that the lake neither has nor has in flight; no manifest is read."""
        merged = {task.id: task.chunks for task in (*lake.snapshots, *lake.in_flight_snapshots)} if lake else {}
        found = {}
        for task in sorted(drain.snapshots, key=lambda task: task.snapshot_id):
            if task.complete and task.chunks <= merged.get(task.id, 0):
                continue
            found[task.name] = task
        return found

    def _high(self, task: SnapshotTask) -> Position | None:
        if not task.complete:
            return None
        last = find_manifest(self.store, layout.chunk_manifest_key(task, max(task.chunks - 1, 0)))
        if last is None or last.chunk is None:
            return None
        return last.chunk.read_to


def way_back(record: QuarantineRecord, source: str) -> str:
    """Say what to do about a table that is quarantined, or wanted again."""
    if record.fault is None:
        return "The next runs bring it."
    return f"{record.fault.hint} Then: cdc quarantine resume {source} {record.table.in_shell}".strip()


def findings(cursor: Cursor | None) -> Iterator[Finding]:
    """Yield what there is to say of tables that are quarantined."""
    for one in cursor.quarantined_tables if cursor is not None else ():
        if one.fault is None:
            continue
        what = f"{one.table} is quarantined and is as of {one.start}: {one.fault.reason} [{one.fault.position}]"
        yield Finding("warning", what, way_back(one, cursor.source if cursor else ""))


def _found(manifests: Sequence[Manifest]) -> Iterator[FaultyTable]:
    for manifest in manifests:
        start = manifest.window.start if manifest.window is not None else None
        behind = manifest.first_time if manifest.window is not None else None
        for one in manifest.quarantined:
            yield FaultyTable(one.table, one.fault, start, behind)
