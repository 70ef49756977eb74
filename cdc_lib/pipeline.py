"""The six steps of the main job; the file to read first.

    plan → drain (one call per unit) → ack_drain → plan_merge → merge (Spark) → ack_lake

Every step can be repeated at any time: cursors and store show what is done. ``plan`` and ``plan_merge`` fix the work in a cursor
before it begins; the acks count manifests and cuts, never what a caller reports.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

from cdc_lib.binlog.statement_reader import Dated
from cdc_lib.compile_kernels import compile_once
from cdc_lib.config import Credentials, SourceConfig, StoreKeys
from cdc_lib.config.shape import has_every_rule
from cdc_lib.config.start import StartAt
from cdc_lib.drain.columns import cascade_findings, check_tables, shape_of, versioned
from cdc_lib.drain.exclusions import Exclusions, hiding_of
from cdc_lib.drain.window import Drainer
from cdc_lib.errors import BatchNotDurable, CdcError, ConfigError, CursorMoved, DecodeError, UnsupportedServer
from cdc_lib.lake.routing import refuse_collisions
from cdc_lib.merge.answers import answer_question, find_question, undecided
from cdc_lib.merge.held import held_too_long
from cdc_lib.merge.planner import Merging, plan_of
from cdc_lib.model.binlog_checkpoint import SeenEnd
from cdc_lib.model.cursor import DRAIN, LAKE, Cursor, Move
from cdc_lib.model.figures import SourceFigures
from cdc_lib.model.finding import Finding
from cdc_lib.model.manifest import Manifest
from cdc_lib.model.merge_plan import MergePlan
from cdc_lib.model.missing_transactions import MissingTransactions
from cdc_lib.model.observation import DrainObservation, TablesObservation
from cdc_lib.model.position import Point, Position
from cdc_lib.model.quarantine import QuarantineRecord
from cdc_lib.model.results import AckResult, DrainResult, Gauges, LocatedPosition, ResnapshotPreview, Status
from cdc_lib.model.schema_question import Decision, SchemaAnswer, SchemaQuestion
from cdc_lib.model.table_name import TableName
from cdc_lib.model.waiting import is_waiting
from cdc_lib.model.window import DrainUnit, SnapshotTask, Window
from cdc_lib.mysql.connection import connect
from cdc_lib.mysql.information_schema import InformationSchema
from cdc_lib.mysql.planned_server import refuse_unlogged
from cdc_lib.mysql.preflight import judge
from cdc_lib.mysql.server_facts import ServerFacts, facts_of, read_charsets, read_facts
from cdc_lib.mysql.xa_recover import facts_without_prepared, wait_for_decisions
from cdc_lib.plan.ack import over_window, refuse_used_twice, used_twice
from cdc_lib.plan.definitions import ServerDefinitions
from cdc_lib.plan.gaps import refuse_lost
from cdc_lib.plan.start import Starter, address_of, reachable
from cdc_lib.plan.windows import Limits, plan_windows
from cdc_lib.ports import CursorStore, ObjectStore
from cdc_lib.quarantine.masks_lost import MaskGuard, masks_lost
from cdc_lib.quarantine.records import releases
from cdc_lib.quarantine.resnapshot import ResnapshotRequest
from cdc_lib.quarantine.tables import Quarantine
from cdc_lib.reselect.rows import Reselector
from cdc_lib.schema_history.versions import UNSEEN, Histories
from cdc_lib.snapshot.division import Divider, log_progress
from cdc_lib.snapshot.key_dates import KeyDates
from cdc_lib.snapshot.partial import PartialRequest, PartialSnapshots
from cdc_lib.snapshot.reader import SnapshotReader
from cdc_lib.snapshot.request import SnapshotRequests
from cdc_lib.status.figures import figures_of
from cdc_lib.status.overview import findings_of, gauges_of, observed, status_of
from cdc_lib.store import layout
from cdc_lib.store.complete import note_complete
from cdc_lib.store.cursors import ObjectCursorStore, required_cursor
from cdc_lib.store.manifests import find_manifest, with_stored_chunks
from cdc_lib.store.objects.open import open_store
from cdc_lib.store.observations import last_tables, note_drain
from cdc_lib.store.recent_cursors import RecentCursorStore

log = logging.getLogger(__name__)

__all__ = ["AckResult", "DrainResult", "Finding", "LocatedPosition", "Pipeline", "ResnapshotPreview", "Status"]


@dataclass(frozen=True, slots=True)
class Pipeline:
    """The steps of one source.

    Args:
        config: the source's file.
        credentials: login of the source; steps that only use the store do not need it.
        store: object store of batches, cursors and cuts.
        cursors: the cursor store.
        seen: when plans found tables defined, if that was loaded before ``cursors`` were; see :class:`MaskGuard`.
    """

    config: SourceConfig
    credentials: Credentials
    store: ObjectStore
    cursors: CursorStore
    seen: TablesObservation | None = None

    @classmethod
    def open(cls, config: SourceConfig, credentials: Credentials, keys: StoreKeys | None = None) -> Pipeline:
        """Return the pipeline of a source, without contacting server or store.

        Args:
            config: the source's file.
            credentials: log-in of the source.
            keys: of the store's S3 account; those of the environment without.

        Raises:
            ConfigError: an environment variable that should hold a key of the store is not set.
        """
        store = open_store(config.store, keys)
        return cls(config, credentials, store, ObjectCursorStore(store))

    @property
    def _quarantine(self) -> Quarantine:
        return Quarantine(self.config, self.store)

    @property
    def _snapshot_requests(self) -> SnapshotRequests:
        """At the server that the drain cursor is on."""
        return SnapshotRequests(self.config.at(*self._address()), self.credentials, self.store)

    @property
    def _divider(self) -> Divider:
        return Divider(self.config, self.credentials, self.store)

    @property
    def _parts(self) -> PartialSnapshots:
        return PartialSnapshots(self.config.at(*self._address()), self.credentials, self.store)

    @property
    def _merging(self) -> Merging:
        return Merging(self.config, self.store, self._quarantine, self.cursors)

    # --- plan

    def plan(self, *, by: str, accepted: MissingTransactions | None = None) -> list[DrainUnit]:
        """Return the units to drain, of the server or the first standby that can be reached; see :meth:`plan_here`."""
        return self._at(self._reachable()).plan_here(by=by, accepted=accepted)

    def _at(self, address: tuple[str, int]) -> Pipeline:
        """Return the pipeline of the same source over one of its servers."""
        return self if address == self.config.addresses[0] else replace(self, config=self.config.at(*address))

    def _address(self) -> tuple[str, int]:
        """Return the address of the drain cursor's server."""
        return address_of(self.config, self.cursors.load(self.config.source, DRAIN) if self.config.standbys else None)

    def _reachable(self) -> tuple[str, int]:
        """Return the address of the drain cursor's server, or of the first standby if that cannot be reached."""
        return reachable(self.config, self.credentials, self._address())

    def plan_here(self, *, by: str, accepted: MissingTransactions | None = None) -> list[DrainUnit]:
        """Return the units to drain: what is in flight, else new windows up to the end of the binlog; and unfinished snapshots.

        Args:
            by: who plans.
            accepted: transactions that a new server may lack, because a person decided so.

        Raises:
            TransactionsMissing: another server answers, and it never had transactions that were read.
            SourceError: the server cannot be reached, or the cursor cannot continue there.
            CursorMissing: a cursor is missing, although the source has begun.
            CursorMoved: another process planned at the same time.
        """
        asked = _now()
        facts, charsets, definitions = self._look()
        refuse_lost(self.store, self.cursors, self.config.source)
        cursor = self.cursors.load(self.config.source, DRAIN)
        if cursor is None:
            if self.config.start == "latest":
                facts = facts_without_prepared(self.config.server, self.credentials, facts)
            cursor = self.cursors.swap(None, Starter(self.config, self.credentials, facts).begin(by))
        if self.cursors.load(self.config.source, LAKE) is None:
            self._begin_lake(cursor)
        self._note_complete(cursor, facts, asked)
        starter = Starter(self.config, self.credentials, facts)
        if (found := starter.continued(cursor, partial(self._moved_over_durable, by=by), by, accepted)) != cursor:
            if found.epoch > cursor.epoch:
                lake = self.cursors.load(self.config.source, LAKE)
                found = self._quarantine.after_failover(found, lake, at=_now(), by=by)
            cursor = self.cursors.swap(cursor, found)
        known = dict.fromkeys(cursor.versions, False)
        histories = Histories(self.config, self.credentials, self.store, cursor.epoch, facts, charsets, known)
        unseen, unfinished = definitions.compared(histories, cursor)
        planned = self._without_colliding(cursor.with_versions(known), definitions.tables, by)
        planned = self._with_snapshots_again(self._with_unseen(planned, unseen, by), by)
        planned = self._with_masks_lost(planned, histories, definitions, facts, by)
        if planned.tables_to_resnapshot:
            requests = SnapshotRequests(self.config, self.credentials, self.store)
            planned = requests.with_snapshots(planned, planned.tables_to_resnapshot, at=_now(), by=by, planned=True)
        planned = KeyDates(self.config, self.credentials).looked_at(self._enrolled(planned, facts, definitions.tables))
        planned = self._divider.divided(planned)
        if planned != cursor:
            # The chunks are read after the commits of what is prepared now, perhaps before the source began.
            wait_for_decisions(self.config.server, self.credentials, facts)
        if not cursor.in_flight:
            limits = Limits(int(self.config.drain.max_window_bytes), self.config.drain.max_windows)
            windows = plan_windows(planned, facts.files, _binlog_end(facts), limits, releases(planned))
            seen = SeenEnd(Point.at(planned.epoch, _binlog_end(facts)), facts.clock) if windows else planned.seen
            planned = replace(planned.with_windows(windows), seen=seen)
            planned = starter.with_file_times(planned, {w.stop.file for w in windows})
        # Before the windows, which are read with these foreign keys.
        definitions.note(self.store, unfinished)
        if planned != cursor:
            cursor = self.cursors.swap(cursor, planned)
        log_progress(cursor)
        return [*cursor.snapshot_units, *cursor.in_flight]

    def _with_unseen(self, cursor: Cursor, tables: Collection[tuple[str, str]], by: str) -> Cursor:
        """Return the drain cursor with requests for new snapshots of tables that changed without a statement."""
        if not tables:
            return cursor
        lake, names = self.cursors.load(self.config.source, LAKE), [TableName(*one) for one in tables]
        return self._quarantine.with_new_snapshots(cursor, lake, names, ResnapshotRequest(UNSEEN, _now(), by))

    def _without_colliding(self, cursor: Cursor, tables: Sequence[tuple[str, str]], by: str) -> Cursor:
        """Return the drain cursor with new tables quarantined whose lake table would be another's as well."""
        if self.config.on_error != "quarantine":
            return cursor
        lake = required_cursor(self.cursors, self.config.source, LAKE)
        return self._quarantine.colliding(cursor, lake, [TableName(*table) for table in tables], at=_now(), by=by)

    def _with_snapshots_again(self, cursor: Cursor, by: str) -> Cursor:
        """Return the drain cursor with requests for new snapshots of tables that were being read when an epoch ended."""
        lake = self.cursors.load(self.config.source, LAKE)
        if lake is None or not lake.held:
            return cursor
        still = undecided(self.config, self.store, lake.held)
        if not (tables := held_too_long(cursor, lake, still)):
            return cursor
        request = ResnapshotRequest("its snapshot was being read when an epoch ended", _now(), by)
        return self._quarantine.with_new_snapshots(cursor, lake, tables, request)

    def _with_masks_lost(
        self, cursor: Cursor, histories: Histories, definitions: ServerDefinitions, facts: ServerFacts, by: str
    ) -> Cursor:
        """Return the drain cursor with the tables quarantined that lost a mask since the cursor, before a snapshot reads them."""
        hiding, again = hiding_of(self.config), definitions.defined_again
        if hiding is None or not again:  # also of a masked table alone: EXCHANGE PARTITION defines no other again
            return cursor
        statements = histories.statements(cursor.position, _binlog_end(facts))
        faulty = masks_lost(hiding, cursor, statements, fold=facts.folds_names)
        lake = self.cursors.load(self.config.source, LAKE)
        return self._quarantine.with_faulty(cursor, lake, faulty, at=_now(), by=by)

    def _note_complete(self, drain: Cursor, facts: ServerFacts, asked: datetime) -> None:
        """Store the time when the lake had every change: the lag grows from then on while the server cannot be reached."""
        lake = self.cursors.load(self.config.source, LAKE)
        if lake is None or lake.position != facts.binlog_end or is_waiting(drain, lake):
            return
        if facts.identity.is_same_server(lake.identity):
            note_complete(self.store, self.config.source, asked, facts.clock)

    def _look(self) -> tuple[ServerFacts, dict[int, str], ServerDefinitions]:
        """Return what a plan asks of the server: its facts, the character set of each collation number, and the captured tables.

        The tables are listed first: a table that is created later has all of its rows after the end of the binlog.
        """
        connection = connect(self.config.server, self.credentials)
        try:
            reader = InformationSchema(connection)
            seen = reader.tables()
            tables = [t for t in seen if self.config.tables.captures(*t)]
            for pattern in self.config.tables.unmatched(seen):
                log.warning("%s: %s under tables.include names no table of the server", self.config.source, pattern)
            found = [*versioned(self.config, reader.versioned())]
            facts = read_facts(connection, self.config.server)
            charsets = read_charsets(connection)
            if self.config.on_error != "quarantine":
                refuse_collisions(self.config, [TableName(*table) for table in tables])
            check = partial(check_tables, self.config, shape_of(self.config, self.credentials), reader)
            definitions = ServerDefinitions.read(connection, self.config, self.store, facts, tables, check)
            for one in cascade_findings(self.config, definitions.cascades):
                log.warning("%s: %s. %s", self.config.source, one.what, one.hint)
        finally:
            connection.close()
        refuse_unlogged(facts, self.config.source)
        errors = [finding for finding in (*judge(facts), *found) if finding.level == "error"]
        if errors:
            raise UnsupportedServer(
                "; ".join(finding.what for finding in errors),
                hint=" ".join(finding.hint for finding in errors),
                source=self.config.source,
            )
        return facts, charsets, definitions

    def _begin_lake(self, drain: Cursor) -> None:
        """Create the lake cursor; it begins with the first batch, or at the drain cursor."""
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
            quarantine=(),
            epoch=manifest.epoch if manifest else drain.epoch,
            identity=manifest.identity if manifest else drain.identity,
            epoch_changes=(),
        )
        self.cursors.swap(None, lake)

    def _enrolled(self, cursor: Cursor, facts: ServerFacts, tables: Sequence[tuple[str, str]]) -> Cursor:
        """Add a snapshot for each captured table that has none yet."""
        if self.config.start != "snapshot":
            return cursor
        known = {task.name for task in cursor.snapshots if task.selection is None} | {
            one.table for one in cursor.quarantined_tables
        }
        at = _binlog_end(facts)
        snapshot_id = f"{cursor.epoch:06d}-{at.sortable}"
        return cursor.with_snapshots(
            SnapshotTask(self.config.source, cursor.epoch, snapshot_id, database, table, to_divide=True)
            for database, table in tables
            if TableName(database, table) not in known
        )

    # --- drain

    def for_snapshots(self) -> Pipeline:
        """Return the pipeline with which many snapshots are drained: it loads the drain cursor, which holds them all, only now and then."""
        return replace(self, cursors=RecentCursorStore(self.cursors), seen=self._seen())

    def _seen(self) -> TablesObservation | None:
        """Return when plans found tables defined, for snapshots of a source that hides columns."""
        return last_tables(self.store, self.config.source) if hiding_of(self.config) is not None else None

    def drain(self, unit: DrainUnit, *, until: datetime | None = None) -> DrainResult:
        """Read one unit from the server of the drain cursor; see :meth:`drain_here`."""
        return self._at(self._address()).drain_here(unit, until=until)

    def drain_here(self, unit: DrainUnit, *, until: datetime | None = None) -> DrainResult:
        """Read one unit and write its batches; existing batches are not written again.

        An acknowledged unit that is no longer stored was garbage collected and is not read again.

        Args:
            unit: in flight.
            until: when reading the snapshot of a whole table ends (UTC), after at least one chunk; a later call goes on.
                None: after its last chunk.

        Raises:
            DecodeError: something in the binlog cannot be decoded.
            SourceError: the server cannot be reached, or is another one.
            StoreError: the batch cannot be written.
        """
        # Before the cursor: what a later plan has seen is decided in that.
        seen = self.seen or (self._seen() if isinstance(unit, SnapshotTask) else None)
        cursor = self._cursor(DRAIN)
        if unit.epoch != cursor.epoch:
            raise CursorMoved(
                f"the unit belongs to epoch {unit.epoch}, and the cursor is in epoch {cursor.epoch}",
                hint="Another server took over, or somebody moved the cursor: plan again.",
                source=unit.source,
                unit=unit.id,
            )
        if self._is_collected(unit, cursor):
            return DrainResult(unit.id, batches=0, rows=0, bytes=0, events=0, seconds=0.0)
        compile_once()
        try:
            result = self._read(unit, cursor, until, seen)
        except CdcError as error:
            error.fill(source=self.config.source)
            if isinstance(error, DecodeError):
                error.effect = "Nothing was acknowledged."
            raise
        if result.batches:
            drained = DrainObservation(unit.source, _now(), unit.id, result.seconds, result.rows, result.bytes)
            note_drain(self.store, drained)
        return result

    def _read(
        self, unit: DrainUnit, cursor: Cursor, until: datetime | None, seen: TablesObservation | None
    ) -> DrainResult:
        config = self.config.with_text_keys(cursor.text_keys)
        if isinstance(unit, Window):
            earlier = [window for window in cursor.in_flight if window.stop <= unit.start]
            excluded = Exclusions.of(cursor, unit)
            drainer = Drainer(config, self.credentials, self.store, known=cursor.versions)
            before = cursor.gtids_before(unit)
            return drainer.window(unit, cursor.identity, earlier, excluded, cursor.file_times, before)
        # All tables wait for a part: it is read to its end.
        until = until if unit.selection is None else None
        hiding = hiding_of(config)
        reader = SnapshotReader(config, self.credentials, self.store)
        if hiding is not None and not has_every_rule(config, *unit.name.pair):
            statements = partial(self._statements, cursor)
            guard = MaskGuard(config, self.credentials, hiding, unit.name, cursor, seen, statements)
            reader = replace(reader, mask_lost=guard.lost)
        return reader.read(unit, cursor.identity, until)

    def _statements(self, cursor: Cursor, facts: ServerFacts) -> Sequence[Dated]:
        """Return the statements from a cursor to the end of the binlog that define something."""
        connection = connect(self.config.server, self.credentials)
        try:
            charsets = read_charsets(connection)
        finally:
            connection.close()
        histories = Histories(self.config, self.credentials, self.store, cursor.epoch, facts, charsets, {})
        return histories.statements(cursor.position, _binlog_end(facts))

    def _is_collected(self, unit: DrainUnit, cursor: Cursor) -> bool:
        """Whether a unit's batch was acknowledged and garbage collected, or the unit is a dropped snapshot."""
        if isinstance(unit, Window):
            acked = Point.at(unit.epoch, unit.stop) <= Point.at(cursor.epoch, cursor.position)
            return acked and unit.start < unit.stop and find_manifest(self.store, layout.manifest_key(unit)) is None
        # Fields, and not ids, are compared: of many snapshots each asks this of all.
        whole = unit.snapshot_id, unit.database, unit.table
        tasks = (task for task in cursor.snapshots if task.complete)
        known = next((one for one in tasks if (one.snapshot_id, one.database, one.table) == whole), None)
        if known is None or known.cancelled:
            return known is not None
        return find_manifest(self.store, layout.chunk_manifest_key(unit, 0)) is None

    def ack_drain(self, *, by: str) -> AckResult:
        """Move the drain cursor over every window in flight whose manifest exists, in order.

        Raises:
            CursorMoved: another process moved it at the same time.
            BatchNotDurable: units are in flight, and none has a batch.
            PositionNotFound: the server gave the GTIDs of a window to other transactions before it.
        """
        cursor = self._cursor(DRAIN)
        moved = self._moved_over_durable(cursor, by)
        if moved == cursor and cursor.in_flight:
            refuse_used_twice(cursor, find_manifest(self.store, layout.manifest_key(cursor.in_flight[0])))
        return self._acknowledge(cursor, moved)

    def _moved_over_durable(self, cursor: Cursor, by: str) -> Cursor:
        """Return the drain cursor after its durable units in flight."""
        moved = cursor
        counted: list[Manifest] = []
        for window in cursor.in_flight:
            manifest = find_manifest(self.store, layout.manifest_key(window))
            if manifest is None or used_twice(moved, manifest):
                break
            counted.append(manifest)
            moved = over_window(moved, window, manifest, at=_now(), by=by)
        stored = with_stored_chunks(self.store, cursor.open_snapshots)
        counted += [last for _, lasts in stored for last in lasts]
        moved = moved.with_snapshots(task for task, _ in stored)
        lake = self.cursors.load(self.config.source, LAKE)
        return self._quarantine.recorded(moved, lake, counted, at=_now(), by=by)

    def resume_table(self, table: str, *, by: str) -> QuarantineRecord:
        """Resume a quarantined table with a new snapshot; returns its record.

        Raises:
            ConfigError: the table is not quarantined, or cannot be read by SELECT.
            SourceError: the server cannot be reached or is another one.
            CursorMoved: another process moved the cursor at the same time.
        """
        name, cursor = TableName.parse(table), self._cursor(DRAIN)
        moved = self.cursors.swap(cursor, self._snapshot_requests.resume_quarantined(cursor, name, at=_now(), by=by))
        record = moved.quarantine_record(name)
        if record is None:
            raise AssertionError(table)
        return record

    def schema_question(self, table: str, decision: Decision, position: Position | None = None) -> SchemaQuestion:
        """Return the schema change that an answer would be about; nothing is recorded, and no server is contacted.

        Args:
            table: ``database.table``.
            decision: what the lake would do.
            position: of the statement; None for the one at which the table waits.

        Raises:
            ConfigError: the table does not wait there, or the answer is not possible.
        """
        return find_question(self.config, self.store, table, decision, position)

    def answer_schema_change(
        self, table: str, decision: Decision, position: Position | None = None, *, by: str
    ) -> SchemaAnswer:
        """Record what the lake does about the schema change at which a table waits; the next merge applies it.

        Args:
            table: ``database.table``.
            decision: what the lake does.
            position: of the statement; None for the one at which the table waits.
            by: who answers, for people.

        Raises:
            ConfigError: the table does not wait there, or the answer is not possible; nothing was recorded.
        """
        return answer_question(self.config, self.store, table, decision, position, at=_now(), by=by)

    def preview_resnapshot(self, tables: Sequence[str]) -> tuple[ResnapshotPreview, ...]:
        """Return what a new snapshot of the tables would do, by names or patterns; nothing is changed.

        Raises:
            ConfigError: a table is not captured, or cannot be read or merged.
            SourceError: the server cannot be reached.
        """
        return self._snapshot_requests.preview(self._cursor(DRAIN), tables)

    def resnapshot(
        self, tables: Sequence[str], *, by: str, why: str, replaces: bool = False
    ) -> tuple[QuarantineRecord, ...]:
        """Request new snapshots of tables, by names or patterns; the lake merges none of their changes until it has these.

        With ``replaces`` the lake tables begin again with them, without the history that they keep.

        Raises:
            ConfigError: a table is not captured, or cannot be read or merged; nothing was changed.
            SourceError: the server cannot be reached or is another one.
            CursorMoved: another process moved the cursor at the same time.
        """
        cursor, lake, here = self._cursor(DRAIN), self.cursors.load(self.config.source, LAKE), self._snapshot_requests
        names = [one.table for one in here.preview(cursor, tables)]
        moved = self.cursors.swap(
            cursor, here.resnapshot(cursor, lake, names, why=why, at=_now(), by=by, replaces=replaces)
        )
        last = {one.table: one for one in moved.quarantine}
        return tuple(last[name] for name in names if name in last)

    def snapshot_rows(self, wanted: PartialRequest, *, by: str) -> SnapshotTask:
        """Request a partial snapshot, while merging of the table continues; returns the task to be drained.

        Raises:
            ConfigError: there are no such rows, or the table cannot be read in parts; nothing was changed.
            SourceError: the server cannot be reached or is another one.
            CursorMoved: another process moved the cursor at the same time.
        """
        cursor, lake = self._cursor(DRAIN), self.cursors.load(self.config.source, LAKE)
        moved = self.cursors.swap(cursor, self._parts.requested(cursor, lake, wanted, at=_now(), by=by))
        (task,) = set(moved.snapshots) - set(cursor.snapshots)
        return task

    def cancel_snapshot(self, table: str) -> None:
        """Cancel the partial snapshot of a table: it is neither read further nor merged.

        Raises:
            ConfigError: there is no unmerged partial snapshot.
            CursorMoved: another process moved the cursor at the same time.
        """
        cursor, lake = self._cursor(DRAIN), self.cursors.load(self.config.source, LAKE)
        self.cursors.swap(cursor, self._parts.cancelled(cursor, lake, TableName.parse(table)))

    def _acknowledge(self, cursor: Cursor, moved: Cursor) -> AckResult:
        """Swap the cursor if it moved, and return how far."""
        waiting = len(moved.in_flight) + len(moved.in_flight_snapshots)
        waiting += len(moved.open_snapshots) if cursor.consumer == DRAIN else 0
        if moved == cursor and waiting:
            what, hint = f"{waiting} units are in flight, and none has written its batch", "drain {} writes them"
            if cursor.consumer == LAKE:
                what, hint = "a merge is in flight, and it has not published its cut", "merge {} merges it"
            raise BatchNotDurable(
                what,
                hint=f"cdc step {hint.format(cursor.source)}; the cursor stays where it is.",
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
            quarantined=moved.quarantine[len(cursor.quarantine) :] if cursor.consumer == DRAIN else (),
        )

    # --- merge

    def plan_merge(self, *, by: str) -> MergePlan | None:
        """Return the batches to merge: the plan in flight, else all durable batches; None if all are merged.

        The plan in flight is replaced if it contains changes that a new snapshot replaces.

        Raises:
            CursorMoved: another process planned at the same time.
            MergeError: a window commits an XA transaction whose rows are in no batch.
            BatchesMissing: the next batch is not stored.
            CursorMissing: a cursor is missing, although the source has begun.
        """
        refuse_lost(self.store, self.cursors, self.config.source)
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
            CursorMoved: another process moved the cursor at the same time.
        """
        lake = self._cursor(LAKE)
        return self._acknowledge(lake, self._merging.acknowledged(lake, by))

    def rollback(self, *, by: str, why: str) -> Cursor:
        """Drop the merge that the lake cursor has in flight, and return the cursor; the next plan_merge plans again.

        The tables' markers record what such a merge has already committed, or commits while it still runs.

        Raises:
            ConfigError: nothing is in flight.
            CursorMoved: there is no cursor, or another process moved it at the same time.
        """
        lake = self._cursor(LAKE)
        if not lake.is_merging:
            raise ConfigError(
                "no merge is in flight",
                hint="There is nothing to forget: cdc step merge plans again.",
                source=lake.source,
            )
        return self.cursors.swap(lake, lake.rolled_back(at=_now(), by=by, why=why))

    def reselector(self) -> Reselector:
        """Return the reselector for the drain cursor's server.

        Raises:
            CursorMoved: the source was never planned.
        """
        cursor = self._cursor(DRAIN)
        config = self.config.at(*address_of(self.config, cursor)).with_text_keys(cursor.text_keys)
        return Reselector(config, self.credentials, self.store, cursor.identity, cursor.epoch)

    # --- moving by hand

    def locate(self, start: StartAt) -> LocatedPosition:
        """Find a position at the server, or at the standby that takes over; no cursor moves.

        Raises:
            SourceError: the server does not have it.
        """
        return self._starter(self._reachable()).locate(start, self.cursors.load(self.config.source, DRAIN))

    def rewind(self, start: StartAt | None, *, by: str, why: str) -> Cursor:
        """Move the drain cursor to a position at the server, in a new epoch, and return it; the lake follows.

        If the server cannot be reached, the position is at the standby at which the next plan would continue.

        Args:
            start: the position; None for the one before the last failover or rewind.
            by: who moves it.
            why: the reason; both are stored in the cursor.

        Raises:
            CursorMoved: there is no cursor, or another process moved it at the same time.
            ConfigError: there is nothing to go back to.
            SourceError: the server does not have the position.
        """
        cursor = self._cursor(DRAIN)
        starter = self._starter(self._reachable())
        checkpoint = starter.find(starter.previous_position(cursor) if start is None else start)
        # What is taken back before anything of it counted leaves nothing; else rows would stay half read again.
        untouched = start is None and cursor.position == cursor.epoch_changes[-1].new_start.position
        durable = cursor if untouched else self._moved_over_durable(cursor, by)
        moved = durable.with_new_epoch(checkpoint, "rewind", at=_now(), by=by, why=why)
        return self.cursors.swap(cursor, moved)

    def fail_over(self, host: str, port: int, *, by: str, missing: str = "") -> Cursor:
        """Continue at another server of the source, and return the drain cursor.

        Args:
            host: of the server.
            port: of the server.
            by: who requests it.
            missing: GTIDs of transactions that were read and that the server may lack.

        Raises:
            TransactionsMissing: the server never had other transactions that were read.
            ConfigError: the source file does not name the server.
            SourceError: it cannot be reached, or the cursor cannot continue there.
        """
        if (host, port) not in self.config.addresses:
            known = ", ".join(f"{host}:{port}" for host, port in self.config.addresses)
            raise ConfigError(
                f"{host}:{port} is not a server of {self.config.source}",
                hint=f"They are {known}; add it under standbys: in the source file.",
            )
        cursor = self._cursor(DRAIN)
        starter = self._starter((host, port))
        accepted = MissingTransactions(str(starter.facts.identity), missing) if missing else None
        found = starter.continued(cursor, partial(self._moved_over_durable, by=by), by, accepted)
        return self.cursors.swap(cursor, found) if found != cursor else cursor

    def _starter(self, address: tuple[str, int]) -> Starter:
        config = self.config.at(*address)
        return Starter(config, self.credentials, facts_of(config.server, self.credentials))

    # --- looking

    def status(self) -> Status:
        """Return the status of the source: what server and store say, as far as they can be asked."""
        return status_of(self.config, lambda: self.credentials, lambda: (self.store, self.cursors))

    def is_idle(self) -> bool:
        """Whether the lake has all that is planned or acknowledged, and no merge is in flight; the server is not asked."""
        drain = self.cursors.load(self.config.source, DRAIN)
        lake = self.cursors.load(self.config.source, LAKE)
        return drain is not None and lake is not None and not (is_waiting(drain, lake) or lake.is_merging)

    def gauges(self) -> Gauges:
        """Return the monitored figures, and keep what the server said; an unreachable server becomes a warning in them."""
        return gauges_of(self.config, self.credentials, self.store, self.cursors)

    def figures(self, *, ask: bool) -> SourceFigures:
        """Return the figures of the source for monitoring.

        Args:
            ask: whether the server is asked. If it is not, or cannot be reached, what the last plan saw counts.
        """
        seen = observed(self.config, self.credentials, self.cursors) if ask else None
        return figures_of(self.config, self.store, self.cursors, _now(), seen)

    def preflight(self) -> list[Finding]:
        """Return the findings about the server, each with a hint.

        Raises:
            SourceError: the server cannot be reached.
        """
        return findings_of(self.config, self.credentials, self.store, self.cursors)

    def refuse_nothing(self) -> None:
        """Refuse a source whose patterns match no table: it would silently never drain anything.

        Raises:
            ConfigError: no table of the server is captured.
            SourceError: the server cannot be reached.
        """
        connection = connect(self.config.at(*self._address()).server, self.credentials)
        try:
            if any(self.config.tables.captures(*table) for table in InformationSchema(connection).tables()):
                return
        finally:
            connection.close()
        raise ConfigError(
            f"no table of the server is captured by {', '.join(self.config.tables.include)}",
            hint="Correct tables.include, make the table, or GRANT SELECT on it; cdc doctor prints the statement.",
            source=self.config.source,
        )

    def _cursor(self, consumer: str) -> Cursor:
        if (cursor := self.cursors.load(self.config.source, consumer)) is not None:
            return cursor
        refuse_lost(self.store, self.cursors, self.config.source)
        return required_cursor(self.cursors, self.config.source, consumer)


def _binlog_end(facts: ServerFacts) -> Position:
    if facts.binlog_end is None:
        raise UnsupportedServer("the server writes no binlog", hint="Start it with --log-bin.")
    return facts.binlog_end


def _now() -> datetime:
    return datetime.now(UTC)
