"""Reads the snapshots of tables into durable batches, in chunks by primary key."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime

from cdc_lib.errors import TableUnreadable, UnsupportedValue
from cdc_lib.model.manifest import Manifest, SnapshotChunk, chunk_of
from cdc_lib.model.pace import Pace, counted
from cdc_lib.model.quarantine import QuarantinedTable
from cdc_lib.model.refusals import NO_SUCH_TABLE
from cdc_lib.model.results import DrainResult, result_of
from cdc_lib.model.server_identity import ServerIdentity
from cdc_lib.model.window import SnapshotTask
from cdc_lib.mysql.watermark import Watermarks
from cdc_lib.snapshot.chunk_reader import ChunkReader, ReadChunk
from cdc_lib.source import Source
from cdc_lib.store.manifests import chunks_of, last_chunk_of

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SnapshotReader:
    """Reads the snapshots of one source.

    Args:
        source: the source.
        mask_lost: see :class:`ChunkReader`.
    """

    source: Source
    mask_lost: Callable[[], tuple[QuarantinedTable, ...]] = tuple

    def read(self, task: SnapshotTask, identity: ServerIdentity, until: datetime | None = None) -> DrainResult:
        """Read the chunks of one table, or of one range of it, that are not stored yet, one batch for each.

        Args:
            task: a unit: a snapshot, or one range of a divided one.
            identity: of the server.
            until: when the reading ends (UTC), after at least one chunk; a later call goes on. None: after the last chunk.

        Raises:
            ServerChanged: another server answers.
        """
        began = time.monotonic()
        count, last = last_chunk_of(self.source.store, task)
        rows = count * self.source.config.snapshot.chunk_rows
        pace = Pace(f"snapshot of {task.title}", "row", 0, began, rows, rows)
        reader = ChunkReader(
            self.source,
            task,
            identity,
            pace,
            Watermarks(),
            self.mask_lost,
        )
        unit = _ChunksOfUnit(reader, None if last is None else chunk_of(last), count, until)
        written = unit.read()
        if written and not chunk_of(written[-1]).last:
            log.info("snapshot of %s: %s stored; the next run goes on", task.title, counted(unit.count, "chunk"))
        return result_of(
            task.id, written or chunks_of(self.source.store, task), time.monotonic() - began, written=len(written)
        )


@dataclass(slots=True)
class _ChunksOfUnit:
    """Reads the chunks of a unit. While one is read, the one before is completed and published.

    Law: chunks are published in their order, and each goes on after the stored one before it.

    Args:
        reader: of single chunks.
        before: the last chunk that is stored, then the last that was read.
        count: chunks before the next one.
        until: when to stop.
    """

    reader: ChunkReader
    before: SnapshotChunk | None
    count: int
    until: datetime | None
    _written: list[Manifest] = field(default_factory=list)
    _vanished: bool = False

    def read(self) -> list[Manifest]:
        """Return the manifests of the chunks that were read."""
        publishing: Future[Manifest] | None = None
        with ThreadPoolExecutor(1, "chunk") as publisher:
            while True:
                chunk = self._next(publishing=publishing is not None)
                with ExitStack() as on_error:
                    if chunk is not None:
                        on_error.callback(chunk.discard)
                    if publishing is not None and not self._goes_on(publishing.result()):
                        publishing = None
                        continue
                    if chunk is None:
                        return self._written
                    on_error.pop_all()
                publishing = publisher.submit(chunk.publish)
                self.before, self.count = chunk.chunk, self.count + 1

    def _next(self, *, publishing: bool) -> ReadChunk | None:
        """Read a chunk; None after the last one, or when the time is over."""
        if self.before is not None and self.before.last:
            return None
        if (self._written or publishing) and self.until is not None and self.until <= datetime.now(UTC):
            return None
        try:
            return self.reader.read(self.before, self.count)
        except (UnsupportedValue, TableUnreadable) as error:
            if error.context.get("number") in NO_SUCH_TABLE and not self._vanished:
                self._vanished = True  # dropped between reading its definition and its rows: try once more
                return self._next(publishing=publishing)
            return self.reader.last_at_fault(error, self.count)

    def _goes_on(self, stored: Manifest) -> bool:
        """Whether the next chunk follows the stored one. If not, another task stored other rows under its number."""
        self._written.append(stored)
        read, self.before = self.before, chunk_of(stored)
        return read is not None and _end_of(read) == _end_of(self.before)


def _end_of(chunk: SnapshotChunk) -> tuple[object, ...]:
    """Return what the next chunk takes from a chunk."""
    return chunk.last_key, chunk.upper_key, chunk.last
