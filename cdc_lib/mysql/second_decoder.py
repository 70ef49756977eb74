"""The events of a window as mysql-replication decodes them: it shares no code with the drain.

It is asked for positions, tables and values only. What it is known to read wrong or not at all is named, never passed on.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

import pymysql
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.event import (
    GtidEvent,
    MariadbGtidEvent,
    NotImplementedEvent,
    QueryEvent,
    RotateEvent,
    XidEvent,
)
from pymysqlreplication.row_event import (
    DeleteRowsEvent,
    PartialUpdateRowsEvent,
    RowsEvent,
    UpdateRowsEvent,
    WriteRowsEvent,
)

from cdc_lib.config import Credentials, ServerConfig
from cdc_lib.model.decoded_event import UNPLACED, DecodedEvent, DecodedImage
from cdc_lib.model.position import Position, file_number
from cdc_lib.model.table_name import TableName
from cdc_lib.model.window import Window
from cdc_lib.mysql.binlog_stream import random_replica_id
from cdc_lib.mysql.connection import connect, translated
from cdc_lib.mysql.replayed_session import Replay, ReplayedSession
from cdc_lib.mysql.uncompressed_session import FAILURES, UncompressedSession

LAST_OFFSET = 2**32 - 1
"""It asks for positions in four bytes."""

_EVENTS = [
    DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent, PartialUpdateRowsEvent, NotImplementedEvent, QueryEvent, XidEvent,
    RotateEvent, GtidEvent, MariadbGtidEvent,
]  # fmt: skip
_BEGINNINGS = {34, 42}
"""Anonymous and tagged GTIDs, which it does not read."""

_FAILURES = (
    ArithmeticError,
    AttributeError,
    LookupError,
    NotImplementedError,
    TypeError,
    ValueError,
    struct.error,
    *FAILURES,
)
"""What it raises for bytes that it does not expect; UnicodeDecodeError is a ValueError."""


def decoder_name() -> str:
    """Return name and version of the second decoder."""
    return f"mysql-replication {version('mysql-replication')}"


def decode(
    server: ServerConfig,
    credentials: Credentials,
    window: Window,
    unread: Collection[TableName] = (),
    replay: Replay | None = None,
) -> Iterator[DecodedEvent]:
    """Yield the events of a window, in their order.

    Args:
        server: which has the window's binlog files; not asked with an archive.
        credentials: for the log-in.
        window: to read.
        unread: tables whose definitions it cannot parse. It leaves out all tables of these names, in any database.
        replay: archive of the window, read instead of the server.

    Raises:
        SourceError: the connection broke, or the server refuses.
        CorruptBatch: the archive is damaged.
    """
    ignored = sorted({table.pair[1] for table in unread})

    def logged_in(**options: Any) -> Any:
        if replay is not None:
            return UncompressedSession(ReplayedSession(replay))
        session = connect(server, credentials)
        session.cursorclass = options.get("cursorclass", session.cursorclass)
        return UncompressedSession(session)

    stream = BinLogStreamReader(
        connection_settings={},
        server_id=server.server_id or random_replica_id(),
        log_file=window.start.file,
        log_pos=window.start.offset,
        resume_stream=True,
        blocking=False,
        only_events=_EVENTS,
        ignored_tables=ignored or None,
        filter_non_implemented_events=False,
        ignore_decode_errors=True,  # one text must not end the comparison
        enable_logging=False,
        pymysql_wrapper=logged_in,
    )
    with closing(stream):
        places = _Places(stream, window.start)
        while (event := _next(stream, server, places)) is not None:
            if isinstance(event, DecodedEvent):
                yield event
                return
            offset = places.of(event)
            if offset is None:
                continue
            if offset != UNPLACED and Position(places.file, offset) >= window.stop:
                return
            found = places.within(offset, _decoded(event, file_number(places.file), offset))
            if found is not None:
                yield found


def _next(stream: Any, server: ServerConfig, places: _Places) -> Any:
    try:
        return stream.fetchone()
    except pymysql.MySQLError as error:
        raise translated(error, server) from error
    except _FAILURES as error:
        why = f"mysql-replication cannot read the binlog after {places}: {error!r}"
        return DecodedEvent("failed", 0, 0, why=why)


@dataclass(slots=True)
class _Places:
    """Where events start, also beyond 4 GiB: an event has the low four bytes of the position of its end.

    Args:
        stream: the reader.
        start: of the window.
    """

    stream: Any
    start: Position
    file: str = ""
    _end: int = 0
    _at: tuple[str, int] = ("", 0)
    _unread: DecodedEvent | None = None

    def __str__(self) -> str:
        """For messages."""
        return f"{self.file}:{self._end}" if self.file else str(self.start)

    def of(self, event: Any) -> int | None:
        """Return the offset of an event; None for one that the server made for the stream only."""
        if isinstance(event, RotateEvent):
            return None
        if self.file != self.stream.log_file:
            self.file, self._end = self.stream.log_file, 0
        low = int(event.packet.log_pos)
        if low == 0:
            return UNPLACED if isinstance(event, RowsEvent | QueryEvent) else None
        end = (self._end >> 32 << 32) | low
        self._end = end + (1 << 32) if end + (1 << 31) < self._end else end
        return self._end - int(event.packet.event_size)

    def within(self, offset: int, found: DecodedEvent | None) -> DecodedEvent | None:
        """Return what an event holds as a part of its place: the events of a compressed transaction have one, and number their rows over all.

        So nothing of a place is compared after an event of it that is not read.
        """
        is_further, self._at = offset != UNPLACED and self._at == (self.file, offset), (self.file, offset)
        if not is_further:
            self._unread = None
        if found is None or found.kind not in ("rows", "unreadable"):
            return found
        if self._unread is not None:
            return replace(self._unread, table=found.table)
        if found.kind == "unreadable":
            self._unread = found
        return replace(found, unnumbered=is_further)


def _decoded(event: Any, file: int, offset: int) -> DecodedEvent | None:
    number = int(event.event_type)
    if isinstance(event, GtidEvent | MariadbGtidEvent):
        return DecodedEvent("begin", file, offset, gtid=event.gtid)
    if isinstance(event, RowsEvent):
        return _rows(event, file, offset)
    if number in _BEGINNINGS:
        return DecodedEvent("begin", file, offset)
    if isinstance(event, QueryEvent) and event.query.lstrip()[:8].upper() == "ROLLBACK":
        return DecodedEvent("rollback", file, offset)
    return None


def _rows(event: Any, file: int, offset: int) -> DecodedEvent:
    table = TableName(event.schema, event.table)
    if isinstance(event, PartialUpdateRowsEvent):
        why = "mysql-replication reads partial JSON updates (PARTIAL_JSON) incompletely"
        return DecodedEvent("unreadable", file, offset, table, why=why)
    if not _is_complete(event):
        why = "a row image without all columns (binlog_row_image is not FULL)"
        return DecodedEvent("unreadable", file, offset, table, why=why)
    try:
        rows = event.rows
    except _FAILURES:  # its text may have a value that a mask hides
        why = "mysql-replication fails at a value of the event"
        return DecodedEvent("unreadable", file, offset, table, why=why)
    named = all(column.name is not None for column in event.columns)
    images = [_images(event, row) for row in rows]
    return DecodedEvent("rows", file, offset, table, named, images)


def _is_complete(event: Any) -> bool:
    bitmaps = [event.columns_present_bitmap]
    if isinstance(event, UpdateRowsEvent):
        bitmaps.append(event.columns_present_bitmap2)
    count = int(event.number_of_columns)
    full = (1 << count) - 1
    return all(int.from_bytes(bitmap, "little") & full == full for bitmap in bitmaps)


def _images(event: Any, row: dict[str, Any]) -> tuple[DecodedImage | None, DecodedImage | None]:
    if isinstance(event, UpdateRowsEvent):
        before = DecodedImage(row["before_values"], row["before_none_sources"])
        return before, DecodedImage(row["after_values"], row["after_none_sources"])
    image = DecodedImage(row["values"], row["none_sources"])
    return (None, image) if isinstance(event, WriteRowsEvent) else (image, None)
