"""The header of a binlog file: its creation time, the GTIDs of all earlier files, its first transaction."""

from __future__ import annotations

import re
import struct
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np

from cdc_lib.binlog.framing.boundary_kernel import source_of, times_of
from cdc_lib.binlog.framing.damaged_file import hint_of_damage
from cdc_lib.binlog.framing.event_types import is_no_file
from cdc_lib.binlog.framing.packets import SID_SIZE
from cdc_lib.binlog.framing.refusal import number_and_text, refusal
from cdc_lib.binlog.framing.tagged_gtid import FIELDS
from cdc_lib.errors import AnonymousNotSent, DecodeError, SourceError, SourceUnavailable
from cdc_lib.model.commit import Commit
from cdc_lib.model.gtid import GtidSet, Interval
from cdc_lib.model.server_identity import Flavor
from cdc_lib.ports import BinlogStream

_HEADER = 19
_MAKES_NONE = (4, 27, 41)
"""Artificial ROTATE and heartbeats at the start of a stream."""
_BEGINS = (33, 34, 42, 162)
"""GTID, ANONYMOUS_GTID, GTID_TAGGED, and MariaDB's GTID."""
_BEFORE = (3, 161, 164)
"""STOP, BINLOG_CHECKPOINT and START_ENCRYPTION, which are ignored here."""
_VERSION = re.compile(rb"(\d+)\.(\d+)\.(\d+)")
_CREATED = _HEADER + 52
"""Offset of the server's start time in a FORMAT_DESCRIPTION, after binlog version and server version."""


@dataclass(frozen=True, slots=True)
class FileHeader:
    """The content of a file's first events.

    Args:
        time: header time of its FORMAT_DESCRIPTION: when the file was created, if by a server start; else when the statement
            began whose commit rotated the binlog: possibly long before, and on a standby by another server's clock.
        gtids: of the transactions in all earlier files; None if the server writes none.
        at_start: whether a server start created it.
        first: its first transaction; None if it has none, or the server does not send it.
    """

    time: datetime
    gtids: GtidSet | None
    at_start: bool = False
    first: First | None = None


@dataclass(frozen=True, slots=True)
class First:
    """The first transaction of a file.

    Args:
        time: commit time: the later of this server's and the original server's.
        known: whether the commit time is known; else ``time`` is when a statement of it began.
        commit: by the clock of the original server.
        anonymous: whether it has no GTID.
    """

    time: datetime
    known: bool
    commit: Commit
    anonymous: bool = False


def read_file_header(stream: BinlogStream, flavor: Flavor, file: str) -> FileHeader:
    """Read the header of a file from a stream that begins at its first event.

    Raises:
        SourceUnavailable: the server no longer has the file.
        SourceError: the server refuses, or the stream ends.
        DecodeError: the bytes do not follow the format.
    """
    made: bytes | None = None
    checksum, gtids = 0, None
    for event in _sent(events_of(stream, file)):
        kind = event[4]
        if kind == 4 and made is not None:  # the end of the file
            break
        if kind in _MAKES_NONE:
            continue
        if kind == 15:
            made, checksum = event, checksum_bytes(event, file=file)
        elif made is None:
            raise _wrong("first", ValueError(f"it has type {kind}"))
        elif kind in (35, 163) and gtids is None:
            gtids = gtids_before(flavor, kind, event[_HEADER : len(event) - checksum])
        elif kind not in _BEFORE:
            return _file_header(made, gtids, first_of(event, len(event) - checksum))
    if made is None:
        raise SourceUnavailable("the server ended the binlog stream too early", hint="The task can be tried again.")
    return _file_header(made, gtids, None)


def _sent(events: Iterator[bytes]) -> Iterator[bytes]:
    """Yield events up to a transaction without a GTID that the server does not send; the header is complete before it."""
    try:
        yield from events
    except AnonymousNotSent:
        return


def _file_header(made: bytes, gtids: GtidSet | None, first: First | None) -> FileHeader:
    return FileHeader(time_of(made), gtids, made[_CREATED : _CREATED + 4] != bytes(4), first)


def first_of(event: bytes, end: int) -> First:
    """Return the transaction that begins with an event: a GTID, or a statement before MySQL 5.6.5."""
    data = np.frombuffer(
        bytearray(event), np.uint8
    )  # writable: bytes off the wire are, and a kernel is compiled for each
    fields = np.zeros(FIELDS, np.int64)
    number = 0
    if event[4] in _BEGINS:
        number = int(source_of(data, 0, end, np.zeros(SID_SIZE, np.uint8), fields))
        if number < 0:
            raise _wrong("GTID", ValueError("its numbers are not valid"))
        time, original, known = times_of(data, 0, end, fields)
    else:
        time = original = int.from_bytes(event[:4], "little") * 1_000_000
        known = False
    origin = int.from_bytes(event[5:9], "little")
    return First(_at(max(time, original)), bool(known), Commit(origin, _at(original)), anonymous=number == 0)


def _at(microseconds: int) -> datetime:
    return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=int(microseconds))


def checksum_bytes(event: bytes, **context: str | int) -> int:
    """Return the checksum length of the events after a FORMAT_DESCRIPTION, which itself ends in the algorithm and four bytes.

    Servers before MySQL 5.6.1 and MariaDB 5.3 have no checksums: there it ends in the lengths of post-headers.
    Source: MySQL ``libs/mysql/binlog/event/binlog_event.h``, checksum_version_split_mysql.

    Raises:
        DecodeError: the algorithm is unknown, or the event is malformed.
    """
    release, is_mariadb = release_of(event, **context)
    if release < ((5, 3, 0) if is_mariadb else (5, 6, 1)):
        return 0
    if event[-5] not in (0, 1):
        raise _wrong("FORMAT_DESCRIPTION", ValueError(f"checksum algorithm {event[-5]} is not known"), **context)
    return 4 * event[-5]


