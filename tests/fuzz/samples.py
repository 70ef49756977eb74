"""What the cases are made of: recorded streams cut into transactions, row images and cells, and bytes written by hand."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from cdc_lib.binlog.framing import event_types
from cdc_lib.binlog.rows import locate
from cdc_lib.binlog.rows.table_map import TableLayout, parse
from cdc_lib.model.server_identity import Flavor
from tests.harness.binlog.recorded import CHARSETS, Event, Recorded, recorded


@dataclass
class Cut:
    """The parts of all recorded streams, without checksums.

    Args:
        transactions: wire bytes of each transaction, and of the same with its checksums.
        offsets: where each starts in its file.
        checksums: bytes of its checksums, 4 or 0.
        bodies: (type, layout, row event after its post-header).
        layouts: of all tables.
        ids: table id and layout of each of them in its stream; recorded ids may repeat between streams, not in one.
        control_events: events that Python looks at.
        cells: of each kind of column.
    """

    transactions: list[bytes] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    checksums: list[int] = field(default_factory=list)
    bodies: list[tuple[int, int, bytes]] = field(default_factory=list)
    layouts: list[TableLayout] = field(default_factory=list)
    ids: dict[int, int] = field(default_factory=dict)
    control_events: list[bytes] = field(default_factory=list)
    cells: dict[str, list[bytes]] = field(default_factory=dict)


@cache
def cut() -> Cut:
    """Return the parts of every recorded stream."""
    into = Cut()
    for stream in recorded().values():
        _transactions(stream, into)
        _transactions(stream.without_checksums(), into)
        _events(stream.without_checksums(), into)
    into.cells["json"] = [*into.cells.get("json", []), *_documents()]
    return into


def table_slots(parts: Cut) -> tuple[np.ndarray, np.ndarray]:
    """Return the ids of all tables and their slots, as the kernels look them up."""
    ids, slots = np.full(1024, -1, np.int64), np.zeros(1024, np.int64)
    for table_id, slot in parts.ids.items():
        i = (table_id * 0x9E3779B1) & 1023
        while ids[i] != -1:
            i = (i + 1) & 1023
        ids[i], slots[i] = table_id, slot
    return ids, slots


def _transactions(stream: Recorded, into: Cut) -> None:
    """Cut at GTIDs; what is before the first one is left out."""
    pieces: list[tuple[int, list[Event]]] = []
    for position, event in zip(stream.offsets(), stream.events, strict=True):
        if event.kind in (event_types.GTID, event_types.ANONYMOUS_GTID, event_types.MARIADB_GTID):
            pieces.append((position.offset, []))
        if pieces:
            pieces[-1][1].append(event)
    for offset, piece in pieces:
        into.transactions.append(Recorded(stream.flavor, tuple(piece), checksum=stream.checksum).wire)
        into.offsets.append(offset)
        into.checksums.append(4 if stream.checksum else 0)


def _events(stream: Recorded, into: Cut) -> None:
    known: dict[int, int] = {}
    flavor: Flavor = "mysql" if stream.flavor == "mysql" else "mariadb"
    for event in stream.events:
        body = event.whole[19:]
        if event.kind == event_types.TABLE_MAP:
            known[int.from_bytes(body[:6], "little")] = len(into.layouts)
            into.ids[int.from_bytes(body[:6], "little")] = len(into.layouts)
            into.layouts.append(parse(body, CHARSETS, flavor))
        elif event.kind in event_types.ROWS or event.kind == event_types.PARTIAL_UPDATE_ROWS:
            layout = known[int.from_bytes(body[:6], "little")]
            into.bodies.append((event.kind, layout, body[8:]))
            if event.kind != event_types.PARTIAL_UPDATE_ROWS:
                _cells(event.kind, into.layouts[layout], body[8:], into)
        if event.kind in (event_types.TABLE_MAP, event_types.QUERY, event_types.ROTATE, event_types.FORMAT_DESCRIPTION):
            into.control_events.append(event.whole)


def _cells(kind: int, layout: TableLayout, body: bytes, into: Cut) -> None:
    """Take the cells of a row event, by the kind of their column."""
    columns = layout.prefix.shape[0]
    pos, length = np.empty((columns, 64), np.int64), np.empty((columns, 64), np.int64)
    records = np.zeros((1, 10), np.int64)
    records[0, :3] = 0, len(body), kind
    marks = np.empty(64, np.uint8), np.empty(64, np.int64), np.empty(64, np.int64)
    data = np.frombuffer(body, np.uint8)
    status, found, *_ = locate.locate(
        data, records, np.zeros(1, np.int64), 0, layout.prefix, layout.width, layout.keys, 1 << 20, 1 << 30, pos, length, *marks
    )  # fmt: skip
    if status == locate.PARTIAL_IMAGE:
        return
    assert status == locate.ALL_READ, status
    for column, starts, sizes in zip(layout.schema.columns, pos, length, strict=True):
        found_cells = [body[p : p + n] for p, n in zip(starts[:found], sizes[:found], strict=True) if n >= 0]
        into.cells.setdefault(column.type.kind, []).extend(found_cells)


def _documents() -> list[bytes]:
    """JSON with offsets of four bytes, which a server writes from 64 KiB on, deep ones, and ones that name themselves."""
    large: Callable[[bytes, int], bytes] = lambda entries, size: struct.pack("<II", 1, size) + entries  # noqa: E731
    text = b"\x0c" + struct.pack("<I", 13) + b"\x03abc"
    return [
        b"\x03" + large(text, 17),
        b"\x01" + large(struct.pack("<IH", 19, 1) + b"\x07" + struct.pack("<i", -70000) + b"k", 20),
        b"\x03" + large(b"\x0b" + struct.pack("<I", 13) + struct.pack("<d", 0.1234567890123456789), 21),
        b"\x02" + struct.pack("<HH", 1, 7) + b"\x02\x00\x00",
        b"\x02" + struct.pack("<HH", 3, 13) + (b"\x02\x00\x00") * 3,
        b"\x02" + struct.pack("<HH", 1, 11) + b"\x02\x07\x00" + struct.pack("<HH", 0, 4),
        b"\x0f\xf6\x04\x03\x01\x81\x05",
        b"\x0f\x0c\x08" + struct.pack("<Q", (2024 * 13 + 2) << 46 | 29 << 41),
        b"\x0f\x0b\x08" + struct.pack("<q", -(12 << 36)),
        b"\x0f\xfc\x03abc",
        nested(120),
    ]


def nested(levels: int) -> bytes:
    """Return arrays in arrays."""
    document = struct.pack("<HH", 0, 4)
    for _ in range(levels - 1):
        document = struct.pack("<HH", 1, 7 + len(document)) + b"\x02" + struct.pack("<H", 7) + document
    return b"\x02" + document
