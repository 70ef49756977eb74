"""Reads a stretch of the binlog for its DDL alone: no table is learnt, no row decoded."""

from __future__ import annotations

from cdc_lib.decode import events, frame
from cdc_lib.decode.ddl import meaning
from cdc_lib.decode.progress import Progress, WindowSummary
from cdc_lib.decode.rare import RareEvents
from cdc_lib.decode.reader import StreamFacts, WindowReader
from cdc_lib.decode.row_groups import ReadOptions
from cdc_lib.decode.statement import Statement, statement_of
from cdc_lib.decode.tables import KnownTables
from cdc_lib.decode.xa import XaTransactions
from cdc_lib.model.position import Position
from cdc_lib.model.schema import TableSchema
from cdc_lib.model.window import Window
from cdc_lib.ports import BinlogStream

Dated = tuple[Position, Statement]
"""A statement and where its event starts."""


def read_statements(window: Window, stream: BinlogStream, facts: StreamFacts) -> list[Dated]:
    """Return the DDL of a stretch of the binlog.

    Args:
        window: the stretch; it may begin at any event.
        stream: bytes of the server from there on.
        facts: of the server.

    Raises:
        DecodeError: the bytes do not follow the format, or statements stand in events that are not read.
        SourceUnavailable: the stream ended before the stretch did.
    """
    reader = _StatementReader(window, stream, facts)
    reader.run()
    return reader.found


class _StatementReader(WindowReader):
    def __init__(self, window: Window, stream: BinlogStream, facts: StreamFacts) -> None:
        super().__init__(window, stream, facts, lambda *_: False, _Nowhere(), _Nowhere(), ReadOptions())
        self.found: list[Dated] = []
        self._rare = _RareStatements(self._progress, self._tables, self._xa, facts, self.found)
        for kinds in (self._kinds, self._inner_kinds):
            kinds[kinds != frame.REFUSE] = frame.PASS
        self._kinds[list(_ASKED)] = frame.ASK
        self._kinds[list(_LOOKED_AT)] = frame.LOOK
        self._inner_kinds[[events.QUERY, events.XID]] = frame.LOOK


_ASKED = (events.FORMAT_DESCRIPTION, events.ROTATE, events.QUERY_COMPRESSED, events.TRANSACTION_PAYLOAD)
_LOOKED_AT = (
    *(events.QUERY, events.XID),
    *(events.GTID, events.ANONYMOUS_GTID, events.GTID_TAGGED, events.MARIADB_GTID),
)


class _Nowhere:
    def write(self, key: str, schema: TableSchema, rows: object, renames: int = 0) -> None:
        """Take nothing: no table is wanted."""
        raise AssertionError((key, schema, rows, renames))


class _RareStatements(RareEvents):
    """Keeps statements instead of acting on them."""

    def __init__(
        self, progress: Progress, tables: KnownTables, xa: XaTransactions, facts: StreamFacts, found: list[Dated]
    ) -> None:
        super().__init__(progress, tables, xa, WindowSummary(), charsets=facts.charsets)
        self._found = found

    def _query(self, body: bytes, text: bytes) -> None:
        statement = statement_of(body, text, self._charsets)
        means = meaning(statement.text, statement.database)
        if means.tables:
            self._found.append((self._progress.position, statement))
        # XA PREPARE is passed over, so that a group which ends in it is taken to end before.
        if means.effect == "xa" or self._ends_transaction(means.effect, opens=means.opens_transaction):
            frame.end_transaction(self._progress.state)
