"""Partial snapshots: requested and cancelled while the binlog is followed.

Merges of the table continue meanwhile: a row has the position read before its SELECT, so that older changes never overwrite
it and newer ones do. All chunks are merged together, when the windows up to the last chunk are acknowledged.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from datetime import datetime

from cdc_lib.drain.columns import shape_of
from cdc_lib.errors import ConfigError
from cdc_lib.model.cursor import Cursor
from cdc_lib.model.row_selection import RowSelection
from cdc_lib.model.schema import TableSchema
from cdc_lib.model.table_name import TableName
from cdc_lib.model.waiting import unmerged
from cdc_lib.model.window import SnapshotTask
from cdc_lib.mysql.charset_encoder import Encoder
from cdc_lib.mysql.connection import Session
from cdc_lib.mysql.information_schema import InformationSchema
from cdc_lib.mysql.server_facts import read_binlog_end, read_facts
from cdc_lib.plan.start import Starter
from cdc_lib.quarantine.records import cancel_task
from cdc_lib.snapshot.bounds import bound
from cdc_lib.snapshot.by_key import converts_exactly
from cdc_lib.snapshot.predicate import predicate
from cdc_lib.snapshot.request import SnapshotRequests
from cdc_lib.source import Source


@dataclass(frozen=True, slots=True)
class PartialRequest:
    """A requested part of a table.

    Args:
        table: ``database.table``.
        lower: least key of a range, as typed; empty without a lower end.
        upper: greatest key of a range.
        where: a condition, instead of a range.
        why: the reason, for messages.
    """

    table: str
    lower: str = ""
    upper: str = ""
    where: str = ""
    why: str = ""

    @property
    def text(self) -> str:
        """The requested part in words."""
        if self.where:
            return f"rows of {self.table} where {self.where}"
        return f"rows of {self.table} from {self.lower or 'the first'} to {self.upper or 'the last'}"


@dataclass(frozen=True, slots=True)
class PartialSnapshots:
    """Snapshots of parts of the tables of one source.

    Args:
        source: the source.
    """

    source: Source

    def requested(
        self, cursor: Cursor, lake: Cursor | None, request: PartialRequest, *, at: datetime, by: str
    ) -> Cursor:
        """Return the drain cursor with a new partial snapshot.

        Args:
            cursor: the drain cursor.
            lake: the lake's.
            request: the part.
            at: now (UTC).
            by: who requests it.

        Raises:
            ConfigError: the part is not valid, or the table cannot be read in parts.
            SourceError: the server cannot be reached or is another one.
        """
        (table,) = SnapshotRequests(self.source).preview(cursor, [request.table])
        self._refuse_unready(cursor, lake, table.table)
        with closing(self.source.connect()) as connection:
            facts = read_facts(connection, self.source.config.server)
            Starter(self.source, facts).check_resumable(cursor)
            database, name = table.table.pair
            schema = InformationSchema(connection).schema(database, name)
            if schema is None or not schema.primary_key:
                raise ConfigError(
                    f"{table.table} has no primary key, so single rows cannot be read again",
                    hint=f"cdc snapshot {cursor.source} {table.table.in_shell} begins the list of its changes again.",
                    table=table.table,
                )
            part = self._part(connection, schema, request, at, by)
            binlog_end = read_binlog_end(connection, facts)
        # The generation distinguishes it from an earlier snapshot at the same end of the binlog.
        snapshot_id = f"{cursor.epoch:06d}-{binlog_end.sortable}-{cursor.generation:06d}"
        return cursor.with_snapshot(
            SnapshotTask(cursor.source, cursor.epoch, snapshot_id, database, name, selection=part)
        )

    def cancelled(self, cursor: Cursor, lake: Cursor | None, table: str) -> Cursor:
        """Return the drain cursor with the partial snapshot of a table cancelled.

        Raises:
            ConfigError: the table has no unmerged partial snapshot.
        """
        mine = [task for task in unmerged(cursor, lake) if task.name == table and task.selection is not None]
        if not mine:
            names = ", ".join(task.name for task in unmerged(cursor, lake) if task.selection is not None) or "none"
            raise ConfigError(
                f"no partial snapshot of {table} is in progress",
                hint=f"In progress: {names}. One of a whole table is not cancelled: since it was asked for the lake takes nothing "
                "of the table.",
                source=cursor.source,
            )
        for task in mine:
            cursor = cancel_task(cursor, task)
        return cursor

    def _refuse_unready(self, cursor: Cursor, lake: Cursor | None, table: TableName) -> None:
        """Refuse a table that is quarantined or has another unmerged snapshot."""
        if any(record.table == table and record.fault is not None for record in cursor.quarantined_tables):
            raise ConfigError(
                f"{table} is quarantined, so a part of it cannot be read alone",
                hint=f"Correct what cdc status shows. Then cdc snapshot {cursor.source} {table.in_shell} reads it whole.",
                source=cursor.source,
            )
        whole = any(task.name == table and task.selection is None and not task.cancelled for task in cursor.snapshots)
        first = self.source.config.start == "snapshot" and not whole
        if first or table in cursor.tables_to_resnapshot or any(task.name == table for task in unmerged(cursor, lake)):
            raise ConfigError(
                f"another snapshot of {table} is not merged yet",
                hint=f"Wait for the next runs, or cancel that of a part: "
                f"cdc snapshot {cursor.source} --cancel {table.in_shell}.",
                source=cursor.source,
            )

    def _part(
        self, connection: Session, schema: TableSchema, request: PartialRequest, at: datetime, by: str
    ) -> RowSelection:
        lower = upper = None
        where = ""
        if request.where:
            where = predicate(request.where, self._usable(schema))
        else:
            encoder = Encoder(connection)
            lower = bound(schema, request.lower, "--key-from", encoder.encoded) if request.lower else None
            upper = bound(schema, request.upper, "--key-to", encoder.encoded) if request.upper else None
            if not converts_exactly(schema):
                raise ConfigError(
                    f"keys of {schema.name} have a character set in which two texts may map to the same Unicode text",
                    hint="Take the whole table, or use --where.",
                    table=schema.name,
                )
        return RowSelection(schema.primary_key, lower, upper, where, request.text, at, by, request.why)

    def _usable(self, schema: TableSchema) -> dict[str, str]:
        """Return the columns that a condition may name: not masked ones, because the condition is stored as typed."""
        projection = shape_of(self.source.config, self.source.credentials).of(self.source.config.values.applied(schema))
        names = (column.name for column in projection.source.columns if column.name not in projection.masked)
        return {name.lower(): name for name in names}
