"""The tables that a window leaves out: their events are not decoded but kept as they came.

Their table ids are not in the table that the kernels look into, so that each of their events comes to Python. That is slow,
and it is only done for a table that brings no rows anyway.
"""

from __future__ import annotations

from collections.abc import Collection

from cdc_lib.binlog.framing.packets import XA
from cdc_lib.binlog.framing.progress import Progress
from cdc_lib.errors import CdcError, ChecksumMismatch, ConfigError, DecodeError, TableUnreadable
from cdc_lib.model.table_name import EVERY_TABLE, TableName
from cdc_lib.ports import EventSink, RawEvent, Wanted


class ExcludedTables:
    """Knows which tables are left out, and gives their events to a sink.

    Args:
        names: ``(database, table)`` of each.
        withheld: those of them whose events must not be kept.
        sink: takes the events of the others.
    """

    def __init__(
        self, names: Collection[tuple[str, str]], withheld: Collection[tuple[str, str]], sink: EventSink
    ) -> None:
        """Know no table id yet."""
        self._names = frozenset(names)
        self._withheld = frozenset(withheld)
        self._sink = sink
        self._ids: dict[int, tuple[str, str]] = {}

    def holds(self, database: str, table: str) -> bool:
        """Whether a table is left out."""
        return (database, table) in self._names

    def introduce(self, table_id: int, database: str, table: str) -> None:
        """Learn the number under which events of a table come."""
        self._ids[table_id] = (database, table)

    def forget(self) -> None:
        """Begin a file: table ids are given again."""
        self._ids.clear()

    def table_of(self, body: bytes) -> tuple[str, str] | None:
        """Return the table that a TABLE_MAP or rows event belongs to, if it is one that is left out."""
        return self._ids.get(int.from_bytes(body[:6], "little"))

    def keep(self, table: tuple[str, str], progress: Progress, event: bytes, row: int) -> None:
        """Give an event to the sink, unless it must not be kept.

        Args:
            table: it belongs to, or that it speaks of.
            progress: is at the event.
            event: header and body, without the checksum.
            row: offset in a compressed transaction, else 0.
        """
        if table in self._withheld:
            return
        began = int(progress.state[XA])
        raw = RawEvent(progress.position, row, progress.commit_time, progress.gtid, began, event)
        self._sink.take(TableName(*table), raw)


def tables_at_fault(error: CdcError, wanted: Wanted) -> tuple[TableName, ...]:
    """Return the captured tables that an error is about, when it is about nothing else.

    Args:
        error: that a window or a snapshot ended in.
        wanted: whether a table is captured.
    """
    named = error.context.get("table")
    about = isinstance(error, DecodeError | TableUnreadable) and not isinstance(error, ChecksumMismatch)
    if not about or not isinstance(named, str):
        return ()
    try:
        tables = tuple(TableName.listed(named))
    except ConfigError:
        return ()  # the error is about something else than tables
    return tables if tables and all(table.table != EVERY_TABLE and wanted(*table.pair) for table in tables) else ()
