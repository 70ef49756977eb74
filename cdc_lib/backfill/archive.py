"""Archived batches of a period, and the plan that merges them again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from cdc_lib.backfill.decide import BackfillDecision
from cdc_lib.backfill.other_key import Keys
from cdc_lib.backfill.period import TimedWindow, chosen, refuse_removed, times_of
from cdc_lib.config.patterns import exact_table, matches, problem
from cdc_lib.config.start import timestamp
from cdc_lib.errors import BatchesMissing, ConfigError
from cdc_lib.merge.chunks import begin_of, first_reads, low_of, read_to_of, reading_order
from cdc_lib.merge.plan import StoredBatch
from cdc_lib.merge.quarantined import without_quarantined
from cdc_lib.model.backfill import ArchivedSnapshot, ArchivedWindow, Backfill, Period
from cdc_lib.model.cursor import DRAIN, LAKE, Cursor
from cdc_lib.model.lake_table import Marker
from cdc_lib.model.manifest import Manifest
from cdc_lib.model.merge_plan import MergePlan
from cdc_lib.model.position import Point
from cdc_lib.model.stored_window import StoredWindow
from cdc_lib.model.table_name import TableName
from cdc_lib.model.window import SnapshotTask
from cdc_lib.model.xa import Decision, OpenTransaction
from cdc_lib.model.xa_settlement import check_in_snapshots, not_replayed, opened_before, settle
from cdc_lib.source import Source
from cdc_lib.store import layout
from cdc_lib.store.cuts import last_cut
from cdc_lib.store.manifests import find_manifest
from cdc_lib.store.windows import stored_windows

CLOCKS_DIFFER = timedelta(hours=1)
"""Largest lag of the store's clock against the source's: a batch is written after its last event was committed."""


@dataclass(frozen=True, slots=True)
class BackfillArchive:
    """Finds archived batches of one source.

    Args:
        source: the source.
        known: manifests already read, by key.
    """

    source: Source
    known: dict[str, Manifest] = field(default_factory=dict)

    def found(self, period: Period) -> Backfill | None:
        """Return the archived batches of a period; None if nothing of it was merged.

        Raises:
            BatchesMissing: a part of the period is no longer stored.
            CursorMoved: the source has no cursor yet.
            CorruptBatch: a manifest cannot be read.
        """
        drain, lake = self._cursor(DRAIN), self._cursor(LAKE)
        state = Point.at(lake.epoch, lake.position)
        stored = stored_windows(self.source.store, self.source.name)
        windows = tuple(acknowledged(stored, drain))
        timed = self._timed(tuple(window for window in windows if window.stop <= state), stored, period)
        firsts = {task: first for task in lake.snapshots if task.complete and (first := self._first(task)) is not None}
        self._refuse_removed(period, drain, windows, firsts.values())
        stored_snapshots = (self._snapshot(task) for task, first in firsts.items() if _in(period, first))
        snapshots = tuple(one for one in stored_snapshots if one is not None)
        selected = chosen(timed, period)
        if not selected and not snapshots:
            return None
        ranges = [(one.window.start, one.window.stop) for one in selected]
        ranges += [(one.low, one.read_to) for one in snapshots]
        begin = min(low for low, _ in ranges)
        return Backfill(
            source=self.source.name,
            begin=begin,
            end=min(max(high for _, high in ranges), state),
            lake=state,
            windows=windows,
            chosen=len(selected),
            snapshots=snapshots,
            quarantine=drain.quarantine,
            from_start=self.source.config.start != "snapshot" and _source_start(drain) == begin,
            held=frozenset(lake.places),
        )

    def plan(self, backfill: Backfill, low: Point, high: Point) -> MergePlan:
        """Return a plan with all batches between two points, and the snapshots; it is not stored.

        Raises:
            MergeError: a window commits an XA transaction whose rows are in no batch.
        """
        windows = backfill.between(low, high)
        loaded = [(window.key, self._manifest(window.key)) for window in windows]
        positions = [manifest.window for _, manifest in loaded if manifest.window is not None]
        lake = self._cursor(LAKE)
        start, stop = (positions[0].start, positions[-1].stop) if positions else (lake.position, lake.position)
        keys = [key for one in backfill.snapshots for key in one.keys]
        return MergePlan(
            source=backfill.source,
            epoch=high.epoch,
            merge_id=f"backfill-{low.sortable}",
            start=start,
            stop=stop,
            batches=(*keys, *(window.key for window in windows)),
            prepared=self._opened(backfill, loaded),
            quarantine=backfill.quarantine,
            source_uuid=lake.source_uuid,
        )

    def last_snapshot(self, table: TableName) -> ArchivedSnapshot | None:
        """Return the last complete snapshot of a table that the lake has; None if it is not stored."""
        tasks = [task for task in self._cursor(LAKE).snapshots if task.name == table and task.complete and task.chunks]
        found = (self._snapshot(task) for task in tasks if task.selection is None)
        return max((one for one in found if one is not None), key=lambda one: one.low, default=None)

    def first_chunk(self, snapshot: ArchivedSnapshot) -> StoredBatch:
        """Return the first chunk of a stored snapshot."""
        return StoredBatch(snapshot.keys[0], self._manifest(snapshot.keys[0]))

    def batches(self, plan: MergePlan) -> list[StoredBatch]:
        """Return the batches of a plan without quarantined tables, and without the rows of XA transactions.

        Raises:
            BatchesMissing: a batch was removed in between.
        """
        return without_quarantined([StoredBatch(key, self._manifest(key)) for key in plan.batches], plan.quarantine)

    def is_dropped(self, table: TableName) -> bool:
        """Whether the source had dropped a table when the last cut was made."""
        cut = last_cut(self.source.store, self.source.name)
        return cut is not None and any(one.table == table and one.dropped is not None for one in cut.tables)

    def one_key_since(
        self, table: TableName, batches: Sequence[StoredBatch], decide: BackfillDecision, keys_of: Keys
    ) -> datetime | None:
        """Return the start time of the snapshot after which all rows have one key; None if it is not stored.

        Args:
            table: ``database.table``.
            batches: all loaded batches.
            decide: decides what each table needs.
            keys_of: returns the keys of a batch's rows.
        """
        last = self.last_snapshot(table)
        if last is None:
            return None
        first = self.first_chunk(last)
        again = decide.under_one_key([first, *batches], table, Marker(), None, keys_of)
        return None if again.others else first.manifest.first_time

    def chosen_tables(self, tables: Iterable[str], patterns: Iterable[str]) -> list[str]:
        """Return the tables that match one of the patterns; all without a pattern.

        Raises:
            ConfigError: a pattern is not valid, or names a table that is not captured.
        """
        patterns = list(patterns)
        for pattern in patterns:
            if wrong := problem(pattern):
                raise ConfigError(f"not a pattern of tables: {wrong}", hint="database.table, with * and ? for several.")
            named = exact_table(pattern)
            if named is not None and not self.source.config.tables.captures(*named.pair):
                raise ConfigError(f"not captured: {pattern}", hint="tables: in the source file says what is.")
        captured = [table for table in tables if self.source.config.tables.captures(*_parts(table))]
        return [t for t in captured if not patterns or any(matches(pattern, *_parts(t)) for pattern in patterns)]

    def _timed(
        self, windows: tuple[ArchivedWindow, ...], stored: Iterable[StoredWindow], period: Period
    ) -> tuple[TimedWindow, ...]:
        """Return the commit times of windows that may lie in a period; windows written before the period are skipped."""
        if period.since is None:
            candidates = windows
        else:
            since = period.since - CLOCKS_DIFFER
            written = {one.key: one.modified for one in stored}
            candidates = tuple(window for window in windows if window.key in written and written[window.key] >= since)
        return times_of((window, self._manifest(window.key)) for window in candidates)

    def _first(self, task: SnapshotTask) -> Manifest | None:
        """Return the chunk of a snapshot that was read first, if it is stored."""
        if not task.chunks:
            return None
        firsts = [self._stored(layout.chunk_manifest_key(part, 0)) for part in task.parts]
        stored = [one for one in firsts if one is not None]
        return min(stored, key=low_of) if len(stored) == len(firsts) else None

    def _snapshot(self, task: SnapshotTask) -> ArchivedSnapshot | None:
        """Return a complete snapshot of the lake; None if a chunk of it is no longer stored."""
        keys = tuple(layout.chunk_manifest_key(task, number) for number in range(task.chunks))
        stored = [(key, manifest) for key in keys if (manifest := self._stored(key)) is not None]
        ordered = sorted(stored, key=lambda pair: reading_order(pair[1]))
        keys, chunks = tuple(key for key, _ in ordered), [manifest for _, manifest in ordered]
        if len(chunks) != task.chunks:
            return None
        return ArchivedSnapshot(keys, low_of(chunks[0]), max(map(read_to_of, chunks)))

    def _refuse_removed(
        self, period: Period, drain: Cursor, windows: tuple[ArchivedWindow, ...], firsts: Iterable[Manifest]
    ) -> None:
        times = [one.first_time for one in firsts]
        for window in windows:  # the first that is not empty
            time = self._manifest(window.key).first_time
            if time is not None:
                times.append(time)
                break
        began = _source_start(drain)
        from_the_start = began is not None and (not windows or windows[0].start == began)
        oldest = min((time for time in times if time is not None), default=None)
        refuse_removed(period, oldest, from_the_start=from_the_start, source=self.source.name)

    def _opened(self, backfill: Backfill, loaded: list[tuple[str, Manifest]]) -> tuple[OpenTransaction, ...]:
        """Return the XA transactions that were prepared before the windows and committed in them."""
        unknown = settle((), loaded).unknown
        if not unknown:
            return ()
        xids = {decision.xid for _, decision in unknown}
        first = loaded[0][1]
        older = [window.key for window in reversed(backfill.windows) if window.start < begin_of(first)]
        drain = self._cursor(DRAIN)
        opened = opened_before(((key, self._manifest(key)) for key in older), xids, first, drain.epoch_changes)
        unknown = not_replayed(settle(opened, loaded).unknown, drain.epoch_changes)
        reads = first_reads(drain, self._first)
        began = _source_start(drain)
        if unknown and (began is None or not backfill.windows or backfill.windows[0].start != began):
            self._refuse_without_rows(unknown, reads)
        check_in_snapshots(unknown, reads if self.source.config.start == "snapshot" else (), self.source.name)
        return opened

    def _refuse_without_rows(self, unknown: Sequence[tuple[int, Decision]], reads: Sequence[Point]) -> None:
        """Refuse transactions whose rows may have been removed, unless all tables were read after their commits."""
        for epoch, decision in unknown:
            if not reads or Point.at(epoch, decision.position) >= min(reads):
                raise BatchesMissing(
                    f"the XA transaction {decision.xid} is committed in this time, and its rows are in no batch that is stored",
                    hint="Take a --since after its XA COMMIT; else cdc snapshot reads the tables again.",
                    source=self.source.name,
                    xid=decision.xid,
                    file=decision.position.file,
                    offset=decision.position.offset,
                )

    def _stored(self, key: str) -> Manifest | None:
        if key not in self.known:
            found = find_manifest(self.source.store, key)
            if found is None:
                return None
            self.known[key] = found
        return self.known[key]

    def _manifest(self, key: str) -> Manifest:
        found = self._stored(key)
        if found is None:
            raise BatchesMissing(
                "a batch was removed while it was looked for",
                hint="Retry: the command lists the batches that still exist.",
                key=key,
            )
        return found

    def _cursor(self, consumer: str) -> Cursor:
        return self.source.required(consumer)


def acknowledged(stored: Iterable[StoredWindow], drain: Cursor) -> Iterator[ArchivedWindow]:
    """Yield the acknowledged windows, without those after the end of their epoch.

    If windows overlap because some were drained again with wider bounds, the widest is used.
    """
    covered = None
    for window in sorted(stored, key=lambda one: (one.start, Point(-one.stop.epoch, -one.stop.file, -one.stop.offset))):
        if covered is not None and window.start.epoch == covered.epoch and window.stop <= covered:
            continue
        covered = window.stop
        end = drain.end_of_epoch(window.start.epoch)
        if end is None or window.stop <= Point.at(window.start.epoch, end):
            yield ArchivedWindow(window.key, window.start, window.stop)


def _parts(table: str) -> tuple[str, str]:
    return TableName.parse(table).pair


def _in(period: Period, first: Manifest) -> bool:
    """Whether a snapshot began to be read in a period."""
    at = first.first_time
    return at is not None and (period.since is None or at >= period.since) and (not period.until or at < period.until)


def _source_start(drain: Cursor) -> Point | None:
    """Return where the source began; None if the cursor no longer records it."""
    first = drain.moves[0] if drain.moves else None
    epoch = min((epoch_change.epoch - 1 for epoch_change in drain.epoch_changes), default=drain.epoch)
    return Point.at(epoch, first.stop) if first is not None and first.kind == "start" else None


def period_of(since: str | None, until: str | None) -> Period:
    """Return the period between two times as text.

    Raises:
        ConfigError: one is not a time with a zone, or the period is empty.
    """
    try:
        period = Period(timestamp(since) if since else None, timestamp(until) if until else None)
    except ValueError as error:
        raise ConfigError(f"--since and --until: {error}") from error
    if period.since is not None and period.until is not None and period.since >= period.until:
        raise ConfigError(f"nothing lies between --since and --until: {period}", hint="--until is the later one.")
    return period
