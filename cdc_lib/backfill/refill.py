"""Missing batches between the lake and the drain cursor: written again in place, or skipped and recorded.

A window is fixed by its bounds: draining it again gives the same rows with the same order keys. Its bytes come from the server
if that still has them, else from the raw events beside the lost batch. If neither has them, the lake continues after the window,
and new snapshots replace all tables.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from cdc_lib.backfill.refill_window import RefilledWindow, WindowRefiller
from cdc_lib.errors import ConfigError, CorruptBatch
from cdc_lib.model.cursor import DRAIN, KEPT_MOVES, LAKE, Cursor, Move
from cdc_lib.model.manifest import Manifest
from cdc_lib.model.position import Point, Position
from cdc_lib.model.table_name import TableName
from cdc_lib.model.window import Window
from cdc_lib.mysql.information_schema import InformationSchema
from cdc_lib.plan.gaps import position_of, refuse_lost
from cdc_lib.snapshot.request import SnapshotRequests
from cdc_lib.source import Source
from cdc_lib.store import layout
from cdc_lib.store.manifests import find_manifest
from cdc_lib.store.windows import chained, known_windows

Report = Callable[[RefilledWindow], None]
"""Receives each window."""


@dataclass(frozen=True, slots=True)
class MissingBatch:
    """A window that the lake needs and whose batch is missing or incomplete.

    Args:
        window: its bounds.
        lost: key of a missing file that its manifest names; empty if the manifest itself is missing.
    """

    window: Window
    lost: str = ""


@dataclass(frozen=True, slots=True)
class BatchRefill:
    """Restores the missing batches of one source.

    Args:
        source: the source.
    """

    source: Source

    def missing(self) -> list[MissingBatch]:
        """Return the windows between the lake and the drain cursor whose batches are missing or incomplete, in order.

        Raises:
            CursorMissing: a cursor is missing.
        """
        refuse_lost(self.source)
        drain, lake = self._both()
        return list(self._in_flight(lake)) + list(self._ahead(drain, lake))

    def refill(self, *, report: Report) -> int:
        """Write the batches of missing windows again, with their original bounds if known; returns the number of windows.

        Raises:
            SourceError: the server cannot be reached, is another one, or no longer has that binlog, and there are no raw events.
            DecodeError: an event cannot be decoded.
        """
        drain, _ = self._both()
        missing = self.missing()
        if not missing:
            return 0
        refiller = WindowRefiller.open(self.source, drain)
        count = 0
        for batch in missing:
            for done in refiller.refilled(batch.window, whole=bool(batch.lost)):
                report(done)
                count += 1
        return count

    def go_over(self, *, by: str, why: str) -> Move:
        """Move the lake past the missing batches, with new snapshots of all captured tables; returns the lake's move.

        Raises:
            ConfigError: nothing is missing, or a table cannot be snapshotted.
            SourceError: the server cannot be reached or is another one.
            CursorMoved: another process moved a cursor at the same time.
        """
        drain, lake = self._both()
        missing = self.missing()
        if not missing:
            raise ConfigError("no batch is missing", hint="There is nothing to skip.", source=self.source.name)
        here, now = self.source.at_cursor(drain), datetime.now(UTC)
        tables = self._tables(here, drain)
        if tables:
            self.source.cursors.swap(
                drain, SnapshotRequests(here).resnapshot(drain, lake, tables, why=why, at=now, by=by)
            )
        # The snapshots are requested first: after a crash in between, the gap is still found.
        stop = missing[-1].window.stop
        move = Move(now, "gap", lake.position, stop, by, why)
        moves = (*lake.moves, move)[-KEPT_MOVES:]
        self.source.cursors.swap(lake, replace(lake.without_merge(), position=stop, moves=moves))
        return move

    def _both(self) -> tuple[Cursor, Cursor]:
        return self.source.required(DRAIN), self.source.required(LAKE)

    def _in_flight(self, lake: Cursor) -> Iterator[MissingBatch]:
        for window in lake.in_flight:
            key = layout.manifest_key(window)
            manifest = find_manifest(self.source.store, key)
            if manifest is None:
                yield MissingBatch(window)
            elif lost := self._lost(key, manifest):
                yield MissingBatch(window, lost)

    def _ahead(self, drain: Cursor, lake: Cursor) -> Iterator[MissingBatch]:
        end = drain.end_of_epoch(lake.epoch)
        at = lake.in_flight[-1].stop if lake.in_flight else lake.position
        if end is None:
            return
        start, stop = Point.at(lake.epoch, at), Point.at(lake.epoch, end)
        stored = known_windows(self.source.store, lake.source, drain, start, lake.epoch)
        while start < stop:
            chain = chained(stored, start, stop)
            for one in chain.windows:
                manifest = find_manifest(self.source.store, one.key)
                if manifest is not None and manifest.window is not None and (lost := self._lost(one.key, manifest)):
                    yield MissingBatch(manifest.window, lost)
            if chain.gap is None:
                return
            begin, start = chain.gap
            yield MissingBatch(Window(lake.source, lake.epoch, _at(lake, begin), _at(lake, start)))

    def _lost(self, key: str, manifest: Manifest) -> str:
        """Return the key of a file of a manifest that is missing or has another size; empty if all are intact."""
        sizes = {info.key: info.size for info in self.source.store.list(key.removesuffix(layout.MANIFEST))}
        for file in (*manifest.files, *manifest.prepared_files):
            name = layout.beside(key, file.path)
            size = sizes[name] if name in sizes else self._size(name)
            if size != file.bytes:
                return name
        return ""

    def _size(self, key: str) -> int | None:
        """Return the size of an object that a listing lacks, which may be old; None if it does not exist."""
        try:
            with self.source.store.open_read(key) as file:
                return file.seek(0, os.SEEK_END)
        except CorruptBatch:
            return None

    def _tables(self, here: Source, drain: Cursor) -> list[TableName]:
        """Return the captured tables that are not quarantined; quarantined ones are read again when they are released."""
        with closing(here.connect()) as connection:
            names = InformationSchema(connection).tables()
        excluded = {one.table for one in drain.quarantined_tables}
        captured = [TableName(*name) for name in here.config.tables.select(names)]
        return [table for table in captured if table not in excluded]


def _at(lake: Cursor, point: Point) -> Position:
    return position_of(lake.position, point)
