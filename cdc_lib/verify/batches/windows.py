"""Decodes drained windows of a source a second time, from the server or their raw archive, and compares them with their batches."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import pyarrow as pa

from cdc_lib.backfill.archive import acknowledged
from cdc_lib.backfill.period import chosen, times_of
from cdc_lib.config.shape import masks_column
from cdc_lib.drain.erased import may_be_later
from cdc_lib.errors import ConfigError
from cdc_lib.model.backfill import ArchivedWindow, Period
from cdc_lib.model.batch_check import BatchReport, WindowCheck
from cdc_lib.model.cursor import DRAIN, Cursor
from cdc_lib.model.manifest import BINLOG, GTID, OFFSET, OP, ROW, DataFile, Manifest
from cdc_lib.model.position import Point
from cdc_lib.model.schema import TableSchema
from cdc_lib.model.table_name import TableName
from cdc_lib.model.window import Window
from cdc_lib.mysql.replayed_session import Replay
from cdc_lib.mysql.second_decoder import LAST_OFFSET, decode, decoder_name
from cdc_lib.mysql.server_facts import ServerFacts
from cdc_lib.ports import ObjectStore
from cdc_lib.source import Source
from cdc_lib.store import layout
from cdc_lib.store.batch_rows import parquet_file
from cdc_lib.store.erasures import erasures
from cdc_lib.store.manifests import load_manifest
from cdc_lib.store.raw_archive import ArchivedStream, read_facts
from cdc_lib.store.windows import stored_windows
from cdc_lib.verify.batches.cells import table_unreadable
from cdc_lib.verify.batches.compare import WindowComparison
from cdc_lib.verify.batches.places import KnownOfWindow, Place, StoredChange

_ROWS = 4096
"""Rows that are in memory as Python values, per file."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Which windows are compared, and which tables of them.

    Args:
        last: so many of the last acknowledged windows; of those of the period or the ids, if one is given.
        period: windows with commits in it; None for all.
        windows: ids of windows; all if empty.
        wants: whether a captured table is compared.
    """

    last: int | None = 10
    period: Period | None = None
    windows: tuple[str, ...] = ()
    wants: Callable[[str, str], bool] = field(default=lambda _database, _table: True)


@dataclass(frozen=True, slots=True)
class BatchVerification:
    """Compares the batches of one source."""

    source: Source

    def run(self, choice: Choice, report: Callable[[WindowCheck], None] = lambda _: None) -> BatchReport:
        """Compare windows, and return one check for each.

        Raises:
            ConfigError: a window that is named is not stored.
            SourceError: the server cannot be reached.
            CorruptBatch: a manifest or a file of a batch cannot be read.
            CursorMoved: the source has no cursor yet.
        """
        started = datetime.now(UTC)
        drain = self.source.required(DRAIN)
        keys = self._chosen(choice, drain)
        facts = self.source.facts()
        checks = []
        for key in keys:
            checks.append(self._window(load_manifest(self.source.store, key), facts, drain, choice))
            report(checks[-1])
        return BatchReport(self.source.name, decoder_name(), started, datetime.now(UTC), tuple(checks))

    def _chosen(self, choice: Choice, drain: Cursor) -> Sequence[str]:
        """Return the keys of the chosen windows' manifests, in the stream's order."""
        windows: Sequence[ArchivedWindow] = tuple(
            acknowledged(stored_windows(self.source.store, self.source.name), drain)
        )
        if choice.windows:
            by_id = {window.key.split("/")[-2]: window for window in windows}
            if missing := [name for name in choice.windows if name not in by_id]:
                raise ConfigError(
                    f"no acknowledged window has the id {missing[0]}",
                    hint="`cdc batches list --json` has the ids.",
                    source=self.source.name,
                )
            windows = [window for name, window in by_id.items() if name in choice.windows]
        if choice.period is not None:
            timed = times_of((window, load_manifest(self.source.store, window.key)) for window in windows)
            windows = [one.window for one in chosen(timed, choice.period)]
        return [window.key for window in (windows if choice.last is None else windows[-choice.last :])]

    def _window(self, manifest: Manifest, facts: ServerFacts, drain: Cursor, choice: Choice) -> WindowCheck:
        window = manifest.window
        if window is None:
            raise AssertionError(manifest.id)
        check = WindowCheck(window.id, window.start, window.stop, archived=unreachable(manifest, window, facts))
        if check.archived and not is_replayable(manifest, window):
            return replace(check, archived="", skipped=check.archived)
        began = time.monotonic()
        unread = {schema.name: why for schema in manifest.schemas.values() if (why := table_unreadable(schema.columns))}
        unread |= dict.fromkeys(self._erased(manifest, window), "rows of it were erased")
        comparison = self._comparison(manifest, drain, choice, unread)
        with self._replay(manifest, window) if check.archived else nullcontext() as replay:
            for event in decode(self.source.config.server, self.source.credentials, window, unread, replay):
                comparison.take(event)
        if not comparison.failed:
            comparison.finish()
            check = replace(
                check,
                equal=comparison.equal,
                differing=comparison.differing,
                uncomparable=comparison.uncomparable,
                differences=tuple(comparison.differences),
                not_comparable=comparison.not_comparable,
            )
        else:
            check = replace(check, skipped=comparison.failed)
        return replace(check, seconds=time.monotonic() - began)

    def _erased(self, manifest: Manifest, window: Window) -> list[TableName]:
        """Return the tables of which a batch may lack changes, because their rows were erased."""
        first = Point.at(window.epoch, window.start).just_after()
        known = erasures(self.source.store, self.source.name)
        return [one.table for one in known if may_be_later(one, first, manifest.first_time)]

    @contextmanager
    def _replay(self, manifest: Manifest, window: Window) -> Iterator[Replay]:
        """Open the raw archive of a window."""
        if manifest.raw is None:
            raise AssertionError(manifest.id)
        key = layout.manifest_key(window)
        with ArchivedStream(self.source.store, key, manifest.raw) as stream:
            yield Replay(stream, read_facts(self.source.store, key, manifest.raw))

    def _comparison(
        self, manifest: Manifest, drain: Cursor, choice: Choice, unread: dict[TableName, str]
    ) -> WindowComparison:
        """Return the comparison of a window, with the changes that only the batch can count left out already."""
        unseen = {**_namesakes(manifest, unread), **unread}
        left_out = {**_quarantined(manifest, drain), **unseen}
        captures, source = self.source.config.tables.captures, self.source.config

        def is_captured(table: TableName) -> bool:
            return captures(*table.pair) and choice.wants(*table.pair)

        def is_masked(table: TableName, column: str) -> bool:
            return masks_column(source, *table.pair, column)

        prepared = sorted(
            ((one.start.file_number, one.start.offset), (one.position.file_number, one.position.offset))
            for one in manifest.prepared
        )
        expected = KnownOfWindow(is_captured, left_out, is_masked, prepared)
        compared = {
            table: changes
            for table, changes in stored_changes(self.source.store, manifest).items()
            if choice.wants(*table.pair) and table not in left_out
        }
        comparison = WindowComparison(compared, expected)
        for file in manifest.files:
            if file.table in unseen and choice.wants(*file.table.pair):
                comparison.leave_out(file.table, unseen[file.table], file.rows)
        return comparison


def unreachable(manifest: Manifest, window: Window, facts: ServerFacts) -> str:
    """Return why the server cannot give a window again; empty if it can. Pure."""
    names = {name for name, _ in facts.files}
    if not manifest.identity.is_same_server(facts.identity):
        return f"it was drained from another server: {manifest.identity}"
    if window.start.file not in names or window.stop.file not in names:
        return "binlog purged"
    if window.start.offset > LAST_OFFSET:
        return "it starts beyond 4 GiB of its binlog file, where mysql-replication cannot start"
    return ""


def is_replayable(manifest: Manifest, window: Window) -> bool:
    """Return whether the store has the window's raw events, and the second decoder can read them. Pure."""
    return manifest.raw is not None and window.start.offset <= LAST_OFFSET


