"""The exact position of a SELECT, for tables whose changes are kept one by one.

Where a table is a list of changes, a row that a SELECT saw and that a change after its low watermark brings is there twice. MariaDB
names the exact position of a consistent snapshot. MySQL does not: so the end of the binlog is read before and after the snapshot is
made, and no change of the table may lie in between.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from cdc_lib.binlog.statement_reader import changes_table
from cdc_lib.binlog.stream_facts import StreamFacts
from cdc_lib.config import SourceConfig
from cdc_lib.config.shape import targets_of
from cdc_lib.errors import SourceUnavailable
from cdc_lib.lake.modes import mode_of
from cdc_lib.model.position import Position
from cdc_lib.model.schema import TableSchema
from cdc_lib.model.window import Window
from cdc_lib.mysql.binlog_stream import binlog_dump
from cdc_lib.mysql.connection import Session
from cdc_lib.mysql.information_schema import InformationSchema
from cdc_lib.mysql.server_facts import ServerFacts, read_binlog_end, read_charsets
from cdc_lib.mysql.statements import rows_of
from cdc_lib.mysql.table_lock import locked
from cdc_lib.mysql.watermark import Watermarks
from cdc_lib.source import Source

_TRIES = 50
_PAUSE = 0.1


def keeps_each_change(config: SourceConfig, schema: TableSchema) -> bool:
    """Whether a lake table of a source table keeps its changes one by one."""
    targets = targets_of(config, schema.database, schema.table)
    return any(mode_of(schema, target.mode) in ("append", "scd2") for target in targets)


@dataclass(frozen=True, slots=True)
class ExactPosition:
    """Finds the position of the next SELECT on a session.

    Args:
        source: the source.
        facts: of the server.
        epoch: of the positions.
        watermarks: of the table's SELECTs.
    """

    source: Source
    facts: ServerFacts
    epoch: int
    watermarks: Watermarks

    def before_select(self, connection: Session, schema: TableSchema, tries: int) -> Position | None:
        """Begin a transaction on a session in which the SELECT must run.

        Args:
            connection: its session.
            schema: of the table, read before.
            tries: how often it was tried before.

        Returns:
            The position: the SELECT sees every change of the table before it, and none after it. None if that is not certain: then
            everything is read again, the table's definition too.

        Raises:
            SourceUnavailable: the table changes all the time, or cannot be locked.
            UnsupportedServer: the user may not lock it.
        """
        if self.facts.identity.flavor == "mariadb":
            return self.watermarks.before_select(connection, self.facts, schema)
        if tries < _TRIES:
            time.sleep(_PAUSE if tries else 0)
            low = self.watermarks.before_select(connection, self.facts, schema)
            high = self._begin(connection)
            return None if self._changes(connection, schema, low, high) else low
        if self.source.config.snapshot.lock_tables:
            return self._locked(connection, schema)
        raise SourceUnavailable(
            f"a table changes all the time, so that the position of no SELECT is exact: {_TRIES} tries",
            hint="Set snapshot.lock_tables: true in the source file, and GRANT LOCK TABLES on it: it is locked for a moment. Or stop "
            "its writers while it is read.",
            table=schema.name,
        )

    def _begin(self, connection: Session) -> Position:
        """Begin a transaction with a consistent snapshot; returns the end of the binlog after that."""
        rows_of(connection, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        rows_of(connection, "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
        return read_binlog_end(connection, self.facts)

    def _changes(self, connection: Session, schema: TableSchema, low: Position, high: Position) -> bool:
        if low == high:
            return False
        facts = StreamFacts(self.facts.identity.flavor, self.facts.checksum, read_charsets(connection))
        source, window = self.source, Window(self.source.name, self.epoch, low, high)
        with binlog_dump(source.config.server, source.credentials, self.facts.identity, low) as stream:
            return changes_table(window, stream, facts, schema.name)

    def _locked(self, connection: Session, schema: TableSchema) -> Position | None:
        """Begin the transaction while another session locks the table: no change of it is on the way then."""
        with locked(self.source.config.server, self.source.credentials, schema.name):
            if InformationSchema(connection).schema(schema.database, schema.table) != schema:
                return None
            return self._begin(connection)
