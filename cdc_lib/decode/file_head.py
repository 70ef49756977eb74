"""What stands at the beginning of a binlog file: when it was made, and which GTIDs the files before it have."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from cdc_lib.errors import DecodeError, PositionPurged, SourceError, SourceUnavailable
from cdc_lib.model.gtid import GtidSet, Interval
from cdc_lib.model.identity import Flavor
from cdc_lib.ports import BinlogStream

_HEADER = 19
_MAKES_NONE = (4, 27, 41)
"""ROTATE and heartbeats, which the server makes up in front."""
_FILE_IS_GONE = 1236


@dataclass(frozen=True, slots=True)
class FileHead:
    """What the first events of a file tell.

    Args:
        time: when it was made.
        gtids: of the transactions in the files before it; None where the server writes none.
    """

    time: datetime
    gtids: GtidSet | None


def read_file_head(stream: BinlogStream, flavor: Flavor, file: str) -> FileHead:
    """Read the head of a file from a stream that begins at its first event.

    Raises:
        PositionPurged: the server has no such file any more.
        SourceError: it refuses, or the stream ends.
        DecodeError: the bytes do not follow the format.
    """
    time: datetime | None = None
    checksum = 0
    for event in _events(stream, file):
        kind = event[4] if len(event) > _HEADER else -1
        if kind in _MAKES_NONE:
            continue
        if kind == 15:
            if event[-5] not in (0, 1):
                raise _wrong("FORMAT_DESCRIPTION", ValueError("its checksum algorithm is not known"))
            time, checksum = time_of(event), 4 * event[-5]
            continue
        if time is None:
            raise _wrong("first", ValueError(f"it has type {kind}"))
        if kind in (3, 161, 164):  # STOP, BINLOG_CHECKPOINT and START_ENCRYPTION may come before
            continue
        return FileHead(time, gtids_before(flavor, kind, event[_HEADER : len(event) - checksum]))
    if time is None:
        raise SourceUnavailable("the server ended the binlog stream too early", hint="The task can be tried again.")
    return FileHead(time, None)


def _events(stream: BinlogStream, file: str) -> Iterator[bytes]:
    """Yield the events of a stream, as long as they fit into one packet each."""
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
            yield payload[1:]
        got = stream.read_into(buffer)
        if got == 0:
            return
        data += buffer[:got]


def _refused(payload: bytes, file: str) -> SourceError:
    number, text = int.from_bytes(payload[1:3], "little"), payload[3:].decode("utf-8", "replace")
    if number == _FILE_IS_GONE:
        return PositionPurged("the server no longer has a binlog file that it told of", hint="Try again.", file=file)
    return SourceError(f"the server refused to send the binlog: {text} (error {number})", file=file)


def time_of(event: bytes) -> datetime:
    """Return when an event was made, by its header; of a FORMAT_DESCRIPTION: when its file was."""
    return datetime.fromtimestamp(int.from_bytes(event[:4], "little"), UTC)


def previous_gtids(body: bytes) -> GtidSet:
    """Read a PREVIOUS_GTIDS: number of sources 8, of each its UUID 16, number of runs 8, first and behind-last number of each.

    Since MySQL 8.3 the last byte of the number of sources is a format: 1 when sources have tags (the first byte repeats it, and
    the six between hold the number); then a tag, its length times two in one byte, stands behind each UUID. Source: MySQL
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
                first, behind = struct.unpack_from("<qq", body, at)
                at += 16
                found.append((source, _run(first, behind - 1)))
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
    """Return the GTIDs that the files before have, if an event of this type tells them."""
    if flavor == "mysql" and kind == 35:
        return previous_gtids(body)
    return gtid_list(body) if flavor == "mariadb" and kind == 163 else None


def _run(first: int, last: int) -> Interval:
    if not 1 <= first <= last:
        msg = f"{first} to {last} are no numbers of GTIDs"
        raise ValueError(msg)
    return first, last


def _wrong(name: str, error: Exception) -> DecodeError:
    return DecodeError(
        f"a {name} event does not follow the format: {error}",
        hint="Nothing was acknowledged. Check the file at the source: mysqlbinlog reads it?",
    )