def _quarantined(manifest: Manifest, drain: Cursor) -> dict[TableName, str]:
    """Return the tables whose rows a window has left out."""
    window = manifest.window
    tables = [one.table for one in manifest.quarantined]
    if window is not None:
        tables += [one.table for one in drain.quarantine if one.skips_decode(window.epoch, window.start)]
    return dict.fromkeys(tables, "it was quarantined, and the batch leaves its rows out")


def _namesakes(manifest: Manifest, unread: dict[TableName, str]) -> dict[TableName, str]:
    """Return the tables that have the name of an unreadable one in another database: the decoder leaves them out, too."""
    names = {table.pair[1]: table for table in unread}
    tables = {file.table for file in manifest.files if file.table.pair[1] in names}
    return {table: f"mysql-replication leaves it out with {names[table.pair[1]]}" for table in tables}


def stored_changes(store: ObjectStore, manifest: Manifest) -> Mapping[TableName, Iterator[StoredChange]]:
    """Return the changes of each table of a batch; a file is opened when its first change is asked for.

    Rows of prepared XA transactions are not among them.

    Raises:
        CorruptBatch: while iterating: a file is missing or is not a Parquet file.
    """
    key = layout.key_of(manifest)
    by_table: dict[TableName, list[Iterator[StoredChange]]] = {}
    for file in manifest.files:
        changes = _changes(store, layout.beside(key, file.path), file, manifest.schemas[file.schema_id])
        by_table.setdefault(file.table, []).append(changes)
    return {table: heapq.merge(*files, key=_place) for table, files in by_table.items()}


def _place(change: StoredChange) -> Place:
    return change.place


def _changes(store: ObjectStore, key: str, file: DataFile, schema: TableSchema) -> Iterator[StoredChange]:
    names = [column.name for column in schema.columns]
    with parquet_file(store, key) as parquet:
        for batch in parquet.iter_batches(_ROWS, columns=[BINLOG, OFFSET, ROW, OP, GTID, *names]):
            places = (batch.column(name).to_pylist() for name in (BINLOG, OFFSET, ROW))
            marks = (batch.column(name).to_pylist() for name in (OP, GTID))
            cells = [_values(batch.column(name)) for name in names]
            for place, op, gtid, row in zip(zip(*places, strict=True), *marks, zip(*cells, strict=True), strict=True):
                yield StoredChange(Place(*place), op, gtid, row, file.path, schema)


def _values(column: pa.Array) -> list[object]:
    """Return Python values; of dates and times numbers, because Python does not have the year 0."""
    if pa.types.is_date32(column.type):
        return list(column.cast(pa.int32()).to_pylist())
    if pa.types.is_timestamp(column.type):
        return list(column.cast(pa.int64()).to_pylist())
    return list(column.to_pylist())
