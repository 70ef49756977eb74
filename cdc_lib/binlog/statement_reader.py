"""Reads only the DDL of a binlog range: no table maps, no rows."""

from __future__ import annotations

from collections.abc import Collection

from cdc_lib.binlog.control_events import ControlEvents
from cdc_lib.binlog.ddl.ddl import meaning
from cdc_lib.binlog.ddl.statement import Statement
from cdc_lib.binlog.framing import event_types, packets
from cdc_lib.binlog.framing.scan_progress import ScanProgress
from cdc_lib.binlog.reader import WindowReader
from cdc_lib.binlog.rows.captured_tables import CapturedTables
from cdc_lib.binlog.rows.mapped_tables import KnownTables
from cdc_lib.binlog.rows.row_groups import WindowSinks
from cdc_lib.binlog.rows.xa import XaTransactions
from cdc_lib.binlog.stream_facts import StreamFacts
from cdc_lib.model.position import Position
from cdc_lib.model.schema import TableSchema
from cdc_lib.model.table_name import TableName
from cdc_lib.model.window import Window
from cdc_lib.ports import BinlogStream, CaptureFilter

Dated = tuple[Position, Statement]
"""A statement and where its event starts."""


def read_statements(window: Window, stream: BinlogStream, facts: StreamFacts) -> list[Dated]:
    """Return the DDL of a binlog range.

    Args:
        window: the range; it may begin at any event.
        stream: bytes of the server from its start on.
        facts: of the server.

    Raises:
        DecodeError: the bytes do not follow the format, or statements are in unsupported events.
        SourceUnavailable: the stream ended before the range.
    """
    reader = _StatementReader(window, stream, facts)
    reader.run()
    return reader.found


def changes_table(window: Window, stream: BinlogStream, facts: StreamFacts, table: TableName) -> bool:
    """Whether a binlog range may have changes of a table: rows, statements that name it, and XA statements, which name none.

    Args:
        window: the range; both ends are transaction boundaries.
        stream: bytes of the server from its start on.
        facts: of the server.
        table: the table.

    Raises:
        DecodeError: the bytes do not follow the format, or statements are in unsupported events.
        SourceUnavailable: the stream ended before the range.
    """
    mapped: set[tuple[str, str]] = set()

    def captures(database: str, name: str) -> bool:
        mapped.add((database, name))
        return False

    reader = _StatementReader(window, stream, facts, captures)
    reader.run()
    named = {one for _, statement in reader.found for one in _tables_of(statement)}
    return table.pair in mapped | named or reader.has_xa


def _tables_of(statement: Statement) -> Collection[tuple[str, str]]:
    return meaning(statement.text, statement.database, statement.quotings[0]).tables


class _StatementReader(WindowReader):
    def __init__(
        self, window: Window, stream: BinlogStream, facts: StreamFacts, captures: CaptureFilter | None = None
    ) -> None:
        captured = CapturedTables(captures or (lambda *_: False))
        super().__init__(window, stream, facts, captured, WindowSinks(_NoSink(), _NoSink()))
        self.found: list[Dated] = []
        self._control = _ControlStatements(self._progress, self._tables, self._xa, facts, self.found)
        self._rare = self._control
        for kinds in (self._kinds, self._inner_kinds):
            kinds[kinds != packets.REFUSE] = packets.PASS
        self._kinds[list(_ASKED)] = packets.ASK
        self._kinds[list(_LOOKED_AT)] = packets.LOOK
        self._inner_kinds[[event_types.QUERY, event_types.XID]] = packets.LOOK
        if captures is not None:
            for kinds in (self._kinds, self._inner_kinds):
                kinds[event_types.TABLE_MAP] = packets.ASK

    @property
    def has_xa(self) -> bool:
        """Whether one of the statements was about an XA transaction."""
        return self._control.has_xa


_ASKED = (
    event_types.FORMAT_DESCRIPTION,
    event_types.ROTATE,
    event_types.QUERY_COMPRESSED,
    event_types.TRANSACTION_PAYLOAD,
)
_LOOKED_AT = (
    *(event_types.QUERY, event_types.XID),
    *(event_types.GTID, event_types.ANONYMOUS_GTID, event_types.GTID_TAGGED, event_types.MARIADB_GTID),
)


class _NoSink:
    def write(self, key: str, schema: TableSchema, rows: object, renames: int = 0) -> None:
        """Fail: no table is captured."""
        raise AssertionError((key, schema, rows, renames))


class _ControlStatements(ControlEvents):
    """Keeps statements instead of acting on them."""

    def __init__(
        self, progress: ScanProgress, tables: KnownTables, xa: XaTransactions, facts: StreamFacts, found: list[Dated]
    ) -> None:
        super().__init__(progress, tables, xa, facts)
        self._found = found
        self.has_xa = False

    def _query(self, statement: Statement) -> None:
        means = meaning(statement.text, statement.database, statement.quotings[0])
        self._refuse_unread(statement, means)
        if means.tables:
            self._found += [(self._progress.position, one) for one in statement.readings]
        self.has_xa |= means.effect == "xa"
        # XA PREPARE is ignored, so a group that ends in it counts as ended before.
        if means.effect == "xa" or self._ends_transaction(means.effect, opens=means.opens_transaction):
            packets.end_transaction(self._progress.state)
