"""Compressed transactions and events in the form that mysql-replication reads: each of their events uncompressed, at their place.

It shares no code with the drain. Layouts: MySQL ``libs/mysql/binlog/event/control_events.h`` (Transaction_payload_event), MariaDB
``sql/log_event.cc`` (binlog_buf_compress).
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

from pymysql.protocol import MysqlPacket
from zstandard import ZstdDecompressor, ZstdError

from cdc_lib.mysql.pymysql_private import read_packet

FAILURES = (ZstdError, zlib.error)
"""What damaged bytes raise, beside what mysql-replication raises for them."""

_HEADER = 19
_TRANSACTION = 40
_MARIADB = {166: 23, 167: 24, 168: 25, 169: 30, 170: 31, 171: 32}
"""By the type of a compressed row event, that of the event that it was made of. MariaDB compresses no ROLLBACK, which is the only statement that matters."""
_UPDATES = (24, 31)
_WIDTHS = {252: 2, 253: 3, 254: 8}


class UncompressedSession:
    """A session of mysql-replication that gives no compressed event. Tested with mysql-replication 1.0.17.

    Args:
        session: of pymysql, or what takes its place. What is not known here is asked of it.
    """

    def __init__(self, session: Any) -> None:
        self.__dict__.update(_session=session, _inner=iter(()))

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the session."""
        return getattr(self._session, name)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute of the session."""
        setattr(self._session, name, value)

    def _read_packet(self) -> Any:
        """Return the next packet; the reader asks for no other than those of a dump in this way."""
        if (inner := next(self._inner, None)) is None:
            packet: Any = read_packet(self._session)
            data = packet.get_all_data()
            if data[:1] != b"\0" or len(data) <= _HEADER:
                return packet
            event: bytes = data[1:]
            if event[4] == _TRANSACTION:
                self.__dict__["_inner"] = events_of(event)
                return self._read_packet()
            if event[4] not in _MARIADB:
                return packet
            inner = uncompressed(event)
        return MysqlPacket(b"\0" + inner, "utf8")


def events_of(event: bytes) -> Iterator[bytes]:
    """Yield the events of a compressed transaction of MySQL; each begins where the transaction does, and ends with its checksum."""
    at, fields = _HEADER, {}
    while event[at]:
        kind, at = _packed(event, at)
        length, at = _packed(event, at)
        fields[kind], _ = _packed(event, at)
        at += length
    end = at + 1 + fields[1]
    with ZstdDecompressor().stream_reader(event[at + 1 : end], read_across_frames=True) as payload:
        while header := payload.read(_HEADER):
            body = payload.read(int.from_bytes(header[9:13], "little") - _HEADER)
            yield _placed(event, header[:9], body + event[end:], header[17:])


def uncompressed(event: bytes) -> bytes:
    """Return a compressed row event of MariaDB as the event that it was made of, with its checksum."""
    kind = _MARIADB[event[4]]
    at = _HEADER + 8  # after the table and the flags
    at += int.from_bytes(event[at : at + 2], "little") if kind > _UPDATES[0] + 1 else 0
    columns, at = _packed(event, at)
    at += (columns + 7) // 8 * (2 if kind in _UPDATES else 1)
    inflater = zlib.decompressobj()
    body = event[_HEADER:at] + inflater.decompress(event[at + 1 + (event[at] & 7) :])
    return _placed(event, event[:4] + bytes([kind]) + event[5:9], body + inflater.unused_data, event[17:_HEADER])


def _placed(outer: bytes, start: bytes, body: bytes, flags: bytes) -> bytes:
    """Return an event that begins where another one does: a position is that of the end, and 0 where there is none."""
    size = _HEADER + len(body)
    end = int.from_bytes(outer[13:17], "little")
    place = (end - len(outer) + size) % (1 << 32) if end else 0
    return start + size.to_bytes(4, "little") + place.to_bytes(4, "little") + flags + body


def _packed(data: bytes, at: int) -> tuple[int, int]:
    """Return a packed number, and where it ends."""
    width = _WIDTHS.get(data[at], 0)
    return (int.from_bytes(data[at + 1 : at + 1 + width], "little"), at + 1 + width) if width else (data[at], at + 1)
