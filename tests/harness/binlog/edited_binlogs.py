"""Closed binlog files of a running server whose events are edited, as by a defect of the server or of its disk.

A server reads a closed file from the disk for each stream, so that it need not be restarted.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from pathlib import Path

from tests.harness.servers import SqlServer

Events = list[bytes]
"""The events of a file with their headers, without checksums."""

MAGIC = b"\xfebin"
HEADER = 19
QUERY, END, INCIDENT = 2, 16, 26
"""Of single events: a statement, the end of a transaction (XID), and what a server writes when it lost events."""
GTIDS = {33, 34, 162}
"""GTID and ANONYMOUS_GTID of MySQL, and the one of MariaDB: each begins a transaction."""
XID, TABLE_MAP = {END}, {19}
INSERTS = {23, 30, 166}
"""WRITE_ROWS of both versions, and MariaDB's compressed one."""


def event_of(kind: int, body: bytes, like: bytes) -> bytes:
    """Return an event with the time, server and flags of another one."""
    return like[:4] + bytes([kind]) + like[5:HEADER] + body


def query_of(text: bytes, like: bytes) -> bytes:
    """Return a statement without a database and session variables."""
    return event_of(QUERY, struct.pack("<IIBHH", 1, 0, 0, 0, 0) + b"\0" + text, like)


def close_file(server: SqlServer) -> str:
    """Let the server begin a new file, and return the name of the one before it."""
    name = str(server.execute("SHOW BINARY LOGS")[-1][0])
    server.execute("FLUSH BINARY LOGS")
    return name


def file_after(name: str) -> str:
    """Return the name of the next file."""
    prefix, _, number = name.rpartition(".")
    return f"{prefix}.{int(number) + 1:06d}"


def edit_file(server: SqlServer, name: str, edit: Callable[[Events], Events]) -> None:
    """Write a closed file again with other events, whose lengths, positions and checksums are right."""
    path = Path(server.data_dir) / name
    written = bytearray(MAGIC)
    for event in edit([event for _, event in _events_of(path.read_bytes())]):
        size = len(event) + 4
        whole = event[:9] + struct.pack("<II", size, len(written) + size) + event[17:]
        written += whole + struct.pack("<I", zlib.crc32(whole))
    path.write_bytes(written)


def edit_bytes(server: SqlServer, name: str, edit: Callable[[bytearray], object]) -> None:
    """Change the bytes of a closed file in place."""
    path = Path(server.data_dir) / name
    data = bytearray(path.read_bytes())
    edit(data)
    path.write_bytes(data)


def first(events: Events, kinds: AbstractSet[int]) -> int:
    """Return the index of the first event of some types."""
    return next(at for at, event in enumerate(events) if event[4] in kinds)


def with_text(events: Events, text: bytes) -> int:
    """Return the index of the first event that contains a text."""
    return next(at for at, event in enumerate(events) if text in event)


def inserted(events: Events, at: int, event: bytes) -> Events:
    """Return the events with one more before an index."""
    return [*events[:at], event, *events[at:]]


def replaced(events: Events, at: int, event: bytes) -> Events:
    """Return the events with another one at an index."""
    return [*events[:at], event, *events[at + 1 :]]


def removed(events: Events, at: int) -> Events:
    """Return the events without the one at an index."""
    return [*events[:at], *events[at + 1 :]]


def offset_of(server: SqlServer, name: str, kinds: AbstractSet[int], number: int = 1) -> int:
    """Return where the first event of some types starts in a file, or the second, and so on."""
    data = (Path(server.data_dir) / name).read_bytes()
    found = [at for at, _ in _events_of(data) if data[at + 4] in kinds]
    return found[number - 1]


def _events_of(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = len(MAGIC)
    while at < len(data):
        (size,) = struct.unpack_from("<I", data, at + 9)
        yield at, data[at : at + size - 4]
        at += size
