"""Drains windows again into another store: from the server, or from archived raw events.

The live cursors and batches are only read. Windows keep the bounds of the live batches, if these are known, so each live
batch is either replaced completely by a new one or not at all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from cdc_lib.backfill.archive import BackfillArchive
from cdc_lib.backfill.decode import ArchiveDecoder
from cdc_lib.config.start import StartAt
from cdc_lib.drain.exclusions import Exclusions
from cdc_lib.drain.window import Drainer
from cdc_lib.errors import BatchesMissing, ConfigError
from cdc_lib.model.backfill import Period
from cdc_lib.model.cursor import DRAIN, Cursor, Move
from cdc_lib.model.manifest import Manifest
from cdc_lib.model.position import Point, Position
from cdc_lib.model.results import DrainResult
from cdc_lib.model.window import Window
from cdc_lib.mysql.server_facts import ServerFacts
from cdc_lib.plan.ack import over_window
from cdc_lib.plan.start import Starter
from cdc_lib.plan.windows import Limits, plan_windows
from cdc_lib.ports import ObjectStore
from cdc_lib.source import Source
from cdc_lib.store import documents, layout
from cdc_lib.store.cursors import ObjectCursorStore
from cdc_lib.store.manifests import find_manifest
from cdc_lib.store.windows import stored_windows

Report = Callable[[DrainResult], None]
"""Receives the result of each window."""

Bounds = list[tuple[Position, Position]]
"""Start and stop of each live batch, in the stream's order."""


