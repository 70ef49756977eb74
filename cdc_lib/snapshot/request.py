"""Requests new snapshots of tables, quarantined ones included."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from cdc_lib.config.patterns import matches, problem
from cdc_lib.drain.columns import shape_of
from cdc_lib.errors import CdcError, ConfigError, LakeTableShared, SourceUnavailable, TableUnreadable
from cdc_lib.lake.routing import LakeMerge, collisions, indistinct, indistinct_tables, lake_merges
from cdc_lib.model.by_table import table_by_table
from cdc_lib.model.cursor import Cursor
from cdc_lib.model.position import Position
from cdc_lib.model.projection import refuse_masked_keys
from cdc_lib.model.quarantine import Fault
from cdc_lib.model.results import ResnapshotPreview
from cdc_lib.model.schema import TableSchema
from cdc_lib.model.table_name import TableName
from cdc_lib.model.window import SnapshotTask
from cdc_lib.mysql.information_schema import InformationSchema
from cdc_lib.mysql.server_facts import ServerFacts, read_charsets, read_facts
from cdc_lib.mysql.watermark import low_watermark
from cdc_lib.mysql.xa_recover import wait_for_decisions
from cdc_lib.plan.start import Starter
from cdc_lib.quarantine.records import open_record, refuse, resume
from cdc_lib.quarantine.resnapshot import ResnapshotRequest
from cdc_lib.quarantine.tables import Quarantine
from cdc_lib.schema_history.versions import Histories
from cdc_lib.source import Source

log = logging.getLogger(__name__)

_TRIES = 20
_PAUSE = 0.5
_NAMED = 20
"""Tables that an error lists at most."""


@dataclass(frozen=True, slots=True)
class SnapshotRequests:
    """Requests new snapshots of whole tables of one source.

    Args:
        source: the source.
    """

    source: Source

    def preview(self, cursor: Cursor, patterns: Sequence[str]) -> tuple[ResnapshotPreview, ...]:
        """Return what a new snapshot of each table will do.

        Args:
            cursor: the drain cursor.
            patterns: ``database.table`` each, or patterns as in the source file.

        Raises:
            ConfigError: some tables are not captured, or cannot be snapshotted or merged.
            SourceError: the server cannot be reached.
        """
        with closing(self.source.connect()) as connection:
            reader = InformationSchema(connection)
            captured = self._captured(reader)
            tables = self._chosen(patterns, captured)
            schemas, refused = self._readable(reader, tables, captured, cursor)
        for error in refused.values():
            raise error
        quarantined = {record.table for record in cursor.quarantined_tables if record.fault is not None}
        reading = {task.name for task in cursor.open_snapshots}
        return tuple(
            ResnapshotPreview(table, bool(schema.primary_key), table in reading, table in quarantined)
            for table, schema in schemas.items()
        )

    def resnapshot(
        self,
        cursor: Cursor,
        lake: Cursor | None,
        tables: Sequence[TableName],
        *,
        why: str,
        at: datetime,
        by: str,
        replaces: bool = False,
    ) -> Cursor:
        """Return the drain cursor with a new snapshot of each table; the lake pauses a table until its snapshot is merged.

        Args:
            cursor: the drain cursor.
            lake: the lake's.
            tables: as from :meth:`preview`.
            why: the reason, for messages.
            at: now (UTC).
            by: who requests it.
            replaces: whether the lake tables begin again with the snapshots, without the history that they keep.

        Raises:
            ConfigError: see :meth:`with_snapshots`.
            SourceError: the server cannot be reached or is another one.
        """
        quarantine, request = Quarantine(self.source), ResnapshotRequest(why, at, by, replaces=replaces)
        recorded = quarantine.with_new_snapshots(cursor, lake, tables, request)
        return self.with_snapshots(recorded, tables, at=at, by=by)

    def resume_quarantined(self, cursor: Cursor, table: TableName, *, at: datetime, by: str) -> Cursor:
        """Return the drain cursor with a new snapshot of a quarantined table.

        Raises:
            ConfigError: the table is not quarantined; or see :meth:`with_snapshots`.
            SourceError: the server cannot be reached or is another one.
        """
        open_record(cursor, table)
        return self.with_snapshots(cursor, [table], at=at, by=by)

    def with_snapshots(
        self, cursor: Cursor, tables: Sequence[TableName], *, at: datetime, by: str, planned: bool = False
    ) -> Cursor:
        """Return the drain cursor with a snapshot of each table; the table is followed again from the snapshot's position.

        Args:
            cursor: with an open quarantine or resnapshot record of each table.
            tables: the tables.
            at: now (UTC).
            by: who requests it.
            planned: whether a plan starts what was requested before: a table that it refuses is then quarantined, if the source
                file says so.

        Raises:
            ConfigError: a table does not fit the source file, or its rows cannot be distinguished from those of others in the lake.
            TableUnreadable: a table cannot be read by SELECT.
            SourceError: the server cannot be reached or is another one.
        """
        with closing(self.source.connect()) as connection:
            facts = read_facts(connection, self.source.config.server)
            Starter(self.source, facts).check_resumable(cursor)
            reader = InformationSchema(connection)
            schemas, refused = self._readable(reader, tables, self._captured(reader), cursor)
            charsets = read_charsets(connection)
        for table, error in refused.items():
            if not planned or self.source.config.on_error != "quarantine":
                raise error
            log.warning("%s is quarantined: %s. %s", table, error.message, error.hint)
        until = self._watermark(cursor, facts)
        names = [(schema.database, schema.table) for schema in schemas.values()]
        if names:
            # Chunks must be read after the commits of transactions prepared now: their rows may be left out of the windows.
            wait_for_decisions(self.source.config.server, self.source.credentials, facts)
            known = dict.fromkeys(cursor.versions, False)
            histories = Histories(
                self.source.config, self.source.credentials, self.source.store, cursor.epoch, facts, charsets, known
            )
            if histories.needed:
                histories.register(names, until, cursor_jumped=True)
                cursor = cursor.with_versions(known)
        # The generation distinguishes it from an earlier snapshot at the same end of the binlog.
        snapshot_id = f"{cursor.epoch:06d}-{until.sortable}-{cursor.generation:06d}"
        tasks = {
            table: SnapshotTask(cursor.source, cursor.epoch, snapshot_id, schema.database, schema.table, to_divide=True)
            for table, schema in schemas.items()
        }

        def resumed(table: TableName, alone: Cursor) -> Cursor:
            if (error := refused.get(table)) is not None:
                return refuse(alone, table, Fault(until, error.code, error.message, error.hint), at=at, by=by)
            return resume(alone, table, until, tasks.get(table), at=at, by=by)

        return table_by_table(cursor, ((table, partial(resumed, table)) for table in tables))

    def _chosen(self, patterns: Sequence[str], captured: Collection[TableName]) -> list[TableName]:
        """Return the captured tables that patterns name, without repeats.

        Raises:
            ConfigError: a pattern is not valid, or names no captured table.
        """
        chosen = {text: [t for t in captured if matches(text, *t.pair)] for text in patterns if problem(text) is None}
        wrong = [f"{text} ({what})" if (what := problem(text)) else text for text in patterns if not chosen.get(text)]
        if wrong:
            known = ", ".join(sorted(captured)[:_NAMED]) + (", …" if len(captured) > _NAMED else "")
            raise ConfigError(
                f"not captured: {', '.join(wrong)}",
                hint=f"Captured of {self.source.name}: {known or 'no table'}.",
                source=self.source.name,
            )
        return list(dict.fromkeys(table for text in patterns for table in chosen[text]))

    def _captured(self, reader: InformationSchema) -> list[TableName]:
        return [TableName(*table) for table in reader.tables() if self.source.config.tables.captures(*table)]

    def _readable(
        self,
        reader: InformationSchema,
        tables: Collection[TableName],
        captured: Collection[TableName],
        cursor: Cursor,
    ) -> tuple[Mapping[TableName, TableSchema], Mapping[TableName, CdcError]]:
        """Return the schemas of the captured ones among the tables, and why no snapshot of others is possible."""
        shape = shape_of(self.source.config, self.source.credentials)
        schemas: dict[TableName, TableSchema] = {}
        refused: dict[TableName, CdcError] = {}
        known = frozenset(captured)
        merges = lake_merges(self.source.config, known) if self.source.config.routes else ()
        blurred = indistinct_tables(self.source.name, merges)
        shared = self._shared_with_others(tables, known, cursor)
        for table in tables:
            try:
                if table not in known or (schema := reader.schema(*table.pair)) is None:
                    continue
                refuse_masked_keys(shape.of(self.source.config.values.applied(schema)))
                if table in shared:
                    raise shared[table]
                if table in blurred:
                    self._refuse_indistinct(table, merges)
            except (ConfigError, TableUnreadable) as error:
                error.fill(source=self.source.name)
                refused[table] = error
            else:
                schemas[table] = schema
        return schemas, refused

    def _shared_with_others(
        self, tables: Collection[TableName], captured: Collection[TableName], cursor: Cursor
    ) -> Mapping[TableName, LakeTableShared]:
        """Return the quarantined ones among the tables whose lake table is also that of a table that is followed."""
        left_out = {one.table for one in cursor.quarantined_tables}
        asked = left_out.intersection(tables)
        if not asked:
            return {}
        found = collisions(self.source.config, [table for table in captured if table in asked or table not in left_out])
        return {table: one.error(self.source.name) for one in found for table in one.tables if table in asked}

    def _refuse_indistinct(self, table: TableName, merges: Sequence[LakeMerge]) -> None:
        for lake_table, others in indistinct(self.source.name, table, merges).items():
            raise ConfigError(
                f"rows of {table} cannot be distinguished from those of {', '.join(others)} in {lake_table}: a new snapshot would "
                "delete them as well",
                hint="Add keys that differ (server, schema, table) to the route, and begin with a new lake table.",
                source=self.source.name,
                table=table,
            )

    def _watermark(self, cursor: Cursor, facts: ServerFacts) -> Position:
        """Return a low watermark after the windows in flight."""
        least = cursor.in_flight[-1].stop if cursor.in_flight else cursor.position
        for _ in range(_TRIES):
            with closing(self.source.connect()) as connection:
                watermark = low_watermark(connection, facts)
            if least <= watermark:
                return watermark
            time.sleep(_PAUSE)
        raise SourceUnavailable(
            f"the server still shows rows as of {watermark}, before the windows in flight end",
            hint="SHOW FULL PROCESSLIST shows commits that wait. Where they wait for a semi-synchronous replica: start it, or SET "
            "GLOBAL rpl_semi_sync_source_enabled = OFF.",
            source=cursor.source,
            stop=str(least),
        )
