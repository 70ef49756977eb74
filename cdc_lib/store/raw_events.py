"""Raw events of tables that are quarantined, so that they can be read once they are understood.

One file per table and window: a zstd stream of the 8 bytes ``CDCEVT01`` and, for each event, numbers in little-endian order:
binlog file number 4, offset 8, offset in a compressed transaction 8 (0 outside), commit time in microseconds since 1970 8
(signed), offset at which its XA transaction began 8 (0 outside of one), length of the GTID 2, length of the event 4; then the
GTID as text and the event, header and body, without its checksum. The length in the event's own header counts the checksum
where the server writes one.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any, BinaryIO, Self, cast

import zstandard

from cdc_lib.errors import CorruptBatch
from cdc_lib.model.position import Position
from cdc_lib.model.quarantine import RawEventsFile
from cdc_lib.ports import ObjectStore, RawEvent
from cdc_lib.store import layout
from cdc_lib.store.hashed import HashedFile

_MAGIC = b"CDCEVT01"
_HEAD = struct.Struct("<IQQqQHI")
_DAWN = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(slots=True)
class _Stream:
    path: str
    file: HashedFile
    writer: Any
    first: Position
    last: Position
    events: int = 0


@dataclass(slots=True)
class RawEventWriter:
    """Writes the files of one window; they appear when the block ends well, and not at all when it raises.

    Args:
        store: where to.
        manifest: key of the window's manifest.
        level: zstd level.
    """

    store: ObjectStore
    manifest: str
    level: int = 1
    kept: dict[str, RawEventsFile] = field(default_factory=dict)
    _streams: dict[str, _Stream] = field(default_factory=dict)
    _stack: ExitStack = field(default_factory=ExitStack)

    def take(self, table: str, event: RawEvent) -> None:
        """Take one event of ``database.table``; the events of a table come in the order of the stream."""
        stream = self._streams.get(table) or self._open(table, event.position)
        gtid, position = event.gtid.encode(), event.position
        micros = (event.time - _DAWN) // _MICROSECOND
        numbers = (position.file_number, position.offset, event.row, micros, event.began, len(gtid), len(event.event))
        stream.writer.write(_HEAD.pack(*numbers) + gtid + event.event)
        stream.events += 1
        stream.last = position

    def _open(self, table: str, first: Position) -> _Stream:
        path = layout.events_path(table)
        file = HashedFile(self._stack.enter_context(self.store.open_write(layout.beside(self.manifest, path))))
        writer = zstandard.ZstdCompressor(level=self.level).stream_writer(cast(BinaryIO, file), closefd=False)
        writer.write(_MAGIC)
        stream = self._streams[table] = _Stream(path, file, writer, first, first)
        return stream

    def __enter__(self) -> Self:
        """Write while the block runs."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Finish every file, or none."""
        if error is not None:
            self._stack.__exit__(kind, error, trace)
            return
        for table, stream in sorted(self._streams.items()):
            stream.writer.close()
            self.kept[table] = RawEventsFile(
                stream.path, stream.events, stream.file.size, stream.file.sha256.hexdigest(), stream.first, stream.last
            )
        self._stack.close()


def read_events(file: BinaryIO, base: str) -> Iterator[RawEvent]:
    """Yield the events of a file.

    Args:
        file: as :class:`RawEventWriter` wrote it.
        base: name of the binlog files before the point and number, for example ``binlog``.

    Raises:
        CorruptBatch: it is not such a file, or is cut short.
    """
    with zstandard.ZstdDecompressor().stream_reader(file) as stream:
        if _read(stream, len(_MAGIC)) != _MAGIC:
            raise _broken("does not begin as one")
        while head := _read(stream, _HEAD.size):
            if len(head) < _HEAD.size:
                raise _broken("is cut short")
            number, offset, row, micros, began, gtid_size, size = _HEAD.unpack(head)
            gtid, event = _read(stream, gtid_size), _read(stream, size)
            if len(gtid) < gtid_size or len(event) < size:
                raise _broken("is cut short")
            position = Position(f"{base}.{number:06d}", offset)
            yield RawEvent(position, row, _DAWN + micros * _MICROSECOND, gtid.decode(), began, event)


def _read(stream: zstandard.ZstdDecompressionReader, size: int) -> bytes:
    try:
        return stream.read(size)
    except zstandard.ZstdError as error:
        raise _broken(f"is not compressed as it says: {error}") from error


def _broken(what: str) -> CorruptBatch:
    return CorruptBatch(f"a file of raw events {what}", hint="Remove the window's manifest and drain it again.")