@dataclass(frozen=True, slots=True)
class BatchReplay:
    """Drains windows of one source into another store.

    Args:
        source: the source.
        target: store for the new windows.
    """

    source: Source
    target: ObjectStore

    def from_server(self, period: Period, *, by: str, report: Report) -> Cursor:
        """Drain a period from the server's binlog; returns the new store's cursor at its end.

        The cursor records the progress: a retry continues after the windows that are already drained.

        Raises:
            SourceError: the server cannot be reached, is another one, or has purged the period.
            ConfigError: the period lies before the cursor's epoch.
            DecodeError: an event cannot be decoded.
        """
        live = self._live_cursor()
        here = replace(self.source.at_cursor(live).with_text_keys(live), store=self.target)
        starter = Starter.of(here)
        facts = starter.facts
        starter.check_resumable(live)
        cursors, bounds = ObjectCursorStore(self.target), self._bounds(facts, live.epoch)
        stop = self._stop(starter, live, period, bounds)
        cursor = cursors.load(self.source.name, DRAIN)
        cursor = cursor or cursors.swap(None, self._begun(starter, live, period, bounds, by))
        if cursor.epoch != live.epoch:
            raise self._other_epoch(cursor.position)
        while cursor.position < stop:
            planned = cursor if cursor.in_flight else cursor.with_windows(self._windows(cursor, facts, bounds, stop))
            window = planned.in_flight[0]
            excluded = Exclusions.of(live, window)
            known = (*live.versions, *cursor.versions)
            drainer = Drainer(here, self.source.store, known)
            report(drainer.window(window, live.identity, (), excluded))
            manifest = find_manifest(self.target, layout.manifest_key(window))
            cursor = cursors.swap(cursor, over_window(planned, window, manifest, at=datetime.now(UTC), by=by))
        return cursor

    def from_archive(self, period: Period, *, report: Report) -> int:
        """Decode the windows of a period again from their raw events; returns the number of windows.

        Raises:
            BatchesMissing: a part of the period, or its raw events, is not stored.
            CorruptBatch: raw events are damaged.
            DecodeError: an event cannot be decoded.
        """
        live = self._live_cursor()
        found = BackfillArchive(self.source).found(period)
        windows = found.between(found.begin, found.end) if found is not None else ()
        for one in windows:
            manifest = self._manifest(one.key)
            if manifest.window is None or manifest.raw is None:
                raise BatchesMissing(
                    "the raw events of a window were not kept",
                    hint="raw_archive: true keeps those of windows that are drained from then on; without --from-archive "
                    "the server is asked.",
                    source=self.source.name,
                    key=one.key,
                )
            if self.target.get(one.key) is None:
                report(self._decoded(one.key, manifest, manifest.window, live))
        return len(windows)

    def _decoded(self, key: str, manifest: Manifest, window: Window, live: Cursor) -> DrainResult:
        """Decode one window from its raw events, and publish its batch."""
        if manifest.raw is None:
            raise AssertionError(key)
        began = datetime.now(UTC)
        again = ArchiveDecoder(self.source, self.target).write(window, manifest.raw, live)
        self.target.put_if_absent(key, documents.dump(again))
        return DrainResult(
            window.id, 1, again.rows, again.bytes, again.events, (datetime.now(UTC) - began).total_seconds()
        )

    def _manifest(self, key: str) -> Manifest:
        found = find_manifest(self.source.store, key)
        if found is None:
            raise BatchesMissing(
                "a batch was removed while it was read",
                hint="Retry: the command lists the batches that still exist.",
                key=key,
            )
        return found

    def _live_cursor(self) -> Cursor:
        return self.source.required(DRAIN)

    def _begun(self, starter: Starter, live: Cursor, period: Period, bounds: Bounds, by: str) -> Cursor:
        """Return the new store's first cursor: at the start of the period, or of the live batch around it."""
        if period.since is None:
            raise ConfigError("--since is missing: from when on the server's binlog is to be drained again")
        begin = starter.find(StartAt(timestamp=period.since))
        around = _around(begin.position, bounds)
        if around is not None:
            begin = starter.find(StartAt(position=str(around[0])))
        if live.epoch_changes and begin.position < live.epoch_changes[-1].new_start.position:
            raise self._other_epoch(begin.position)
        move = Move(datetime.now(UTC), "start", None, begin.position, by, f"redrain of {period}")
        cursor = Cursor(self.source.name, DRAIN, 0, live.epoch, live.identity, begin.position, moves=(move,))
        return cursor.at_checkpoint(begin)

    def _stop(self, starter: Starter, live: Cursor, period: Period, bounds: Bounds) -> Position:
        """Return the end of the period, or of the live batch around it; at most the live drain cursor."""
        if period.until is None or live.event_time is None or live.event_time < period.until:
            return live.position
        stop = starter.find(StartAt(timestamp=period.until)).position
        around = _around(stop, bounds)
        stop = around[1] if around is not None else stop
        return min(live.position, stop)

    def _bounds(self, facts: ServerFacts, epoch: int) -> Bounds:
        """Return the bounds of the live batches of an epoch."""
        stored = stored_windows(self.source.store, self.source.name, epoch)
        return [(_position(facts, one.start), _position(facts, one.stop)) for one in stored]

    def _windows(self, cursor: Cursor, facts: ServerFacts, bounds: Bounds, stop: Position) -> tuple[Window, ...]:
        """Return the next windows: the live batch that begins here, else the range up to the next live batch."""
        at = cursor.position
        known = [end for start, end in bounds if start == at and at < end]
        if known:
            return (Window(cursor.source, cursor.epoch, at, max(known)),)
        ahead = [start for start, _ in bounds if at < start < stop]
        end = min(ahead, default=stop)
        limits = Limits(int(self.source.config.drain.max_window_bytes), self.source.config.drain.max_windows)
        return plan_windows(cursor, facts.files, end, limits)

    def _other_epoch(self, position: Position) -> ConfigError:
        return ConfigError(
            f"{position} lies before the place where the present epoch of the source began",
            hint="What was read before a failover or a rewind has other order keys. cdc cursor show lists where each epoch began; "
            "batches that are still stored serve cdc backfill as they are.",
            source=self.source.name,
        )


def _around(at: Position, bounds: Bounds) -> tuple[Position, Position] | None:
    """Return the bounds of the live batch that begins before a position and ends after it."""
    return next(((start, stop) for start, stop in bounds if start < at < stop), None)


def _position(facts: ServerFacts, point: Point) -> Position:
    """Return a point as a position in this server's files."""
    base, _, digits = facts.files[0][0].rpartition(".")
    return Position(f"{base}.{point.file:0{len(digits)}d}", point.offset)
