"""Writes the batch of one missing window again: from the server if it still has the window, else from its raw events."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from cdc_lib.backfill.decode import ArchiveDecoder
from cdc_lib.drain.exclusions import Exclusions
from cdc_lib.drain.window import Drainer
from cdc_lib.errors import CdcError, CorruptBatch, SourceError
from cdc_lib.model.cursor import Cursor
from cdc_lib.model.manifest import Manifest
from cdc_lib.model.position import Point
from cdc_lib.model.raw_event import RawArchive
from cdc_lib.model.results import DrainResult, result_of
from cdc_lib.model.server_identity import ServerIdentity
from cdc_lib.model.window import Window
from cdc_lib.mysql.server_facts import ServerFacts
from cdc_lib.plan.gaps import position_of
from cdc_lib.plan.start import Starter
from cdc_lib.plan.windows import Limits, plan_windows
from cdc_lib.source import Source
from cdc_lib.store import documents, layout
from cdc_lib.store.manifests import publish_manifest
from cdc_lib.store.raw_archive import find_archive
from cdc_lib.store.windows import archived_windows, chained


@dataclass(frozen=True, slots=True)
class RefilledWindow:
    """A window whose batch was written again.

    Args:
        result: of the window.
        from_archive: whether its raw events were decoded; False if the server sent it again.
    """

    result: DrainResult
    from_archive: bool


@dataclass(frozen=True, slots=True)
class _MissingRange:
    """A part of what is missing: one window if its bounds are known, else a range that may become several."""

    window: Window
    bounds_known: bool


@dataclass(frozen=True, slots=True)
class WindowRefiller:
    """Writes the batches of missing windows again.

    Args:
        source: the source.
        drain: the drain cursor.
        server: its facts, or why it cannot be used.
    """

    source: Source
    drain: Cursor
    server: ServerFacts | SourceError

    @classmethod
    def open(cls, source: Source, drain: Cursor) -> WindowRefiller:
        """Return the refiller over the server of the drain cursor, or without a server if that cannot be used."""
        here = source.at_cursor(drain).with_text_keys(drain)
        try:
            return cls(here, drain, here.facts())
        except SourceError as error:
            return cls(here, drain, error)

    def refilled(self, missing: Window, *, whole: bool) -> Iterator[RefilledWindow]:
        """Write what is missing again, window by window.

        Args:
            missing: the range.
            whole: whether it is one window; else it is split at the bounds of the windows whose raw events are stored.

        Raises:
            SourceError: the server does not send a window again, and its raw events are not stored.
            DecodeError: an event cannot be decoded.
        """
        for part in [_MissingRange(missing, bounds_known=True)] if whole else self._parts(missing):
            yield from self._part(part)

    def _part(self, part: _MissingRange) -> Iterator[RefilledWindow]:
        window, identity = part.window, self._identity(part.window.epoch)
        server = self._server_with(window, identity)
        if isinstance(server, SourceError):
            yield RefilledWindow(self._decoded(window, server), from_archive=True)
            return
        drainer = Drainer(self.source, known=self.drain.versions)
        for one in [window] if part.bounds_known else self._windows(window, server):
            excluded = Exclusions.of(self.drain, one)
            yield RefilledWindow(self._drain_again(drainer, one, identity, excluded), from_archive=False)

    def _server_with(self, window: Window, identity: ServerIdentity) -> ServerFacts | SourceError:
        """Return the facts of the server if it still has a window, else why it does not. No event is read."""
        if isinstance(self.server, SourceError):
            return self.server
        cursor = replace(
            self.drain, epoch=window.epoch, identity=identity, position=window.start, gtid_set="", gtids_known=False,
            file_times={}, in_flight=(), event_time=None,
        )  # fmt: skip
        try:
            Starter(self.source, self.server).check_resumable(cursor)
        except SourceError as error:
            return error
        return self.server

    def _drain_again(
        self, drainer: Drainer, window: Window, identity: ServerIdentity, excluded: Exclusions
    ) -> DrainResult:
        """Drain a window, replacing its manifest; the old manifest is restored if the window cannot be drained."""
        key = layout.manifest_key(window)
        before = self.source.store.get(key)
        if before is None:
            return drainer.window(window, identity, (), excluded)
        self.source.store.delete([key])
        try:
            return drainer.window(window, identity, (), excluded)
        except CdcError:
            self.source.store.put_if_absent(key, before.data)
            raise

    def _decoded(self, window: Window, refusal: SourceError) -> DrainResult:
        """Write a window's batch from its raw events.

        Args:
            window: that the server does not send.
            refusal: why the server does not send it.

        Raises:
            SourceError: its raw events are not stored, or damaged.
            DecodeError: an event cannot be decoded.
        """
        began, key = time.monotonic(), layout.manifest_key(window)
        before = self.source.store.get(key)
        raw = documents.load(Manifest, before.data, key).raw if before is not None else None
        if raw is None:
            raw = self._found_archive(key, refusal)
        try:
            made = ArchiveDecoder(self.source, self.source.store).write(window, raw, self.drain)
        except CorruptBatch as error:
            raise self._lost_everywhere(refusal, error.message) from error
        manifest = replace(made, raw=raw)
        if before is not None:
            self.source.store.delete([key])
        publish_manifest(self.source.store, key, manifest)
        return result_of(window.id, [manifest], time.monotonic() - began, written=1)

    def _found_archive(self, key: str, refusal: SourceError) -> RawArchive:
        try:
            raw = find_archive(self.source.store, key)
        except CorruptBatch as error:
            raise self._lost_everywhere(refusal, error.message) from error
        if raw is None:
            raise self._lost_everywhere(refusal, "raw events of the window are not stored") from refusal
        return raw

    def _lost_everywhere(self, refusal: SourceError, archive: str) -> SourceError:
        """Return the error of a window that neither the server nor the archive has."""
        over = f"cdc batches refill {self.source.name} --over continues after it, with new snapshots of all tables."
        if refusal.retryable:
            over = f"Start the server. If that window is lost for good: {over}"
        return type(refusal)(f"{refusal.message}; {archive}", hint=over, **refusal.context)

    def _parts(self, window: Window) -> Iterator[_MissingRange]:
        """Split a missing range at the bounds of the windows whose raw events are stored."""
        archived = archived_windows(self.source.store.list(layout.batches_prefix(window.source, window.epoch)))
        start, stop = Point.at(window.epoch, window.start), Point.at(window.epoch, window.stop)
        while start < stop:
            chain = chained(archived, start, stop)
            for one in chain.windows:
                yield _MissingRange(_between(window, one.start, one.stop), bounds_known=True)
            if chain.gap is None:
                return
            begin, start = chain.gap
            yield _MissingRange(_between(window, begin, start), bounds_known=False)

    def _windows(self, missing: Window, facts: ServerFacts) -> tuple[Window, ...]:
        """Split a missing range into windows, as a plan does."""
        cursor = replace(self.drain, epoch=missing.epoch, position=missing.start, in_flight=())
        limits = Limits(int(self.source.config.drain.max_window_bytes), len(facts.files) + 1)
        windows = plan_windows(cursor, facts.files, missing.stop, limits)
        if not windows or windows[-1].stop != missing.stop:
            raise CorruptBatch(
                f"the server's binlog does not lead from {missing.start} to {missing.stop}",
                hint=f"cdc batches refill {self.source.name} --over continues after it.",
                source=self.source.name,
            )
        return windows

    def _identity(self, epoch: int) -> ServerIdentity:
        """Return the server of an epoch's positions."""
        changes = self.drain.epoch_changes
        return next((one.previous_end.identity for one in changes if one.epoch == epoch + 1), self.drain.identity)


def _between(window: Window, start: Point, stop: Point) -> Window:
    """Return a part of a window, between two points of its epoch."""
    return replace(window, start=position_of(window.start, start), stop=position_of(window.start, stop))
