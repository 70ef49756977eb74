"""One window of the binlog into the files of a batch, without the tables that are quarantined."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from cdc_lib.binlog.ddl.effects import Naming
from cdc_lib.binlog.ddl.history.window import WindowHistory
from cdc_lib.binlog.framing.progress import WindowSummary
from cdc_lib.binlog.reader import StreamFacts, WindowReader
from cdc_lib.binlog.rows.cascades import CascadeWatch
from cdc_lib.binlog.rows.masking import Shape
from cdc_lib.binlog.rows.partial_rows import nothing_untold
from cdc_lib.binlog.rows.quarantined import ExcludedTables, tables_at_fault
from cdc_lib.binlog.rows.rolled_back import RolledBackRows
from cdc_lib.binlog.rows.row_groups import ReadOptions
from cdc_lib.config import SourceConfig
from cdc_lib.config.shape import is_shaped, stored_as
from cdc_lib.config.sharing import shares_lake_table
from cdc_lib.drain.origin import Origin
from cdc_lib.errors import DecodeError, PositionNotFound, RowsRolledBack, TableReplaced, TableUnreadable
from cdc_lib.model.manifest import Manifest
from cdc_lib.model.pace import Pace
from cdc_lib.model.position import Position
from cdc_lib.model.quarantine import Fault, QuarantinedTable, is_replaced
from cdc_lib.model.table_name import TableName
from cdc_lib.model.window import Window
from cdc_lib.mysql.server_facts import ServerFacts
from cdc_lib.plan.windows import bytes_between
from cdc_lib.ports import ObjectStore
from cdc_lib.schema_history.versions import Histories
from cdc_lib.store import layout
from cdc_lib.store.parquet import BatchWriter
from cdc_lib.store.raw_archive import RawArchiveWriter
from cdc_lib.store.raw_events import RawEventWriter

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Exclusions:
    """The tables that a window does without.

    Args:
        spared: quarantined when the window was planned: their rows are not decoded.
        replaced: a new snapshot replaces their rows: they are left out where they are at fault. Nobody can have drained the
            window with them, so that its bytes are the same whenever it was told.
    """

    spared: Collection[TableName] = ()
    replaced: Collection[TableName] = ()


@dataclass(frozen=True, slots=True)
class WindowBatches:
    """Reads windows of one source.

    Args:
        config: of the source.
        store: where batches go.
        shape: which columns are stored, and with which masks.
        origin: where windows are read from.
    """

    config: SourceConfig
    store: ObjectStore
    shape: Shape
    origin: Origin

    def write(
        self,
        window: Window,
        histories: Histories,
        undrained: Sequence[Window],
        leaving: Exclusions,
        file_times: Mapping[str, datetime],
    ) -> Manifest:
        """Write a window's files and return the manifest to be; once more without the tables at fault, where those are quarantined.

        Which tables that are follows from the window's bytes alone, and all of their rows in the window are left out: rows
        are decoded in portions, so that how many came before the fault was met would be chance.
        """
        excluded: dict[TableName, Fault | None] = dict.fromkeys(leaving.spared)
        rolled_back = RolledBackRows()
        while True:
            found = _Faults(self.config, window.start, leaving.replaced, excluded)
            try:
                return self._read_and_write(window, histories, undrained, excluded, file_times, rolled_back, found)
            except RowsRolledBack:
                continue  # it is known now which: each time more, and the window has an end; a fault may be in one of them
            except _TablesAtFault:
                excluded = {**found.tables, **excluded}

    def _read_and_write(
        self,
        window: Window,
        histories: Histories,
        undrained: Sequence[Window],
        excluded: Mapping[TableName, Fault | None],
        file_times: Mapping[str, datetime],
        rolled_back: RolledBackRows,
        found: _Faults,
    ) -> Manifest:
        key = layout.manifest_key(window)
        history = histories.of_window(window, undrained)
        level = self.config.drain.compression_level
        unread = {table for table, fault in excluded.items() if fault is not None and is_replaced(fault)}
        with (
            batch_writer(self.config, self.store, key, layout.part_path) as writer,
            batch_writer(self.config, self.store, key, layout.prepared_path) as prepared,
            RawEventWriter(self.store, key, level) as raw,
            self._archiving(key, level) as archive,
        ):
            left_out = self._left_out(excluded.keys() - unread, raw)
            take = archive.take if archive is not None else None
            summary = self._read(
                window, histories, (writer, prepared), history, left_out, unread, take, rolled_back, found
            )
            if found.tables:
                raise _TablesAtFault  # nothing of this reading is kept
        _check_files(window, summary.file_times, file_times)
        self.origin.check_ends(histories.facts, summary.unclosed)
        histories.keep(history)
        told = tuple(
            QuarantinedTable(table, fault, raw.kept.get(table))
            for table, fault in sorted(excluded.items())
            if fault is not None or table in raw.kept
        )
        manifest = replace(_window_manifest(window, histories.facts, summary, writer, prepared), quarantined=told)
        if archive is None:
            return manifest
        return replace(manifest, raw=archive.archive(self.origin.facts(histories.facts, histories.charsets)))

    @contextmanager
    def _archiving(self, key: str, level: int) -> Iterator[RawArchiveWriter | None]:
        """Give what keeps the window's raw events, where the source file wants that."""
        if not self.config.raw_archive:
            yield None
            return
        with RawArchiveWriter(self.store, key, level) as archive:
            yield archive

    def _left_out(self, excluded: Collection[str], raw: RawEventWriter) -> ExcludedTables | None:
        """Return what keeps the events of tables that are left out; None where no table ever is."""
        if not excluded and self.config.on_error != "quarantine":
            return None
        names = [_name(table) for table in excluded]
        # Events hold every column as it is: what must not be stored keeps those of its whole table from it.
        return ExcludedTables(names, [name for name in names if is_shaped(self.config, *name)], raw)

    def _read(
        self,
        window: Window,
        histories: Histories,
        writers: tuple[BatchWriter, BatchWriter],
        history: WindowHistory,
        excluded: ExcludedTables | None,
        unread: Collection[str],
        raw: Callable[[memoryview], None] | None,
        rolled_back: RolledBackRows,
        found: _Faults,
    ) -> WindowSummary:
        drain, facts, origin = self.config.drain, histories.facts, self.origin
        untold = origin.untold if facts.identity.flavor == "mariadb" else nothing_untold
        stream_facts = StreamFacts(facts.identity.flavor, facts.checksum, histories.charsets, untold)
        naming = Naming(
            fold=facts.folds_names,
            swaps=self.config.tables.online_schema_change,
            kept=origin.kept,
            shaped=partial(is_shaped, self.config),
            stored=partial(stored_as, self.config),
            shares=partial(shares_lake_table, self.config),
            dates_as_text=self.config.zero_dates == "string",
        )
        pace = Pace(
            f"window {window.id}", "bytes", bytes_between(window.start, facts.files, window.stop), time.monotonic()
        )

        def received(count: int) -> None:
            if line := pace.tick(count, time.monotonic()):
                log.info("%s", line)

        options = ReadOptions(
            group_rows=drain.row_group_rows, values=self.config.values, naming=naming, received=received
        )
        with origin.stream(window, facts.identity) as stream:

            def wanted(database: str, table: str) -> bool:
                # Of what is read again automatically not even the raw events are kept.
                name = TableName(database, table)
                return self.config.tables.captures(database, table) and name not in unread and name not in found.tables

            reader = WindowReader(
                window, stream, stream_facts, wanted, *writers, options, history, self.shape, excluded, raw, rolled_back,
                CascadeWatch(origin.cascades, self.config.cascades, lambda *table: origin.kept(*table) != "fixed"),
                found.spare,
            )  # fmt: skip
            return reader.run()


