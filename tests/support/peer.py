"""What mysql-replication reads of the same window: a second opinion, where it is known to be right."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.row_event import DeleteRowsEvent, RowsEvent, UpdateRowsEvent, WriteRowsEvent

from cdc_lib.model.position import Position
from cdc_lib.model.window import Window
from tests.support.random_tables import Table
from tests.support.servers import SqlServer

KNOWN_WRONG = {
    "BINARY": "leaves out the zero bytes at the end",
    "BIT": "gives a text of digits",
    "CHAR": "decodes by cp1252 where MySQL's latin1 has no hole",
    "DATE": "",
}
_Change = tuple[str, str, dict[str, Any]]


def changes(server: SqlServer, window: Window, tables: dict[str, Table]) -> Iterator[_Change]:
    """Yield (table, op, values) of each change in the window, with the ops that the drain gives them."""
    stream = BinLogStreamReader(
        connection_settings={
            "host": server.host, "port": server.port, "user": server.cdc_user, "passwd": server.cdc_password
        },
        server_id=4_000_000_002,
        log_file=window.start.file,
        log_pos=window.start.offset,
        resume_stream=True,
        blocking=False,
        only_events=[DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent],
    )  # fmt: skip
    try:
        for event in stream:
            if Position(stream.log_file, stream.log_pos) <= window.stop and event.table in tables:
                yield from _of(event, [column.name for column in tables[event.table].key])
    finally:
        stream.close()


def _of(event: RowsEvent, key: list[str]) -> Iterator[_Change]:
    for row in event.rows:
        if isinstance(event, UpdateRowsEvent):
            before, after = row["before_values"], row["after_values"]
            if not key or [before[name] for name in key] != [after[name] for name in key]:
                yield event.table, "d", before
            yield event.table, "u", after
        else:
            yield event.table, "c" if isinstance(event, WriteRowsEvent) else "d", row["values"]


Form = Callable[[Any], Any]