def release_of(event: bytes, **context: str | int) -> tuple[tuple[int, ...], bool]:
    """Return the version of the server that wrote a file, from its FORMAT_DESCRIPTION, and whether it is MariaDB.

    Raises:
        DecodeError: the event is malformed.
    """
    version = event[_HEADER + 2 : _HEADER + 52].rstrip(b"\0")
    numbers = _VERSION.match(version)
    if numbers is None or len(event) < _HEADER + 57 + 5:
        raise _wrong("FORMAT_DESCRIPTION", ValueError(f"it is of server version {version[:50]!r}"), **context)
    return tuple(map(int, numbers.groups())), b"MariaDB" in version


def events_of(stream: BinlogStream, file: str) -> Iterator[bytes]:
    """Yield the events of a stream; each must fit into one packet.

    Raises:
        SourceError: the server refuses.
        DecodeError: an event is shorter than its header.
    """
    data = bytearray()
    buffer = memoryview(bytearray(1 << 16))
    while True:
        while len(data) >= 4 and len(data) >= 4 + (size := int.from_bytes(data[:3], "little")):
            payload = bytes(data[4 : 4 + size])
            del data[: 4 + size]
            if payload[:1] == b"\xfe" and size < 9:
                return
            if payload[:1] != b"\0":
                raise _refused(payload, file)
            if size <= _HEADER:
                raise _wrong("short", ValueError(f"it has {size - 1} bytes"), file=file)
            yield payload[1:]
        got = stream.read_into(buffer)
        if got == 0:
            return
        data += buffer[:got]


def _refused(payload: bytes, file: str) -> SourceError:
    number, text = number_and_text(payload[1:])
    if is_no_file(number, text):
        return SourceUnavailable(
            "the server no longer has a binlog file that it listed",
            hint="It was purged meanwhile, and the next attempt does without it. Where this comes again, the file is missing on the "
            "server's disk: PURGE BINARY LOGS TO the file after it.",
            file=file,
        )
    return refusal(payload[1:], {"file": file})


def time_of(event: bytes) -> datetime:
    """Return an event's header time; for a FORMAT_DESCRIPTION, the creation time of its file."""
    return datetime.fromtimestamp(int.from_bytes(event[:4], "little"), UTC)


def previous_gtids(body: bytes) -> GtidSet:
    """Read a PREVIOUS_GTIDS: number of sources 8, of each its UUID 16, number of runs 8, first and after-last number of each.

    Since MySQL 8.3 the last byte of the number of sources is a format: 1 when sources have tags (the first byte repeats it, and
    the six between hold the number); then a tag, its length times two in one byte, is after each UUID. Source: MySQL
    ``sql/rpl_gtid_set.cc``, Gtid_set::encode.

    Raises:
        DecodeError: it does not follow the format.
    """
    tagged = len(body) >= 8 and body[7] == 1
    at = 8
    found: list[tuple[str, Interval]] = []
    try:
        count = int.from_bytes(body[1:7] if tagged else body[:8], "little")
        for _ in range(count):
            source, at = str(uuid.UUID(bytes=body[at : at + 16])), at + 16
            if tagged:
                size, at = body[at] >> 1, at + 1
                tag, at = body[at : at + size].decode("ascii"), at + size
                source = f"{source}:{tag}" if tag else source
            (runs,) = struct.unpack_from("<Q", body, at)
            at += 8
            for _ in range(runs):
                first, end = struct.unpack_from("<qq", body, at)
                at += 16
                found.append((source, _run(first, end - 1)))
    except (ValueError, IndexError, struct.error) as error:
        raise _wrong("PREVIOUS_GTIDS", error) from error
    return GtidSet.of("mysql", found)


def gtid_list(body: bytes) -> GtidSet:
    """Read a GTID_LIST: number of entries 4 (its upper four bits are flags), of each domain 4, server 4, number 8.

    Source: MariaDB ``sql/log_event.cc``, Gtid_list_log_event.

    Raises:
        DecodeError: it does not follow the format.
    """
    try:
        count = int.from_bytes(body[:4], "little") & 0x0FFFFFFF
        entries = [struct.unpack_from("<IIq", body, 4 + 16 * i) for i in range(count)]
        runs = [(f"{domain}-{server}", _run(1, number)) for domain, server, number in entries]
    except (ValueError, struct.error) as error:
        raise _wrong("GTID_LIST", error) from error
    return GtidSet.of("mariadb", runs)


def gtids_before(flavor: Flavor, kind: int, body: bytes) -> GtidSet | None:
    """Return the GTIDs of all earlier files if the event has them, else None."""
    if flavor == "mysql" and kind == 35:
        return previous_gtids(body)
    return gtid_list(body) if flavor == "mariadb" and kind == 163 else None


def _run(first: int, last: int) -> Interval:
    if not 1 <= first <= last:
        msg = f"{first} to {last} is not a range of GTID numbers"
        raise ValueError(msg)
    return first, last


def _wrong(name: str, error: Exception, **context: str | int) -> DecodeError:
    return DecodeError(
        f"a {name} event does not follow the format: {error}",
        hint=hint_of_damage(context),
        **context,
    )
