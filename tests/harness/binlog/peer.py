"""What mysql-replication reads from the same window, for the types that it is known to read right."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.row_event import DeleteRowsEvent, RowsEvent, UpdateRowsEvent, WriteRowsEvent

from cdc_lib.model.position import Position
from cdc_lib.model.window import Window
from tests.harness.binlog.folding import plain
from tests.harness.generated.random_tables import LONG_DECIMALS, Table
from tests.harness.servers import SqlServer

KNOWN_WRONG = {
    "BINARY": "leaves out the zero bytes at the end",
    "SET": "gives a Python set, which has no order, and None for no member",
    "JSON": "gives objects, whose numbers and order are not those of the server's text",
    "TIME": "takes the fraction of a negative time for one of the second before: -00:00:00.05 is -00:00:00.95",
}
"""Types whose values it shows in another way than SELECT."""

RIGHT_CHARSETS = {"", "utf8mb4", "latin1", "ascii", "cp1251"}
"""Of the character sets in the random tables, those whose texts it reads as the server does. For others it returns the bytes, or
decodes UTF-16 in this machine's byte order."""


def comparable(declared: str, value: Any) -> Any:
    """Convert a value of mysql-replication to the form that the lake has."""
    if value is None:
        return None
    if declared.startswith("BIT"):
        return int(value, 2)
    if declared.startswith(("VARBINARY", "BLOB", "LONGBLOB")):
        return value or b""  # an empty value is a str
    if declared in LONG_DECIMALS:
        return format(value, "f")
    return plain(value)


def is_right(declared: str) -> bool:
    """Whether it reads a type right."""
    charset = declared.partition("CHARACTER SET ")[2]
    return declared.partition("(")[0].partition(" ")[0] not in KNOWN_WRONG and charset in RIGHT_CHARSETS


_Change = tuple[str, str, dict[str, Any]]


def changes(server: SqlServer, window: Window, tables: dict[str, Table]) -> Iterator[_Change]:
    """Yield (table, op, values) of each change in the window, with the ops that the drain gives them."""
    stream = BinLogStreamReader(
        connection_settings={
            "host": server.host, "port": server.port, "user": server.cdc_user, "password": server.cdc_password
        },
        server_id=4_000_000_002,
        log_file=window.start.file,
        log_pos=window.start.offset,
        resume_stream=True,
        ignore_decode_errors=True,  # of character sets that it reads wrong
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
