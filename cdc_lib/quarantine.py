"""Tables that are set aside, or read anew: what is recorded of them, and what a merge waits for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from cdc_lib.config import Credentials, SourceConfig
from cdc_lib.draining import Drainer
from cdc_lib.model.aside import Aside, is_replaced
from cdc_lib.model.batch import Manifest
from cdc_lib.model.cursor import Cursor
from cdc_lib.model.position import Position
from cdc_lib.model.window import SnapshotTask
from cdc_lib.ports import ObjectStore
from cdc_lib.source.preflight import Finding
from cdc_lib.store import layout
from cdc_lib.window.anew import with_new_snapshot
from cdc_lib.window.aside import Found, Unmerged, set_aside


@dataclass(frozen=True, slots=True)
class Quarantine:
    """The tables of one source that are set aside.

    Args:
        config: of the source.
        credentials: log-in of the source.
        store: where the batches lie.
    """

    config: SourceConfig
    credentials: Credentials
    store: ObjectStore

    # --- what is recorded

    def recorded(
        self, cursor: Cursor, lake: Cursor | None, manifests: Sequence[Manifest], *, at: datetime, by: str
    ) -> Cursor:
        """Return the drain cursor with the tables set aside that manifests tell of.

        Args:
            cursor: behind what is acknowledged.
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
        for one in found:
            if is_replaced(one.fault):
                why = one.fault.reason
                cursor = with_new_snapshot(
                    cursor, one.table, lake or cursor, unmerged, start=one.start, why=why, at=at, by=by
                )
            else:
                cursor = set_aside(cursor, one, unmerged, reached, at=at, by=by)
        for table, start in torn:
            why = "its columns got other names while it was read"
            cursor = with_new_snapshot(cursor, table, lake or cursor, unmerged, start=start, why=why, at=at, by=by)
        return cursor

    def _torn(self, cursor: Cursor, manifests: Sequence[Manifest]) -> Iterator[tuple[str, Position]]:
        """Yield tables of which some chunks have the names in front of a rename and others those behind, and the window."""
        for window, one in ((manifest.window, one) for manifest in manifests for one in manifest.statements):
            if window is None or one.kind != "rename_columns":
                continue
            tasks = (task for task in cursor.snapshots if task.name == one.table and task.epoch == window.epoch)
            if any(self._is_around(task, one.position) for task in tasks):
                yield one.table, window.start

    def _is_around(self, task: SnapshotTask, position: Position) -> bool:
        """Whether chunks of a snapshot of a table with a key were read on both sides of a position."""
        drainer = Drainer(self.config, self.credentials, self.store)
        first = drainer.manifest(layout.chunk_manifest_key(task, 0))
        if task.given_up or task.part is not None or first is None or first.chunk is None:
            return False
        if not any(schema.primary_key for schema in first.schemas.values()) or position < first.chunk.low_watermark:
            return False
        high = self._high(task)
        return high is None or position < high

    def with_new_snapshot(
        self,
        cursor: Cursor,
        lake: Cursor | None,
        table: str,
        *,
        start: Position | None = None,
        why: str,
        at: datetime,
        by: str,
    ) -> Cursor:
        """Return the drain cursor that wants a new snapshot of a table; see :func:`cdc_lib.window.anew.with_new_snapshot`.

        Nothing is asked of the server: the next plan finds the place behind which the snapshot is read, or closes the record
        where the source has no such table any more.

        Args:
            cursor: behind what is acknowledged.
            lake: the lake's cursor.
            table: ``database.table``.
            start: of a window, from which on nothing of the table counts; None for all that the lake does not have.
            why: the reason, for people.
            at: now (UTC).
            by: who asks.
        """
        unmerged = self._unmerged(cursor, lake)
        return with_new_snapshot(cursor, table, lake or cursor, unmerged, start=start, why=why, at=at, by=by)

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
        switch = cursor.switches[-1]
        if switch.kind != "switch":
            return cursor
        read = [task for task in cursor.snapshots if task.complete and task.chunks and task.epoch == switch.epoch - 1]
        for task in read:
            high = self._high(task)
            if high is not None and switch.left.position < high:
                why = f"its snapshot was read up to {high}, behind the place where the former server was left"
                cursor = self.with_new_snapshot(cursor, lake, task.name, why=why, at=at, by=by)
        return cursor

    # --- what a merge waits for

    def held(self, drain: Cursor, lake: Cursor) -> frozenset[str]:
        """Return the ids of snapshots that are not merged yet, because a window may still set their table aside.

        That is until they are finished and the windows up to their last chunk are acknowledged. Where no table is ever set
        aside, only those of a part of a table wait: all of their chunks are merged at once.
        """
        any_of_them = self.config.on_error == "quarantine" or bool(drain.aside)
        waiting = [one for one in self._unmerged(drain, lake).values() if any_of_them or one.task.part is not None]
        # Windows of an epoch that has ended are all there.
        here = [one for one in waiting if one.task.epoch == drain.epoch]
        return frozenset(one.task.id for one in here if one.needs(drain.position))

    def _unmerged(self, drain: Cursor, lake: Cursor | None) -> dict[str, Unmerged]:
        merged = {task.id: task.chunks for task in (*lake.snapshots, *lake.in_flight_snapshots)} if lake else {}
        found = {}
        for task in sorted(drain.snapshots, key=lambda task: task.snapshot_id):
            if task.complete and task.chunks <= merged.get(task.id, 0):
                continue
            found[task.name] = Unmerged(task, self._high(task))
        return found

    def _high(self, task: SnapshotTask) -> Position | None:
        if not task.complete:
            return None
        drainer = Drainer(self.config, self.credentials, self.store)
        last = drainer.manifest(layout.chunk_manifest_key(task, max(task.chunks - 1, 0)))
        if last is None or last.chunk is None:
            return None
        return last.chunk.read_to


def way_back(record: Aside, source: str) -> str:
    """Say what to do about a table that is set aside, or wanted anew."""
    if record.fault is None:
        return "The next runs bring it."
    return f"{record.fault.mend} Then: cdc release {source} {record.table}".strip()


def findings(cursor: Cursor | None) -> Iterator[Finding]:
    """Yield what there is to say of tables that are set aside."""
    for one in cursor.tables_aside if cursor is not None else ():
        if one.fault is None:
            continue
        what = f"{one.table} is set aside and stands as of {one.start}: {one.fault.reason} [{one.fault.position}]"
        yield Finding("warning", what, way_back(one, cursor.source if cursor else ""))


def _found(manifests: Sequence[Manifest]) -> Iterator[Found]:
    for manifest in manifests:
        start = manifest.window.start if manifest.window is not None else None
        behind = manifest.first_time if manifest.window is not None else None
        for one in manifest.aside:
            if one.fault is not None:
                yield Found(one.table, one.fault, start, behind)
