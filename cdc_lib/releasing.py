"""The way back for tables that are set aside, and for those of which somebody wants a new snapshot."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime

from cdc_lib.config import Credentials, SourceConfig
from cdc_lib.config.patterns import matches, problem
from cdc_lib.draining import Drainer
from cdc_lib.errors import ConfigError, SourceUnavailable
from cdc_lib.histories import Histories
from cdc_lib.merge.routing import indistinct
from cdc_lib.model.cursor import Cursor
from cdc_lib.model.position import Position
from cdc_lib.model.results import Wanted
from cdc_lib.model.schema import TableSchema
from cdc_lib.model.window import SnapshotTask
from cdc_lib.ports import ObjectStore
from cdc_lib.quarantine import Quarantine
from cdc_lib.source.connect import connect
from cdc_lib.source.facts import ServerFacts, read_charsets, read_facts
from cdc_lib.source.prepared import wait_for_decisions
from cdc_lib.source.schema import InformationSchema
from cdc_lib.source.watermark import low_watermark
from cdc_lib.starting import Starter
from cdc_lib.window.aside import release
from cdc_lib.window.chunks import refuse_masked_keys

_TRIES = 20
_PAUSE = 0.5
_NAMED = 20
"""Tables that an error lists at most."""


@dataclass(frozen=True, slots=True)
class Releaser:
    """Asks for the snapshots of one source that bring tables anew.

    Args:
        config: of the source, at the server that its cursor stands on.
        credentials: log-in of the source.
        store: where the batches lie.
    """

    config: SourceConfig
    credentials: Credentials
    store: ObjectStore

    def wanted(self, cursor: Cursor, patterns: Sequence[str]) -> tuple[Wanted, ...]:
        """Return what a new snapshot of each table will do.

        Args:
            cursor: the drain cursor.
            patterns: ``database.table`` each, or patterns as in the source file.

        Raises:
            ConfigError: some of them are not captured, are set aside, or cannot be read or merged so.
            SourceError: the server cannot be reached.
        """
        with closing(connect(self.config.server, self.credentials)) as connection:
            reader = InformationSchema(connection)
            captured = self._captured(reader)
            tables = self._chosen(patterns, captured)
            schemas = self._readable(reader, tables, captured)
        aside = {one.table for one in cursor.tables_aside}
        if found := sorted(aside.intersection(tables)):
            raise ConfigError(
                f"set aside: {', '.join(found)}",
                hint=f"cdc release {cursor.source} {found[0]} takes its snapshot; cdc status tells what was wrong.",
                source=cursor.source,
            )
        reading = {task.name for task in cursor.open_snapshots}
        return tuple(Wanted(table, bool(one.primary_key), table in reading) for table, one in schemas.items())

    def anew(
        self, cursor: Cursor, lake: Cursor | None, tables: Sequence[str], *, why: str, at: datetime, by: str
    ) -> Cursor:
        """Return the drain cursor with a new snapshot of each table, behind which alone the lake goes on with it.

        Args:
            cursor: the drain cursor.
            lake: the lake's.
            tables: as :meth:`wanted` named them.
            why: the reason, for people.
            at: now (UTC).
            by: who asks.

        Raises:
            ConfigError: see :meth:`released`.
            SourceError: the server cannot be reached or is another one.
        """
        quarantine = Quarantine(self.config, self.credentials, self.store)
        recorded = cursor
        for table in tables:
            recorded = quarantine.with_new_snapshot(recorded, lake, table, why=why, at=at, by=by)
        return self.released(recorded, tables, at=at, by=by)

    def freed(self, cursor: Cursor, table: str, *, at: datetime, by: str) -> Cursor:
        """Return the drain cursor with the release of a table that is set aside.

        Raises:
            ConfigError: it is not; or see :meth:`released`.
            SourceError: the server cannot be reached or is another one.
        """
        aside = [one.table for one in cursor.tables_aside]
        if table not in aside:
            names = ", ".join(aside) or "none"
            raise ConfigError(f"{table} is not set aside", hint=f"Set aside: {names}.", source=cursor.source)
        return self.released(cursor, [table], at=at, by=by)

    def released(self, cursor: Cursor, tables: Sequence[str], *, at: datetime, by: str) -> Cursor:
        """Return the drain cursor with a new snapshot of each table, from whose position on the table is followed again.

        Args:
            cursor: with an open record of each.
            tables: ``database.table`` of each.
            at: now (UTC).
            by: who asks.

        Raises:
            ConfigError: a table cannot be read by SELECT, or its rows cannot be told from those of others in the lake.
            SourceError: the server cannot be reached or is another one.
        """
        with closing(connect(self.config.server, self.credentials)) as connection:
            facts = read_facts(connection, self.config.server)
            Starter(self.config, self.credentials, facts).check_resumable(cursor)
            reader = InformationSchema(connection)
            found = self._readable(reader, tables, self._captured(reader))
            charsets = read_charsets(connection)
        until = self._place(cursor, facts)
        names = [(schema.database, schema.table) for schema in found.values()]
        if names:
            # The chunks must be read behind the commits of what is prepared now: its rows may be left out.
            wait_for_decisions(self.config.server, self.credentials, facts)
            histories = Histories(self.config, self.credentials, self.store, cursor.epoch, facts, charsets)
            if histories.needed:
                histories.enrol(names, until, afresh=True)
        # The generation tells it from a snapshot that was asked for when the binlog ended at the same place.
        snapshot_id = f"{cursor.epoch:06d}-{until.file_number:06d}.{until.offset:012d}-{cursor.generation:06d}"
        tasks = {
            table: SnapshotTask(cursor.source, cursor.epoch, snapshot_id, schema.database, schema.table)
            for table, schema in found.items()
        }
        for table in tables:
            cursor = release(cursor, table, until, tasks.get(table), at=at, by=by)
        return cursor

    def _chosen(self, patterns: Sequence[str], captured: Collection[str]) -> list[str]:
        """Return the captured tables that patterns name, without repeats.

        Raises:
            ConfigError: a pattern is none, or names no captured table.
        """
        found = {one: [t for t in captured if matches(one, *_parts(t))] for one in patterns if problem(one) is None}
        wrong = [f"{one} ({what})" if (what := problem(one)) else one for one in patterns if not found.get(one)]
        if wrong:
            known = ", ".join(sorted(captured)[:_NAMED]) + (", …" if len(captured) > _NAMED else "")
            raise ConfigError(
                f"not captured: {', '.join(wrong)}",
                hint=f"Captured of {self.config.source}: {known or 'no table'}.",
                source=self.config.source,
            )
        return list(dict.fromkeys(table for one in patterns for table in found[one]))

    def _captured(self, reader: InformationSchema) -> list[str]:
        return [
            f"{database}.{name}" for database, name in reader.tables() if self.config.tables.captures(database, name)
        ]

    def _readable(
        self, reader: InformationSchema, tables: Collection[str], captured: Collection[str]
    ) -> Mapping[str, TableSchema]:
        """Return the schemas of those tables that are captured.

        Raises:
            ConfigError: one of them cannot be read by SELECT, or shares a lake table without being told from the others.
        """
        shape = Drainer(self.config, self.credentials, self.store).shape
        found = {}
        for table in tables:
            database, name = _parts(table)
            schema = reader.schema(database, name) if table in captured else None
            if schema is None:
                continue
            refuse_masked_keys(shape.of(self.config.values.applied(schema)))
            self._refuse_indistinct(table, captured)
            found[table] = schema
        return found

    def _refuse_indistinct(self, table: str, captured: Collection[str]) -> None:
        for lake_table, others in indistinct(self.config, table, captured).items():
            raise ConfigError(
                f"rows of {table} cannot be told from those of {', '.join(others)} in {lake_table}: a new snapshot would "
                "take them out as well",
                hint="Add keys that differ (server, schema, table) to the route, and begin with a new lake table.",
                source=self.config.source,
                table=table,
            )

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


def _parts(table: str) -> tuple[str, str]:
    database, _, name = table.partition(".")
    return database, name