class _TablesAtFault(Exception):
    """A reading found tables at fault; the window is read once more without them."""


@dataclass(frozen=True, slots=True)
class _Faults:
    """The tables at fault that one reading of a window finds.

    Args:
        config: of the source.
        at: where the window starts.
        replaced: tables that may be left out whatever the source file says.
        excluded: tables that the reading does without.
        tables: what was found, the first fault of each table.
    """

    config: SourceConfig
    at: Position
    replaced: Collection[TableName]
    excluded: Mapping[TableName, Fault | None]
    tables: dict[TableName, Fault] = field(default_factory=dict)

    def spare(self, error: DecodeError | TableUnreadable) -> Collection[TableName]:
        """Return the tables that are left out for an error from here on; none where it stops everything."""
        found = at_fault(self.config, error, self.at, self.replaced)
        new = {table: fault for table, fault in found.items() if table not in self.excluded}
        for table, fault in new.items():
            self.tables.setdefault(table, fault)
        return new.keys()


def batch_writer(config: SourceConfig, store: ObjectStore, key: str, path_of: Callable[[str, int], str]) -> BatchWriter:
    """Return a writer of files beside the manifest with this key."""
    return BatchWriter(store, lambda path: layout.beside(key, path), path_of, config.drain.compression_level)


def at_fault(
    config: SourceConfig, error: DecodeError | TableUnreadable, at: Position, replaced: Collection[TableName] = ()
) -> dict[TableName, Fault]:
    """Return the tables that are to be left out for an error; none when it stops everything.

    Args:
        config: of the source.
        error: that a window or a snapshot ended in.
        at: where, as far as the error does not say.
        replaced: tables that may be left out whatever the source file says.
    """
    tables = tables_at_fault(error, config.tables.captures)
    by_itself = isinstance(error, TableReplaced)
    if config.on_error != "quarantine" and not by_itself and not set(tables) <= set(replaced):
        return {}
    file, offset = error.context.get("file"), error.context.get("offset")
    if isinstance(file, str) and isinstance(offset, int):
        at = Position(file, offset)
    fault = Fault(at, error.code, error.message, error.hint)
    return dict.fromkeys(tables, fault)


def _name(table: str) -> tuple[str, str]:
    return TableName.parse(table).pair


def _check_files(window: Window, read: Mapping[str, datetime], known: Mapping[str, datetime]) -> None:
    """Refuse what was read from files of another binlog than the one that was planned."""
    for file, made in read.items():
        if made != known.get(file, made):
            raise PositionNotFound(
                f"{file} was made at {made:%Y-%m-%d %H:%M:%S} UTC, and the window was planned for another of that name",
                hint="The server's binlog was reset or restored meanwhile. Plan again.",
                source=window.source,
                window=window.id,
            )


def _window_manifest(
    window: Window, facts: ServerFacts, summary: WindowSummary, writer: BatchWriter, prepared: BatchWriter
) -> Manifest:
    return Manifest(
        source=window.source,
        epoch=window.epoch,
        identity=facts.identity,
        window=window,
        chunk=None,
        gtid_first=summary.gtid_first,
        gtid_last=summary.gtid_last,
        first_time=summary.first_time,
        last_time=summary.last_time,
        transactions=summary.transactions,
        events=summary.events,
        files=writer.files,
        schemas={**prepared.schemas, **writer.schemas},
        ddl=tuple(summary.ddl),
        prepared=summary.prepared,
        xa_decisions=summary.xa_decisions,
        prepared_files=prepared.files,
        gtid_set=summary.gtid_set,
        statements=summary.statements,
        last_commit=summary.last_commit,
    )
