"""Tables that are set aside: what an ack records of them, what a merge waits for, and the way back."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime

from cdc_lib.config import Credentials, SourceConfig
from cdc_lib.draining import Drainer
from cdc_lib.errors import ConfigError, SourceUnavailable
from cdc_lib.histories import Histories
from cdc_lib.model.aside import Aside
from cdc_lib.model.batch import Manifest
from cdc_lib.model.cursor import Cursor
from cdc_lib.model.position import Position
from cdc_lib.model.window import SnapshotTask
from cdc_lib.ports import ObjectStore
from cdc_lib.source.connect import connect
from cdc_lib.source.facts import ServerFacts, read_charsets, read_facts
from cdc_lib.source.preflight import Finding
from cdc_lib.source.prepared import wait_for_decisions
from cdc_lib.source.schema import InformationSchema
from cdc_lib.source.watermark import low_watermark
from cdc_lib.starting import Starter
from cdc_lib.store import layout
from cdc_lib.window.aside import Found, Unmerged, release, set_aside
from cdc_lib.window.chunks import refuse_masked_keys

_TRIES = 20
_PAUSE = 0.5


@dataclass(frozen=True, slots=True)
class Quarantine:
    """The tables of one source that are set aside.

    Args:
        config: of the source.
        credentials: log-in of the source; only a release needs it.
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
        found = list(_found(manifests))
        if not found:
            return cursor
        unmerged = self._unmerged(cursor, lake)
        reached = lake.in_flight[-1].stop if lake and lake.in_flight else lake.position if lake else cursor.position
        for one in found:
            cursor = set_aside(cursor, one, unmerged, reached, at=at, by=by)
        return cursor

    # --- what a merge waits for

    def held(self, drain: Cursor, lake: Cursor) -> frozenset[str]:
        """Return the ids of snapshots that are not merged yet, because a window may still set their table aside.

        That is until they are finished and the windows up to their last chunk are acknowledged. Where no table is ever set
        aside, nothing waits.
        """
        if self.config.on_error != "quarantine" and not drain.aside:
            return frozenset()
        waiting = self._unmerged(drain, lake).values()
        return frozenset(one.task.id for one in waiting if one.needs(drain.position))

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
        return last.chunk.high_watermark or last.chunk.low_watermark

    # --- the way back

    def released(self, cursor: Cursor, table: str, *, at: datetime, by: str) -> Cursor:
        """Return the drain cursor with a new snapshot of a table, from whose position on the table is followed again.

        Raises:
            ConfigError: the table is not set aside, or cannot be read by SELECT.
            SourceError: the server cannot be reached or is another one.
        """
        record = cursor.aside_of(table)
        if record is None or not record.open:
            names = ", ".join(one.table for one in cursor.tables_aside) or "none"
            raise ConfigError(f"{table} is not set aside", hint=f"Set aside: {names}.", source=cursor.source)
        database, _, name = table.partition(".")
        with closing(connect(self.config.server, self.credentials)) as connection:
            facts = read_facts(connection, self.config.server)
            Starter(self.config, self.credentials, facts).check_resumable(cursor)
            reader = InformationSchema(connection)
            exists = self.config.tables.captures(database, name) and (database, name) in reader.tables()
            if exists and (schema := reader.schema(database, name)) is not None:
                shape = Drainer(self.config, self.credentials, self.store).shape
                refuse_masked_keys(shape.of(self.config.values.applied(schema)))
            charsets = read_charsets(connection)
        until = self._place(cursor, facts)
        if not exists:
            return release(cursor, record, until, None, at=at, by=by)
        # The chunks must be read behind the commits of what is prepared now: its rows may be left out.
        wait_for_decisions(self.config.server, self.credentials, facts)
        histories = Histories(self.config, self.credentials, self.store, cursor.epoch, facts, charsets)
        if histories.needed:
            histories.enrol([(database, name)], until, afresh=True)
        # The generation tells it from a snapshot that was asked for when the binlog ended at the same place.
        snapshot_id = f"{cursor.epoch:06d}-{until.file_number:06d}.{until.offset:012d}-{cursor.generation:06d}"
        task = SnapshotTask(cursor.source, cursor.epoch, snapshot_id, database, name)
        return release(cursor, record, until, task, at=at, by=by)

    def _place(self, cursor: Cursor, facts: ServerFacts) -> Position:
        """Return a position behind the windows in flight before which every change is visible to a SELECT."""
        least = cursor.in_flight[-1].stop if cursor.in_flight else cursor.position
        for _ in range(_TRIES):
            with closing(connect(self.config.server, self.credentials)) as connection:
                found = low_watermark(connection, facts)
            if least <= found:
                return found
            time.sleep(_PAUSE)
        raise SourceUnavailable(
            f"the server still shows rows as of {found}, before the windows in flight end",
            hint="Look for stalled commits at the source; the command can be tried again.",
            source=cursor.source,
            stop=str(least),
        )


def way_back(record: Aside, source: str) -> str:
    """Say what to do about a table that is set aside."""
    return f"{record.fault.mend} Then: cdc release {source} {record.table}".strip()


def findings(cursor: Cursor | None) -> Iterator[Finding]:
    """Yield what there is to say of tables that are set aside."""
    for one in cursor.tables_aside if cursor is not None else ():
        what = f"{one.table} is set aside and stands as of {one.start}: {one.fault.reason} [{one.fault.position}]"
        yield Finding("warning", what, way_back(one, cursor.source if cursor else ""))


def _found(manifests: Sequence[Manifest]) -> Iterator[Found]:
    for manifest in manifests:
        start = manifest.window.start if manifest.window is not None else None
        behind = manifest.first_time if manifest.window is not None else None
        for one in manifest.aside:
            if one.fault is not None:
                yield Found(one.table, one.fault, start, behind)
