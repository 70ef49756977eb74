"""Plans the units of the next drain: what is in flight, else new windows; and snapshots that are not read to their end."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import starmap

from cdc_lib.binlog.rows.captured_tables import fault_of
from cdc_lib.binlog.rows.hidden_columns import versioned_table
from cdc_lib.drain.columns import cascade_findings, check_tables, shape_of, versioned
from cdc_lib.drain.exclusions import hiding_of
from cdc_lib.errors import ConfigError, UnsupportedServer
from cdc_lib.lake.routing import refuse_collisions
from cdc_lib.merge.answers import undecided
from cdc_lib.merge.held import held_too_long
from cdc_lib.model.binlog_checkpoint import SeenEnd
from cdc_lib.model.cursor import DRAIN, LAKE, Cursor, Move
from cdc_lib.model.missing_transactions import MissingTransactions
from cdc_lib.model.position import Point
from cdc_lib.model.table_name import TableName
from cdc_lib.model.waiting import is_waiting
from cdc_lib.model.window import SnapshotTask
from cdc_lib.mysql.information_schema import InformationSchema
from cdc_lib.mysql.planned_server import refuse_unlogged
from cdc_lib.mysql.preflight import judge
from cdc_lib.mysql.server_facts import ServerFacts, read_charsets, read_facts
from cdc_lib.mysql.xa_recover import facts_without_prepared, wait_for_decisions
from cdc_lib.plan.definitions import ServerDefinitions
from cdc_lib.plan.gaps import refuse_lost
from cdc_lib.plan.start import Starter
from cdc_lib.plan.windows import Limits, plan_windows
from cdc_lib.quarantine.masks_lost import masks_lost
from cdc_lib.quarantine.records import FaultyTable, releases
from cdc_lib.quarantine.resnapshot import ResnapshotRequest
from cdc_lib.quarantine.tables import Quarantine
from cdc_lib.schema_history.versions import UNSEEN, Histories
from cdc_lib.snapshot.division import Divider
from cdc_lib.snapshot.key_dates import KeyDates
from cdc_lib.snapshot.request import SnapshotRequests
from cdc_lib.source import Source
from cdc_lib.steps.ack import over_durable
from cdc_lib.store.complete import note_complete
from cdc_lib.store.manifests import load_manifest
from cdc_lib.store.windows import stored_windows

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Planning:
    """One plan.

    Args:
        source: at the server that is asked.
        by: who plans.
        accepted: transactions that a new server may lack, because a person decided so.
    """

    source: Source
    by: str
    accepted: MissingTransactions | None = None

    def planned(self) -> Cursor:
        """Return the drain cursor with its next windows in flight.

        Raises:
            TransactionsMissing: another server answers, and it never had transactions that were read.
            SourceError: the server cannot be reached, or the cursor cannot continue there.
            CursorMissing: a cursor is missing, although the source has begun.
            CursorMoved: another process planned at the same time.
        """
        source, asked = self.source, _now()
        facts, charsets, definitions, periods = self._look()
        refuse_lost(source)
        cursor = source.cursor(DRAIN)
        if cursor is None:
            if source.config.start == "latest":
                facts = facts_without_prepared(source.config.server, source.credentials, facts)
            cursor = source.cursors.swap(None, Starter(source, facts).begin(self.by))
        if source.cursor(LAKE) is None:
            self._begin_lake(cursor)
        self._note_complete(cursor, facts, asked)
        starter = Starter(source, facts)
        cursor = self._continued(starter, cursor)
        known = dict.fromkeys(cursor.versions, False)
        histories = Histories(source.config, source.credentials, source.store, cursor.epoch, facts, charsets, known)
        unseen, unfinished = definitions.compared(histories, cursor)
        planned = self._without_colliding(cursor.with_versions(known), definitions.tables)
        planned = self._without_versioned(planned, periods)
        planned = self._with_snapshots_again(self._with_unseen(planned, unseen))
        planned = self._with_masks_lost(planned, histories, definitions, facts)
        if tables := planned.tables_to_resnapshot:
            requests = SnapshotRequests(source)
            planned = requests.with_snapshots(planned, tables, at=_now(), by=self.by, planned=True)
        planned = KeyDates(source).looked_at(self._enrolled(planned, facts, definitions.tables))
        planned = Divider(source).divided(planned)
        if planned != cursor:
            # The chunks are read after the commits of what is prepared now, perhaps before the source began.
            wait_for_decisions(source.config.server, source.credentials, facts)
        if not cursor.in_flight:
            limits = Limits(int(source.config.drain.max_window_bytes), source.config.drain.max_windows)
            windows = plan_windows(planned, facts.files, facts.end, limits, releases(planned))
            seen = SeenEnd(Point.at(planned.epoch, facts.end), facts.clock) if windows else planned.seen
            planned = replace(planned.with_windows(windows), seen=seen)
            planned = starter.with_file_times(planned, {w.stop.file for w in windows})
        # Before the windows, which are read with these foreign keys.
        definitions.note(source.store, unfinished)
        return source.cursors.swap(cursor, planned) if planned != cursor else cursor

    def _look(self) -> tuple[ServerFacts, dict[int, str], ServerDefinitions, Sequence[tuple[str, str]]]:
        """Return what a plan asks of the server: facts, the character set of each collation number, captured tables, versioned ones.

        The tables are listed first: a table that is created later has all of its rows after the end of the binlog. Those WITH
        SYSTEM VERSIONING are listed after that end: what was made one of them before is among them.
        """
        source, config = self.source, self.source.config
        with closing(source.connect()) as connection:
            reader = InformationSchema(connection)
            seen = reader.tables()
            tables = config.tables.select(seen)
            for pattern in config.tables.unmatched(seen):
                log.warning("%s: %s under tables.include names no table of the server", source.name, pattern)
            facts = read_facts(connection, config.server)
            periods = config.tables.select(reader.versioned())
            charsets = read_charsets(connection)
            if config.on_error != "quarantine":
                refuse_collisions(config, [TableName(*table) for table in tables])
            check = partial(check_tables, config, shape_of(config, source.credentials), reader)
            definitions = ServerDefinitions.read(connection, config, source.store, facts, tables, check)
            for one in cascade_findings(config, definitions.cascades):
                log.warning("%s: %s. %s", source.name, one.what, one.hint)
        refuse_unlogged(facts, source.name)
        errors = [finding for finding in (*judge(facts), *versioned(config, periods)) if finding.level == "error"]
        if errors:
            raise UnsupportedServer(
                "; ".join(finding.what for finding in errors),
                hint=" ".join(finding.hint for finding in errors),
                source=source.name,
            )
        return facts, charsets, definitions, periods

    def _begin_lake(self, drain: Cursor) -> None:
        """Create the lake cursor; it begins with the first batch, or at the drain cursor."""
        stored = stored_windows(self.source.store, self.source.name)
        manifest = load_manifest(self.source.store, stored[0].key) if stored else None
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
        self.source.cursors.swap(None, lake)

    def _note_complete(self, drain: Cursor, facts: ServerFacts, asked: datetime) -> None:
        """Store the time when the lake had every change: the lag grows from then on while the server cannot be reached."""
        lake = self.source.cursor(LAKE)
        if lake is None or lake.position != facts.binlog_end or is_waiting(drain, lake):
            return
        if facts.identity.is_same_server(lake.identity):
            note_complete(self.source.store, self.source.name, asked, facts.clock)

    def _continued(self, starter: Starter, cursor: Cursor) -> Cursor:
        """Return the stored drain cursor, in a new epoch if another server answers."""
        found = starter.continued(cursor, partial(over_durable, self.source, by=self.by), self.by, self.accepted)
        if found == cursor:
            return cursor
        if found.epoch > cursor.epoch:
            lake = self.source.cursor(LAKE)
            found = Quarantine(self.source).after_failover(found, lake, at=_now(), by=self.by)
        return self.source.cursors.swap(cursor, found)

    def _with_unseen(self, cursor: Cursor, tables: Collection[tuple[str, str]]) -> Cursor:
        """Return the drain cursor with requests for new snapshots of tables that changed without a statement."""
        if not tables:
            return cursor
        lake, names = self.source.cursor(LAKE), [TableName(*one) for one in tables]
        return Quarantine(self.source).with_new_snapshots(
            cursor, lake, names, ResnapshotRequest(UNSEEN, _now(), self.by)
        )

    def _without_colliding(self, cursor: Cursor, tables: Sequence[tuple[str, str]]) -> Cursor:
        """Return the drain cursor with new tables quarantined whose lake table would be another's as well."""
        if self.source.config.on_error != "quarantine":
            return cursor
        lake, names = self.source.required(LAKE), [TableName(*table) for table in tables]
        return Quarantine(self.source).colliding(cursor, lake, names, at=_now(), by=self.by)

    def _without_versioned(self, cursor: Cursor, tables: Collection[tuple[str, str]]) -> Cursor:
        """Return the drain cursor with tables quarantined whose rows of the past the binlog has among those of now."""
        if not tables:
            return cursor
        known = {one.table for one in cursor.quarantined_tables}
        faulty = [
            FaultyTable(table, fault_of(versioned_table(table), cursor.position), cursor.position, None)
            for table in starmap(TableName, tables)
            if table not in known
        ]
        return Quarantine(self.source).with_faulty(cursor, self.source.cursor(LAKE), faulty, at=_now(), by=self.by)

    def _with_snapshots_again(self, cursor: Cursor) -> Cursor:
        """Return the drain cursor with requests for new snapshots of tables that were being read when an epoch ended."""
        lake = self.source.cursor(LAKE)
        if lake is None or not lake.held:
            return cursor
        still = undecided(self.source, lake.held)
        if not (tables := held_too_long(cursor, lake, still)):
            return cursor
        request = ResnapshotRequest("its snapshot was being read when an epoch ended", _now(), self.by)
        return Quarantine(self.source).with_new_snapshots(cursor, lake, tables, request)

    def _with_masks_lost(
        self, cursor: Cursor, histories: Histories, definitions: ServerDefinitions, facts: ServerFacts
    ) -> Cursor:
        """Return the drain cursor with the tables quarantined that lost a mask since the cursor, before a snapshot reads them."""
        hiding, again = hiding_of(self.source.config), definitions.defined_again
        if hiding is None or not again:  # also of a masked table alone: EXCHANGE PARTITION defines no other again
            return cursor
        statements = histories.statements(cursor.position, facts.end)
        faulty = masks_lost(hiding, cursor, statements, fold=facts.folds_names)
        return Quarantine(self.source).with_faulty(cursor, self.source.cursor(LAKE), faulty, at=_now(), by=self.by)

    def _enrolled(self, cursor: Cursor, facts: ServerFacts, tables: Sequence[tuple[str, str]]) -> Cursor:
        """Add a snapshot for each captured table that has none yet."""
        if self.source.config.start != "snapshot":
            return cursor
        known = {task.name for task in cursor.snapshots if task.selection is None} | {
            one.table for one in cursor.quarantined_tables
        }
        snapshot_id = f"{cursor.epoch:06d}-{facts.end.sortable}"
        return cursor.with_snapshots(
            SnapshotTask(self.source.name, cursor.epoch, snapshot_id, database, table, to_divide=True)
            for database, table in tables
            if TableName(database, table) not in known
        )


def refuse_nothing(source: Source) -> None:
    """Refuse a source whose patterns match no table: it would silently never drain anything.

    Raises:
        ConfigError: no table of the server is captured.
        SourceError: the server cannot be reached.
    """
    tables = source.config.tables
    with closing(source.at_its_server().connect()) as connection:
        if tables.select(InformationSchema(connection).tables()):
            return
    raise ConfigError(
        f"no table of the server is captured by {', '.join(tables.include)}",
        hint="Correct tables.include, make the table, or GRANT SELECT on it; cdc doctor prints the statement.",
        source=source.name,
    )


def _now() -> datetime:
    return datetime.now(UTC)
