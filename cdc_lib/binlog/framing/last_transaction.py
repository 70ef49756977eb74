"""Whether a server still has the transaction before a cursor.

A server that was reverted to a machine snapshot has the same name and the same files. It gives the same GTIDs to other
transactions, perhaps of the same sizes. Only their bytes differ.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cdc_lib.binlog.framing import event_types, packets
from cdc_lib.binlog.framing.boundary_kernel import source_of
from cdc_lib.binlog.framing.file_header import checksum_bytes, events_of, first_of
from cdc_lib.binlog.framing.scan_progress import gtid_sources
from cdc_lib.binlog.framing.tagged_gtid import FIELDS
from cdc_lib.model.last_transaction import LastTransaction
from cdc_lib.model.position import Position
from cdc_lib.model.server_identity import Flavor
from cdc_lib.ports import BinlogStream

_MADE_UP = (event_types.FORMAT_DESCRIPTION, event_types.ROTATE, event_types.START_ENCRYPTION)
"""Types of events that are in no file if they have no end position."""


def other_past(stream: BinlogStream, flavor: Flavor, read: LastTransaction) -> str:
    """Return the evidence that the transaction before a cursor is not the one that was read; empty if there is none.

    Args:
        stream: begins where that transaction did.
        flavor: of the server.
        read: the transaction.

    Raises:
        SourceError: the server cannot send what is there.
        DecodeError: its bytes do not follow the format.
    """
    digest, begun, ended = 0, "", read.position
    for at, event, end in _in_files(stream, read.position):
        if read.before in (at, ended):  # a file of a server that was killed has no event after its last transaction
            break
        if read.before < at:
            return f"no event begins at {read.before}"
        ended = Position(at.file, at.offset + len(event))
        if packets.begins(event[4]):
            if begun:
                return f"{_shown(event, end, flavor)} at {at} was not read"
            begun = _shown(event, end, flavor)
        elif not begun:
            break
        elif packets.outside(event[4]):
            continue
        if at.offset + len(event) - read.position.offset <= packets.DIGESTED:
            digest = int(packets.with_event(digest, zlib.crc32(memoryview(event)[:end])))
    if begun and digest == read.digest:
        return ""
    return f"{begun or 'no transaction'} begins at {read.position}, and {read.gtid or 'another one'} was read there"


def _in_files(stream: BinlogStream, start: Position) -> Iterator[tuple[Position, bytes, int]]:
    """Yield the events of a stream that are in files: position, bytes, and where they end without their checksum."""
    at, checksum, formatted = start, 0, False
    for event in events_of(_Bounded(stream), start.file):
        kind, end_position = event[4], int.from_bytes(event[13:17], "little")
        made_up = event[17] & event_types.ARTIFICIAL != 0 or kind in (event_types.HEARTBEAT, event_types.HEARTBEAT_V2)
        made_up |= end_position == 0 and kind in _MADE_UP
        if kind == event_types.FORMAT_DESCRIPTION:
            checksum, formatted = checksum_bytes(event, file=at.file), True
        if kind == event_types.ROTATE and made_up and formatted:
            body = event[packets.HEADER : len(event) - checksum]
            at = Position(body[8:].decode(), int.from_bytes(body[:8], "little"))
        if not made_up:
            yield at, event, len(event) - checksum
            at = Position(at.file, at.offset + len(event))


def _shown(event: bytes, end: int, flavor: Flavor) -> str:
    """Return the GTID and the commit time of the transaction that an event begins."""
    sid = np.zeros((1, packets.SID_SIZE), np.uint8)
    number = source_of(np.frombuffer(bytearray(event), np.uint8), 0, end, sid[0], np.zeros(FIELDS, np.int64))
    gtid = (
        f"{gtid_sources(sid, flavor)[0]}{':' if flavor == 'mysql' else '-'}{number}" if number > 0 else "a transaction"
    )
    return f"{gtid} of {first_of(event, end).commit.time:%Y-%m-%d %H:%M:%S.%f} UTC"


@dataclass(slots=True)
class _Bounded:
    """The first bytes of a stream."""

    stream: BinlogStream
    left: int = 2 * packets.DIGESTED  # the digested events, in their packets

    def read_into(self, view: memoryview) -> int:
        got = self.stream.read_into(view[: self.left]) if self.left else 0
        self.left -= got
        return got
