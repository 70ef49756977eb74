"""The stages wired into the main job; the file to read first.

    plan → drain (one call per unit) → ack_drain → plan_merge → merge (Spark) → ack_lake

Every step can be called again at any time: it finds in the cursors and in the store what is done already. ``plan`` and
``plan_merge`` fix the work in a cursor before it is touched; the acks count manifests and cuts, never what a caller says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

from cdc_lib.config import Credentials, SourceConfig
from cdc_lib.config.start import StartAt
from cdc_lib.draining import Drainer
from cdc_lib.errors import BatchNotDurable, ConfigError, CursorMoved, UnsupportedServer
from cdc_lib.histories import Histories
from cdc_lib.merging import Merging, plan_of
from cdc_lib.model.aside import Aside
from cdc_lib.model.batch import Manifest
from cdc_lib.model.cursor import DRAIN, LAKE, Cursor, Move
from cdc_lib.model.lake import Point
from cdc_lib.model.merge import MergePlan
from cdc_lib.model.position import Position
from cdc_lib.model.results import AckResult, DrainResult, Found, Gauges, Status, Wanted
from cdc_lib.model.window import SnapshotTask, Unit, Window
from cdc_lib.overview import findings_of, gauges_of, status_of
from cdc_lib.parts import PartSnapshots, WantedPart
from cdc_lib.ports import CursorStore, ObjectStore
from cdc_lib.quarantine import Quarantine
from cdc_lib.releasing import Releaser
from cdc_lib.reselecting import Reselector
from cdc_lib.shaping import check_tables, versioned
from cdc_lib.source.connect import connect
from cdc_lib.source.facts import ServerFacts, facts_of, read_charsets, read_facts
from cdc_lib.source.preflight import Finding, judge
from cdc_lib.source.prepared import facts_without_prepared, wait_for_decisions
from cdc_lib.source.schema import InformationSchema
from cdc_lib.starting import Starter, address_of, reachable
from cdc_lib.store import layout
from cdc_lib.store.cursors import ObjectCursorStore, begun
from cdc_lib.store.open import open_store
from cdc_lib.window.ack import over_window
from cdc_lib.window.aside import bounded
from cdc_lib.window.plan import Limits, plan_windows
from cdc_lib.window_batches import Leaving

__all__ = ["AckResult", "DrainResult", "Finding", "Found", "Pipeline", "Status", "Wanted"]

_MERGE_WINDOWS = 64
"""Most windows in one merge."""


@dataclass(frozen=True, slots=True)
class Pipeline:
    """The steps of one source.

    Args:
        config: the source's file.
        credentials: log-in of the source; the steps that look at the store alone do without.
        store: where batches, cursors and cuts lie.
        cursors: where cursors lie.
    """

    config: SourceConfig
    credentials: Credentials
    store: ObjectStore
    cursors: CursorStore

    @classmethod
    def open(cls, config: SourceConfig, credentials: Credentials) -> Pipeline:
        """Return the pipeline of a source; nothing is asked of server or store yet."""
        store = open_store(config.store)
        return cls(config, credentials, store, ObjectCursorStore(store))

    @property
    def _drainer(self) -> Drainer:
        return Drainer(self.config, self.credentials, self.store)

    @property
    def _quarantine(self) -> Quarantine:
        return Quarantine(self.config, self.credentials, self.store)

    @property
    def _here(self) -> Releaser:
        """At the server that the drain cursor stands on."""
        return Releaser(self.config.at(*self._address()), self.credentials, self.store)

    @property
    def _parts(self) -> PartSnapshots:
        return PartSnapshots(self.config.at(*self._address()), self.credentials, self.store)

    @property
    def _merging(self) -> Merging:
        return Merging(self._drainer, self._quarantine, self.cursors)

    # --- plan

    def plan(self, *, by: str) -> list[Unit]:
        """Return the units to drain, of the server or the first standby that can be reached; see :meth:`plan_here`."""
        return self._at(reachable(self.config, self.credentials, self._address())).plan_here(by=by)

    def _at(self, address: tuple[str, int]) -> Pipeline:
        """Return the pipeline of the same source over one of its servers."""
        return self if address == self.config.addresses[0] else replace(self, config=self.config.at(*address))

    def _address(self) -> tuple[str, int]:
        """Return where the server is that the drain cursor stands on."""
        return address_of(self.config, self.cursors.load(self.config.source, DRAIN) if self.config.standbys else None)

    def plan_here(self, *, by: str) -> list[Unit]:
        """Return the units to drain: what is in flight, else new windows up to the head; and unfinished snapshots.

        Raises:
            SourceError: the server cannot be reached, or the cursor cannot go on there.
            CursorMoved: somebody else planned at the same moment.
        """
        facts, tables, charsets = self._look()
        cursor = self.cursors.load(self.config.source, DRAIN)
        if cursor is None:
            if self.config.start == "latest":
                facts = facts_without_prepared(self.config.server, self.credentials, facts)
            cursor = self.cursors.swap(None, Starter(self.config, self.credentials, facts).begin(by))
        if self.cursors.load(self.config.source, LAKE) is None:
            self._begin_lake(cursor)
        starter = Starter(self.config, self.credentials, facts)
        if (found := starter.go_on(cursor, partial(self._moved_over_durable, by=by), by)) != cursor:
            if found.epoch > cursor.epoch:
                lake = self.cursors.load(self.config.source, LAKE)
                found = self._quarantine.over_a_switch(found, lake, at=_now(), by=by)
            cursor = self.cursors.swap(cursor, found)
        histories = Histories(self.config, self.credentials, self.store, cursor.epoch, facts, charsets)
        if histories.needed:
            jumped = bool(cursor.moves) and cursor.moves[-1].kind not in ("start", "ack")
            histories.enrol(tables, cursor.position, afresh=jumped)
        planned = cursor
        if cursor.tables_wanted_anew:
            releaser = Releaser(self.config, self.credentials, self.store)
            planned = releaser.released(cursor, cursor.tables_wanted_anew, at=_now(), by=by)
        planned = self._enrolled(planned, facts, tables)
        if planned != cursor:
            # The chunks are read behind the commits of what is prepared now, perhaps before the source began.
            wait_for_decisions(self.config.server, self.credentials, facts)
        if not cursor.in_flight:
            limits = Limits(int(self.config.drain.max_window_bytes), self.config.drain.max_windows)
            windows = plan_windows(planned, facts.files, bounded(planned, _head(facts)), limits)
            planned = starter.with_file_times(planned.with_windows(windows), {w.stop.file for w in windows})
        if planned != cursor:
            cursor = self.cursors.swap(cursor, planned)
        return [*cursor.open_snapshots, *cursor.in_flight]

    def _look(self) -> tuple[ServerFacts, list[tuple[str, str]], dict[int, str]]:
        """Return the server's facts, its captured tables, and the character set of each collation number.

        The tables are listed first: a table that is made after that has all of its rows in the binlog behind the head.
        """
        connection = connect(self.config.server, self.credentials)
        try:
            reader = InformationSchema(connection)
            tables = [t for t in reader.tables() if self.config.tables.captures(*t)]
            check_tables(self.config, self._drainer.shape, reader, tables)
            found = [*versioned(self.config, reader.versioned())]
            facts = read_facts(connection, self.config.server)
            charsets = read_charsets(connection)
        finally:
            connection.close()
        errors = [finding for finding in (*judge(facts), *found) if finding.level == "error"]
        if errors:
            raise UnsupportedServer(
                "; ".join(finding.what for finding in errors),
                hint=" ".join(finding.mend for finding in errors),
                source=self.config.source,
            )
        return facts, tables, charsets

    def _begin_lake(self, drain: Cursor) -> None:
        """Make the lake cursor; it begins with the first batch, or where the drain cursor stands."""
        manifest = self._merging.oldest_batch()
        position = manifest.window.start if manifest and manifest.window else drain.position
        move = Move(_now(), "start", None, position, drain.moves[-1].by if drain.moves else "")
        lake = replace(
            drain,
            consumer=LAKE,
            generation=0,
            position=position,
            in_flight=(),
            snapshots=(),
            moves=(move,),
            writer="",
            aside=(),
            epoch=manifest.epoch if manifest else drain.epoch,
            identity=manifest.identity if manifest else drain.identity,
            switches=(),
        )
        self.cursors.swap(None, lake)

    def _enrolled(self, cursor: Cursor, facts: ServerFacts, tables: list[tuple[str, str]]) -> Cursor:
        """Add a snapshot for each captured table that has none yet."""
        if self.config.start != "snapshot":
            return cursor
        known = {task.name for task in cursor.snapshots if task.part is None} | {
            one.table for one in cursor.tables_aside
        }
        at = _head(facts)
        snapshot_id = f"{cursor.epoch:06d}-{at.file_number:06d}.{at.offset:012d}"
        for database, table in tables:
            if f"{database}.{table}" not in known:
                cursor = cursor.with_snapshot(
                    SnapshotTask(self.config.source, cursor.epoch, snapshot_id, database, table)
                )
        return cursor

    # --- drain

    def drain(self, unit: Unit) -> DrainResult:
        """Read one unit from the server that the cursor stands on; see :meth:`drain_here`."""
        return self._at(self._address()).drain_here(unit)

    def drain_here(self, unit: Unit) -> DrainResult:
        """Read one unit and write its batches; what is there already is not written again.

        What was acknowledged and is no longer stored was collected since: it is no work.

        Raises:
            DecodeError: something in the binlog is not understood.
            SourceError: the server cannot be reached, or is another one.
            StoreError: the batch cannot be written.
        """
        cursor = self._cursor(DRAIN)
        if unit.epoch != cursor.epoch:
            raise CursorMoved(
                f"the unit belongs to epoch {unit.epoch}, and the cursor stands in epoch {cursor.epoch}",
                hint="Another server took over, or somebody moved the cursor: plan again.",
                source=unit.source,
                unit=unit.id,
            )
        if self._is_collected(unit, cursor):
            return DrainResult(unit.id, batches=0, rows=0, bytes=0, events=0, seconds=0.0)
        if isinstance(unit, Window):
            earlier = [window for window in cursor.in_flight if window.stop <= unit.start]
            aside = Leaving(cursor.spared(unit), cursor.replaced(unit))
            return self._drainer.window(unit, cursor.identity, earlier, aside, cursor.file_times)
        return self._drainer.snapshot(unit, cursor.identity)

    def _is_collected(self, unit: Unit, cursor: Cursor) -> bool:
        """Tell whether a unit was acknowledged and its batch removed since, or is a snapshot that was given up."""
        if isinstance(unit, Window):
            acked = Point.at(unit.epoch, unit.stop) <= Point.at(cursor.epoch, cursor.position)
            return acked and unit.start < unit.stop and self._drainer.manifest(layout.manifest_key(unit)) is None
        known = next((task for task in cursor.snapshots if task.id == unit.id and task.complete), None)
        if known is None or known.given_up:
            return known is not None
        return self._drainer.manifest(layout.chunk_manifest_key(unit, 0)) is None

    def ack_drain(self, *, by: str) -> AckResult:
        """Move the drain cursor over every window in flight whose manifest is there, in order.

        Raises:
            CursorMoved: somebody else moved it at the same moment.
            BatchNotDurable: work is in flight, and none of it has left a batch.
        """
        cursor = self._cursor(DRAIN)
        return self._acknowledge(cursor, self._moved_over_durable(cursor, by))

    def _moved_over_durable(self, cursor: Cursor, by: str) -> Cursor:
        """Return the drain cursor behind all that is durable of what it has in flight."""
        moved = cursor
        counted: list[Manifest] = []
        for window in cursor.in_flight:
            manifest = self._drainer.manifest(layout.manifest_key(window))
            if manifest is None:
                break
            counted.append(manifest)
            moved = over_window(moved, window, manifest, at=_now(), by=by)
        for task in cursor.open_snapshots:
            found = self._drainer.chunks(task)
            complete = bool(found) and found[-1].chunk is not None and found[-1].chunk.last
            moved = moved.with_snapshot(replace(task, chunks=len(found), complete=complete))
            counted += found[-1:]
        lake = self.cursors.load(self.config.source, LAKE)
        return self._quarantine.recorded(moved, lake, counted, at=_now(), by=by)

    def release(self, table: str, *, by: str) -> Aside:
        """Let a table that is set aside go on, with a new snapshot; returns the record of it.

        Raises:
            ConfigError: the table is not set aside, or cannot be read by SELECT.
            SourceError: the server cannot be reached or is another one.
            CursorMoved: somebody else moved the cursor at the same moment.
        """
        cursor = self._cursor(DRAIN)
        moved = self.cursors.swap(cursor, self._here.freed(cursor, table, at=_now(), by=by))
        record = moved.aside_of(table)
        if record is None:
            raise AssertionError(table)
        return record

    def wanted(self, tables: Sequence[str]) -> tuple[Wanted, ...]:
        """Return what a new snapshot of each table would do, where patterns may name several; nothing is changed.

        Raises:
            ConfigError: some are not captured or are set aside, or cannot be read or merged so.
            SourceError: the server cannot be reached.
        """
        return self._here.wanted(self._cursor(DRAIN), tables)

    def snapshot_anew(self, tables: Sequence[str], *, by: str, why: str) -> tuple[Aside, ...]:
        """Take new snapshots of tables, by names or patterns; from now on the lake takes nothing of them until it has these.

        Raises:
            ConfigError: some are not captured or are set aside, or cannot be read or merged so; nothing was changed.
            SourceError: the server cannot be reached or is another one.
            CursorMoved: somebody else moved the cursor at the same moment.
        """
        cursor, lake, here = self._cursor(DRAIN), self.cursors.load(self.config.source, LAKE), self._here
        names = [one.table for one in here.wanted(cursor, tables)]
        moved = self.cursors.swap(cursor, here.anew(cursor, lake, names, why=why, at=_now(), by=by))
        return tuple(record for name in names if (record := moved.aside_of(name)) is not None)

    def snapshot_part(self, wanted: WantedPart, *, by: str) -> SnapshotTask:
        """Read a part of a table again while the lake goes on with the table; returns what is to be drained.

        Raises:
            ConfigError: there is no such part, or the table cannot be read so; nothing was changed.
            SourceError: the server cannot be reached or is another one.
            CursorMoved: somebody else moved the cursor at the same moment.
        """
        cursor, lake = self._cursor(DRAIN), self.cursors.load(self.config.source, LAKE)
        moved = self.cursors.swap(cursor, self._parts.asked(cursor, lake, wanted, at=_now(), by=by))
        (task,) = set(moved.snapshots) - set(cursor.snapshots)
        return task

    def cancel_part(self, table: str) -> None:
        """Give up the snapshot of a part of a table that is not merged: neither read on nor merged.

        Raises:
            ConfigError: there is none.
            CursorMoved: somebody else moved the cursor at the same moment.
        """
        cursor, lake = self._cursor(DRAIN), self.cursors.load(self.config.source, LAKE)
        self.cursors.swap(cursor, self._parts.cancelled(cursor, lake, table))

    def _acknowledge(self, cursor: Cursor, moved: Cursor) -> AckResult:
        """Swap the cursor if it moved and tell how far."""
        waiting = len(moved.in_flight) + len(moved.in_flight_snapshots)
        waiting += len(moved.open_snapshots) if cursor.consumer == DRAIN else 0
        if moved == cursor and waiting:
            raise BatchNotDurable(
                f"{waiting} units are in flight, and none has left its batch",
                hint="Run the drain tasks again; the cursor stays where it is.",
                source=cursor.source,
                consumer=cursor.consumer,
            )
        if moved != cursor:
            self.cursors.swap(cursor, moved)
        return AckResult(
            consumer=cursor.consumer,
            start=cursor.position,
            stop=moved.position,
            windows=len(cursor.in_flight) - len(moved.in_flight),
            chunks=max(0, sum(t.chunks for t in moved.snapshots) - sum(t.chunks for t in cursor.snapshots)),
            waiting=waiting,
            aside=moved.aside[len(cursor.aside) :] if cursor.consumer == DRAIN else (),
        )

    # --- merge

    def plan_merge(self, *, by: str) -> MergePlan | None:
        """Return the batches to merge: what is in flight, else all that is durable; None when the lake has everything.

        What is in flight is planned anew when it would bring what a new snapshot replaces.

        Raises:
            CursorMoved: somebody else planned at the same moment.
            MergeError: a window commits an XA transaction whose rows are in no batch.
        """
        drain = self.cursors.load(self.config.source, DRAIN)
        lake = self.cursors.load(self.config.source, LAKE)
        if drain is None or lake is None:
            return None
        if lake.is_merging:
            lake = self._merging.withdrawn(drain, lake, by)
        if not lake.is_merging:
            lake = self._merging.planned(drain, lake)
        return plan_of(lake) if lake.is_merging else None

    def ack_lake(self, *, by: str) -> AckResult:
        """Move the lake cursor over the merge in flight if its cut is published.

        Raises:
            BatchNotDurable: the merge has not published its cut.
            CursorMoved: somebody else moved the cursor at the same moment.
        """
        lake = self._cursor(LAKE)
        return self._acknowledge(lake, self._merging.acknowledged(lake, by))

    def rollback(self, *, by: str, why: str) -> Cursor:
        """Forget the merge that the lake cursor has in flight, and return the cursor; the next plan_merge plans anew.

        What such a merge has brought already, or brings while it still runs, the tables' markers tell.

        Raises:
            ConfigError: nothing is in flight.
            CursorMoved: there is no cursor, or somebody moved it at the same moment.
        """
        lake = self._cursor(LAKE)
        if not lake.is_merging:
            raise ConfigError(
                "no merge is in flight", hint="There is nothing to forget: cdc merge plans anew.", source=lake.source
            )
        return self.cursors.swap(lake, lake.rolled_back(at=_now(), by=by, why=why))

    def reselector(self) -> Reselector:
        """Return what reads rows back from the server that the drain stands on.

        Raises:
            CursorMoved: the source has not begun.
        """
        cursor = self._cursor(DRAIN)
        config = self.config.at(*address_of(self.config, cursor))
        return Reselector(config, self.credentials, self.store, cursor.identity, cursor.epoch)

    # --- moving by hand

    def seek(self, start: StartAt) -> Found:
        """Find a place at the server; nothing is moved.

        Raises:
            SourceError: the server does not have it.
        """
        return self._starter(self._address()).found(start, self.cursors.load(self.config.source, DRAIN))

    def rewind(self, start: StartAt | None, *, by: str, why: str) -> Cursor:
        """Move the drain cursor to a place at the server, in a new epoch, and return it; the lake follows.

        Args:
            start: the place; None for the one that the cursor left at its last switch or rewind.
            by: who moves it.
            why: the reason; both are kept in the cursor.

        Raises:
            CursorMoved: there is no cursor, or somebody moved it at the same moment.
            ConfigError: there is nothing to go back to.
            SourceError: the server does not have the place.
        """
        cursor = self._cursor(DRAIN)
        starter = self._starter(self._address())
        place = starter.find(starter.left_by(cursor) if start is None else start)
        # What is taken back before anything of it counted leaves nothing; else rows would stay half read again.
        untouched = start is None and cursor.position == cursor.switches[-1].began.position
        durable = cursor if untouched else self._moved_over_durable(cursor, by)
        moved = durable.switched(place, "rewind", at=_now(), by=by, why=why)
        return self.cursors.swap(cursor, moved)

    def switch(self, host: str, port: int, *, by: str) -> Cursor:
        """Let the source go on at another of its servers from now on, and return the drain cursor.

        Raises:
            ConfigError: the source file does not name it.
            SourceError: it cannot be reached, or the cursor cannot go on there.
        """
        if (host, port) not in self.config.addresses:
            known = ", ".join(f"{host}:{port}" for host, port in self.config.addresses)
            raise ConfigError(
                f"{host}:{port} is none of the servers of {self.config.source}",
                hint=f"They are {known}; add it under standbys: in the source file.",
            )
        cursor = self._cursor(DRAIN)
        found = self._starter((host, port)).go_on(cursor, partial(self._moved_over_durable, by=by), by)
        return self.cursors.swap(cursor, found) if found != cursor else cursor

    def _starter(self, address: tuple[str, int]) -> Starter:
        config = self.config.at(*address)
        return Starter(config, self.credentials, facts_of(config.server, self.credentials))

    # --- looking

    def status(self) -> Status:
        """Return where the source stands; a server that cannot be reached leaves head and lag open."""
        return status_of(self._drainer, self.cursors)

    def gauges(self) -> Gauges:
        """Return the figures that are watched; a server that cannot be asked is told of in the warning."""
        return gauges_of(self._drainer, self.cursors)

    def preflight(self) -> list[Finding]:
        """Return what was looked at on the server, each with what mends it.

        Raises:
            SourceError: the server cannot be reached.
        """
        return findings_of(self._drainer, self.cursors)

    def _cursor(self, consumer: str) -> Cursor:
        return begun(self.cursors, self.config.source, consumer)


def _head(facts: ServerFacts) -> Position:
    if facts.head is None:
        raise UnsupportedServer("the server writes no binlog", hint="Start it with --log-bin.")
    return facts.head


def _now() -> datetime:
    return datetime.now(UTC)
