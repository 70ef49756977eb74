"""The laws that hold after every step and every kill, checked in the store itself."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from cdc_lib.config import Credentials, SourceConfig
from cdc_lib.drain.exclusions import Exclusions
from cdc_lib.drain.window import Drainer, contents_of
from cdc_lib.model.cursor import DRAIN, LAKE, Cursor, Move
from cdc_lib.model.manifest import Manifest
from cdc_lib.model.position import Position
from cdc_lib.model.window import SnapshotTask, Window
from cdc_lib.ports import ObjectStore
from cdc_lib.source import Source
from cdc_lib.store import documents, layout
from cdc_lib.store.cursors import ObjectCursorStore
from cdc_lib.store.erasures import erasures, keep_erasure
from cdc_lib.store.manifests import find_manifest
from cdc_lib.store.objects.local import LocalStore


class Laws:
    """Remembers the cursors and the hashes of the documents.

    Args:
        store: the source's store, without injected faults.
        source: its name.
    """

    def __init__(self, store: ObjectStore, source: str) -> None:
        self._store = store
        self._source = source
        self._cursors = ObjectCursorStore(store)
        self._before: dict[str, Cursor] = {}
        self._documents: dict[str, str] = {}
        self.windows: list[Window] = []
        self.ranges: dict[str, list[tuple[object, object]]] = {}
        """The bounds of the ranges of each divided snapshot, by its id."""

    def check(self) -> None:
        """Check both cursors; to be called after every step.

        Raises:
            AssertionError: a law is broken.
        """
        drain, lake = (self._cursors.load(self._source, consumer) for consumer in (DRAIN, LAKE))
        if drain is not None:
            self._moved(drain, drain)
            merged = {task.id for task in lake.snapshots if task.complete} if lake is not None else set()
            self._durable_chunks(task for task in drain.snapshots if task.id not in merged)
            self._ranges_stay(drain.snapshots)
        if lake is not None:
            assert drain is not None
            self._moved(lake, drain)
            ends = drain.end_of_epoch(lake.epoch)
            assert ends is not None, f"the lake is in epoch {lake.epoch}, the drain in {drain.epoch}"
            assert lake.position <= ends, f"the lake's {lake.position} is ahead of {ends}"
            self._durable(lake.in_flight)
            assert all(window.stop <= ends for window in lake.in_flight)
            self._durable_chunks(lake.in_flight_snapshots)

    def stored_windows(self) -> list[Window]:
        """Return the windows that were acknowledged and are still stored."""
        return [window for window in self.windows if self._manifest(window) is not None]

    def stored_times(self) -> list[datetime]:
        """Return the times of the first and last changes of the windows that are still stored."""
        manifests = [manifest for window in self.windows if (manifest := self._manifest(window)) is not None]
        times = {
            time for manifest in manifests for time in (manifest.first_time, manifest.last_time) if time is not None
        }
        return sorted(times)

    def check_documents(self) -> int:
        """Check every manifest and cut, and the files of the manifests; returns the number of documents."""
        for info in self._store.list(f"{self._source}/"):
            manifest = info.key.endswith(f"/{layout.MANIFEST}")
            if not manifest and not info.key.startswith(layout.cuts_prefix(self._source)):
                continue
            stored = self._store.get(info.key)
            assert stored is not None
            digest = hashlib.sha256(stored.data).hexdigest()
            assert self._documents.setdefault(info.key, digest) == digest, f"{info.key} has changed"
            if manifest:
                self._files(documents.load(Manifest, stored.data, info.key), info.key)
        return len(self._documents)

    def forget_changed(self) -> None:
        """Take manifests as they are now: an erasure wrote some of them again."""
        self._documents.clear()

    def drains_to_the_same(
        self, window: Window, config: SourceConfig, credentials: Credentials, cursor: Cursor, empty: Path
    ) -> None:
        """Drain a window again into an empty folder and compare."""
        state = self._manifest(window)
        assert state is not None
        again_in = LocalStore(empty)
        for one in erasures(self._store, self._source):
            keep_erasure(again_in, one)
        drainer = Drainer(Source.over(config, again_in, credentials))
        without = Exclusions.of(cursor, window)
        drainer.window(window, cursor.identity, leaving=without)
        again = find_manifest(drainer.source.store, layout.manifest_key(window))
        assert again is not None
        erased = {one.table for one in erasures(self._store, self._source)}  # their files may be written again
        both = [contents_of(_without(one, erased)) for one in (again, state)]
        assert both[0] == both[1], f"{window.id} has other bytes after a second drain"

    def _moved(self, cursor: Cursor, drain: Cursor) -> None:
        """Check that the cursor moved over adjacent windows with manifests, or into the recorded epoch."""
        before = self._before.get(cursor.consumer)
        if before is not None:
            assert cursor.generation >= before.generation
            assert cursor.generation > before.generation or cursor == before, "another cursor of the same generation"
            epoch, at = before.epoch, before.position
            for move in _new_moves(before, cursor):
                if move.kind == "ack":
                    assert move.start is not None
                    at = self._over(cursor, epoch, at, move.start, move.stop)
                elif move.kind == "rollback":
                    assert move.start == move.stop == at, f"{cursor.consumer} moved in a rollback"
                else:
                    epoch, at = self._into(cursor, drain, epoch, at)
            assert (epoch, at) == (cursor.epoch, cursor.position), (
                f"{cursor.consumer} left {before.position} without a recorded move"
            )
        at = cursor.position
        for window in cursor.in_flight:
            assert (window.epoch, window.start) == (cursor.epoch, at), f"{window.id} does not start at {at}"
            at = window.stop
        self._before[cursor.consumer] = cursor

    def _over(self, cursor: Cursor, epoch: int, at: Position, start: Position, stop: Position) -> Position:
        assert start == at, f"{cursor.consumer} jumped from {at} to {start}"
        window = Window(cursor.source, epoch, start, stop)
        self._durable([window])
        if cursor.consumer == DRAIN:
            self.windows.append(window)
        return stop

    def _into(self, cursor: Cursor, drain: Cursor, epoch: int, at: Position) -> tuple[int, Position]:
        """Check that the epoch ends at the cursor, and return the start of the next, as the drain cursor records it."""
        (epoch_change,) = [change for change in drain.epoch_changes if change.epoch == epoch + 1]
        assert epoch_change.previous_end.position == at, (
            f"{cursor.consumer} left epoch {epoch} at {at}, not at {epoch_change.previous_end.position}"
        )
        return epoch_change.epoch, epoch_change.new_start.position

    def _durable(self, windows: Iterable[Window]) -> None:
        for window in windows:
            assert self._manifest(window) is not None, f"{window.id} has no manifest"

    def _manifest(self, window: Window) -> Manifest | None:
        key = layout.manifest_key(window)
        stored = self._store.get(key)
        return None if stored is None else documents.load(Manifest, stored.data, key)

    def _durable_chunks(self, tasks: Iterable[SnapshotTask]) -> None:
        for task in tasks:
            keys = [layout.chunk_manifest_key(task, number) for number in range(task.chunks)]
            assert all(self._store.get(key) is not None for key in keys), f"a chunk of {task.id} does not exist: {keys}"

    def _ranges_stay(self, tasks: Iterable[SnapshotTask]) -> None:
        """Check that ranges tile the keys, and are those with which the snapshot was planned."""
        for task in tasks:
            if task.to_divide:
                continue
            bounds: list[tuple[object, object]] = [(one.after, one.last) for one in task.ranges]
            assert self.ranges.setdefault(task.id, bounds) == bounds, f"the ranges of {task.id} have changed"
            afters, lasts = [after for after, _ in bounds], [last for _, last in bounds]
            assert [*afters, None] == [None, *lasts] or not bounds, f"the ranges of {task.id} do not tile: {bounds}"

    def _files(self, manifest: Manifest, key: str) -> None:
        for file in (*manifest.files, *manifest.prepared_files):
            stored = self._store.get(layout.beside(key, file.path))
            assert stored is not None, f"{key} names {file.path}, which does not exist"
            assert hashlib.sha256(stored.data).hexdigest() == file.sha256, f"{file.path} of {key} has other bytes"


def _without(manifest: Manifest, tables: Collection[str]) -> Manifest:
    files, prepared = (
        tuple(file for file in some if file.table not in tables) for some in (manifest.files, manifest.prepared_files)
    )
    return replace(manifest, files=files, prepared_files=prepared)


def _new_moves(before: Cursor, after: Cursor) -> tuple[Move, ...]:
    """Return the moves between two states of a cursor, which keeps its last hundred moves."""
    for count in range(len(after.moves) + 1):
        known = after.moves[: len(after.moves) - count]
        if known == before.moves[len(before.moves) - len(known) :]:
            return after.moves[len(known) :]
    raise AssertionError("unreachable")
