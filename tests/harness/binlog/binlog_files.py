"""The binlog files of a server, written by hand, and what the server sends of them."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Self

from cdc_lib.model.position import Position
from tests.harness.binlog.streams import Wire

PREFIX = "binlog"
_END = b"\x01\0\0\0\xfe"


@dataclass
class Transaction:
    """One transaction; times in seconds since 1970.

    Args:
        origin: server id of the first server that committed it.
        time: when this server committed it, by its clock.
        original: when the first server did, by its clock.
        number: of its GTID; 0 for an anonymous transaction.
    """

    origin: int
    time: int
    original: int
    number: int = 0


@dataclass
class BinlogFiles:
    """MySQL binlog files whose transactions have no rows: only their positions matter.

    Args:
        events: of each file (offset, bytes) of its events.
        transactions: start position of each and the transaction, in order.
    """

    events: list[list[tuple[int, bytes]]] = field(default_factory=list)
    transactions: list[tuple[Position, Transaction]] = field(default_factory=list)

    def new_file(self, time: int, *, at_start: bool, close: bool = True, before: bytes = bytes(8)) -> Self:
        """Start a file; ``time`` is the time of its FORMAT_DESCRIPTION, ``before`` the body of its PREVIOUS_GTIDS."""
        if self.events and close:
            if at_start:
                self._event(3, b"", time)
            else:
                self._event(4, struct.pack("<Q", 4) + self.name(len(self.events) + 1).encode(), time)
        self.events.append([])
        created = time if at_start else 0
        lengths = bytes([56, 13, 0, 8, *[0] * 37])
        self._event(15, struct.pack("<H50sIB", 4, b"9.7.4", created, 19) + lengths + bytes(5), time)
        self._event(35, before, time)
        return self

    def write(self, transaction: Transaction) -> Self:
        """Add a transaction."""
        self.transactions.append((self.head, transaction))
        gtid = b"\1" + bytes(15) + b"\1" + struct.pack("<Q", transaction.number) + b"\2" + bytes(16)
        gtid += (transaction.time * 1_000_000 | 1 << 55).to_bytes(7, "little") + (
            transaction.original * 1_000_000
        ).to_bytes(7, "little")
        self._event(33 if transaction.number else 34, gtid, transaction.original, transaction.origin)
        self._event(2, struct.pack("<IIBHH", 1, 0, 2, 0, 0) + b"db\0BEGIN", transaction.original, transaction.origin)
        self._event(16, bytes(8), transaction.original, transaction.origin)
        return self

    @property
    def head(self) -> Position:
        """The end of the binlog."""
        return Position(self.name(len(self.events)), self._size(self.events[-1]))

    @property
    def sizes(self) -> tuple[tuple[str, int], ...]:
        """Names and sizes of the files."""
        return tuple((self.name(number), self._size(events)) for number, events in enumerate(self.events, 1))

    def sent(self, start: Position) -> Wire:
        """The stream that the server sends from a position."""
        wire = bytearray()
        for number in range(start.file_number, len(self.events) + 1):
            offset = start.offset if number == start.file_number else 4
            body = struct.pack("<Q", offset) + self.name(number).encode()
            wire += _packet(struct.pack("<IBIIIH", 0, 4, 1, 19 + len(body), 0, 0x20) + body)
            for at, event in self.events[number - 1]:
                if at >= offset:
                    wire += _packet(event)
        return Wire(bytes(wire + _END))

    @staticmethod
    def name(number: int) -> str:
        """Name of a file."""
        return f"{PREFIX}.{number:06d}"

    def _event(self, kind: int, body: bytes, time: int, server: int = 1) -> None:
        at = self._size(self.events[-1])
        size = 19 + len(body)
        self.events[-1].append((at, struct.pack("<IBIIIH", time, kind, server, size, at + size, 0) + body))

    @staticmethod
    def _size(events: list[tuple[int, bytes]]) -> int:
        return events[-1][0] + len(events[-1][1]) if events else 4


def _packet(event: bytes) -> bytes:
    return (1 + len(event)).to_bytes(3, "little") + b"\0\0" + event
